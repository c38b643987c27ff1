import type { Chart } from 'cdk8s';
import { Sandbox } from 'orka-workspaces';
import { disk, fromSecret, resources } from './shared.js';

const token = fromSecret('HF_TOKEN', 'coding-agent-hf-token', 'token');

/** A coding agent with a terminal. Models are fetched to a volume that all such sandboxes share and that the agent only reads. */
export function sharedModels(chart: Chart): void {
  new Sandbox(chart, 'sandbox', {
    metadata: { name: 'coder' },
    volumeClaimTemplates: [disk('workspace', '15Gi')],
    podTemplate: {
      metadata: { labels: { app: 'coding-agent', sandbox: 'coding-agent' } },
      spec: {
        initContainers: [
          {
            name: 'model-downloader',
            image: 'model-downloader:latest',
            imagePullPolicy: 'Never',
            env: [{ ...token, valueFrom: { secretKeyRef: { ...token.valueFrom.secretKeyRef, optional: true } } }],
            volumeMounts: [{ name: 'models-cache', mountPath: '/models' }],
            resources: resources(['1', '4Gi'], ['2', '8Gi']),
          },
        ],
        containers: [
          {
            name: 'agent',
            image: 'coding-agent:latest',
            imagePullPolicy: 'Never',
            env: ['TRANSFORMERS_CACHE', 'HF_HOME'].map((name) => ({ name, value: '/models' })),
            stdin: true,
            tty: true,
            volumeMounts: [
              { name: 'workspace', mountPath: '/workspace' },
              { name: 'models-cache', mountPath: '/models', readOnly: true },
            ],
            resources: {
              requests: { cpu: '2', memory: '4Gi', 'ephemeral-storage': '5Gi' },
              limits: { cpu: '6', memory: '16Gi', 'ephemeral-storage': '15Gi' },
            },
          },
        ],
        volumes: [{ name: 'models-cache', persistentVolumeClaim: { claimName: 'models-cache-pvc' } }],
      },
    },
  });
}
