import type { Chart } from 'cdk8s';
import { SandboxTemplate, SandboxWarmPool } from 'orka-workspaces';
import { confined, resources } from './shared.js';

const nobody = { ...confined, runAsUser: 1000, runAsGroup: 1000, runAsNonRoot: true };
const small = resources(['100m', '128Mi'], ['500m', '512Mi']);

/** A server is copied into any image before that starts, so that the image need not know of it. */
export function injectedServer(chart: Chart): void {
  const template = new SandboxTemplate(chart, 'template', {
    metadata: { name: 'any-image' },
    networkPolicy: 'ProviderDefault',
    allow: ['template/default-network'],
    podTemplate: {
      spec: {
        automountServiceAccountToken: false,
        restartPolicy: 'OnFailure',
        securityContext: { runAsNonRoot: true, fsGroup: 1000 },
        initContainers: [
          {
            name: 'install-sandboxd',
            image: 'us-central1-docker.pkg.dev/k8s-staging-images/agent-sandbox/sandboxd:latest-main',
            imagePullPolicy: 'IfNotPresent',
            command: ['cp', '/usr/local/bin/sandboxd', '/sandboxd-bin/'],
            securityContext: nobody,
            resources: small,
            volumeMounts: [{ name: 'sandboxd-bin', mountPath: '/sandboxd-bin' }],
          },
        ],
        containers: [
          {
            name: 'app',
            image: 'node:22-slim',
            imagePullPolicy: 'IfNotPresent',
            command: ['/sandboxd-bin/sandboxd', '--root-dir=/workspace', '--rest-port=8080', '--grpc-port=9090'],
            securityContext: nobody,
            resources: small,
            ports: [{ containerPort: 8080 }, { containerPort: 9090 }],
            readinessProbe: { httpGet: { path: '/v1/health', port: 8080 } },
            volumeMounts: [
              { name: 'sandboxd-bin', mountPath: '/sandboxd-bin', readOnly: true },
              { name: 'workspace', mountPath: '/workspace' },
            ],
          },
        ],
        volumes: [
          { name: 'sandboxd-bin', emptyDir: {} },
          { name: 'workspace', emptyDir: {} },
        ],
      },
    },
  });
  new SandboxWarmPool(chart, 'pool', { metadata: { name: 'any-image' }, template, replicas: 1, updateStrategy: 'Recreate' });
}
