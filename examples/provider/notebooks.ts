import type { Chart } from 'cdk8s';
import { SandboxClaim, SandboxTemplate, SandboxWarmPool } from 'orka-workspaces';
import { disk, dnsPorts } from './shared.js';

const securityContext = { runAsUser: 1000, runAsGroup: 3000, fsGroup: 2000, runAsNonRoot: true };
const notebook = {
  name: 'my-container',
  image: 'busybox',
  command: ['/bin/sh', '-c', 'sleep 36000'],
  ports: [{ containerPort: 8888, protocol: 'TCP' }],
};

/**
 * Two templates: one in gVisor behind an ingress gateway, and one whose disk a claim may replace by a larger one. That, and leaving the
 * network to the provider, has to be named.
 */
export function notebooks(chart: Chart): void {
  new SandboxTemplate(chart, 'isolated', {
    metadata: { name: 'isolated' },
    networkPolicy: {
      ingress: [
        {
          from: [
            {
              namespaceSelector: { matchLabels: { 'istio-injection': 'enabled' } },
              podSelector: { matchLabels: { app: 'istio-ingressgateway' } },
            },
          ],
          ports: [],
        },
      ],
      egress: [{ to: [], ports: dnsPorts }],
    },
    allow: ['network-policy/open-rule'],
    podTemplate: { spec: { runtimeClassName: 'gvisor', securityContext, restartPolicy: 'OnFailure', containers: [notebook] } },
  });

  const template = new SandboxTemplate(chart, 'with-disk', {
    metadata: { name: 'with-disk' },
    networkPolicy: 'ProviderDefault',
    volumeClaimTemplatesPolicy: 'Overrides',
    allow: ['template/default-network', 'template/overrides'],
    volumeClaimTemplates: [disk('workspace', '1Gi')],
    podTemplate: {
      spec: {
        securityContext,
        restartPolicy: 'OnFailure',
        containers: [{ ...notebook, volumeMounts: [{ name: 'workspace', mountPath: '/workspace' }] }],
      },
    },
  });
  const warmPool = new SandboxWarmPool(chart, 'pool', {
    metadata: { name: 'with-disk' },
    template,
    replicas: 1,
    updateStrategy: 'Recreate',
  });
  const { metadata, spec } = disk('workspace', '6Gi');
  new SandboxClaim(chart, 'claim', {
    metadata: { name: 'notebook-of-ada' },
    warmPool,
    volumeClaimTemplates: [{ metadata, spec: { ...spec, storageClassName: 'dynamic-rwo' } }],
    lifecycle: { shutdownPolicy: 'Delete' },
  });
}
