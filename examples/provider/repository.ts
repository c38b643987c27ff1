import type { Chart } from 'cdk8s';
import { SandboxClaim, SandboxTemplate, SandboxWarmPool } from 'orka-workspaces';
import { disk, dnsAndHttps, fromSecret } from './shared.js';

const workspace = { name: 'workspace-volume', mountPath: '/workspace' };
const key = fromSecret('OPENAI_API_KEY', 'llm-secrets', 'openai-api-key');

/** A checkout on a disk that outlives the Pod, and an assistant with a web page beside it that anyone in the cluster may open. */
export function repository(chart: Chart): void {
  const template = new SandboxTemplate(chart, 'template', {
    metadata: { name: 'checkout' },
    networkPolicy: {
      ingress: [{ from: [], ports: [{ protocol: 'TCP', port: 8501 }] }],
      egress: dnsAndHttps,
    },
    allow: ['network-policy/open-rule'],
    volumeClaimTemplates: [disk('workspace-volume', '10Gi')],
    podTemplate: {
      spec: {
        restartPolicy: 'OnFailure',
        securityContext: { fsGroup: 1000 },
        initContainers: [
          {
            name: 'git-clone',
            image: 'alpine/git',
            workingDir: '/workspace',
            env: [{ name: 'REPO_URL', value: 'https://git.example/project.git' }],
            command: ['/bin/sh', '-c', 'test -d .git || git clone "$REPO_URL" . && chown -R 1000:1000 .'],
            volumeMounts: [workspace],
          },
        ],
        containers: [
          {
            name: 'aider',
            image: 'aider-sandbox:v1',
            imagePullPolicy: 'Never',
            workingDir: '/workspace',
            ports: [{ containerPort: 8501 }],
            env: [{ ...key, valueFrom: { secretKeyRef: { ...key.valueFrom.secretKeyRef, optional: true } } }],
            volumeMounts: [workspace],
          },
        ],
      },
    },
  });
  const warmPool = new SandboxWarmPool(chart, 'pool', { metadata: { name: 'checkouts' }, template, replicas: 1 });
  new SandboxClaim(chart, 'claim', { metadata: { name: 'checkout-of-ada' }, warmPool });
}
