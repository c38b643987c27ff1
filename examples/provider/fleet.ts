import type { Chart } from 'cdk8s';
import { SandboxClaim, SandboxTemplate, SandboxWarmPool } from 'orka-workspaces';
import { confined, dnsAndHttps, gvisor, resources, router, user } from './shared.js';

const image = 'ghcr.io/openclaw/openclaw:2026.3.23';

/**
 * Gateways for a whole company: warm members wait for a signal in their workspace, are claimed by an employee, and start then.
 * Router and portal may connect; the way out is DNS and HTTPS.
 */
export function fleet(chart: Chart): void {
  const template = new SandboxTemplate(chart, 'template', {
    metadata: { name: 'gateway' },
    service: true,
    networkPolicy: {
      ingress: [
        {
          from: [router, { podSelector: { matchLabels: { app: 'fleet-portal' } } }],
          ports: [{ protocol: 'TCP', port: 18789 }],
        },
      ],
      egress: dnsAndHttps,
    },
    allow: ['network-policy/open-rule'],
    podTemplate: {
      metadata: {
        labels: { 'openclaw-fleet': 'sandbox' },
        annotations: { 'dev.gvisor.empty-dir.workspace-volume.force-shared': 'true' },
      },
      spec: {
        ...gvisor,
        restartPolicy: 'OnFailure',
        dnsPolicy: 'ClusterFirst',
        automountServiceAccountToken: false,
        securityContext: user(1000),
        initContainers: [
          {
            name: 'init-config',
            image,
            securityContext: confined,
            command: ['cp', '/etc/openclaw-readonly/openclaw.json', '/etc/openclaw/'],
            volumeMounts: [
              { name: 'cm-volume', mountPath: '/etc/openclaw-readonly' },
              { name: 'openclaw-etc-writable', mountPath: '/etc/openclaw' },
            ],
          },
        ],
        containers: [
          {
            name: 'openclaw',
            image,
            imagePullPolicy: 'IfNotPresent',
            securityContext: { ...confined, readOnlyRootFilesystem: false, runAsNonRoot: true },
            env: [
              { name: 'OPENCLAW_GATEWAY_TOKEN', value: 'dummy-token-for-sandbox' },
              { name: 'OPENCLAW_CONFIG_PATH', value: '/etc/openclaw/openclaw.json' },
              { name: 'HOME', value: '/workspace' },
            ],
            envFrom: [{ secretRef: { name: 'openclaw-provider-keys', optional: true } }],
            command: [
              'sh',
              '-c',
              'until test -e /workspace/.ready; do sleep 0.1; done; exec node dist/index.js gateway --bind=lan --port 18789',
            ],
            ports: [{ containerPort: 18789 }, { containerPort: 18790 }],
            resources: resources(['250m', '512Mi'], ['2', '2Gi']),
            volumeMounts: [
              { name: 'workspace-volume', mountPath: '/workspace', mountPropagation: 'HostToContainer' },
              { name: 'openclaw-etc-writable', mountPath: '/etc/openclaw' },
              { name: 'podinfo', mountPath: '/etc/podinfo', readOnly: true },
            ],
          },
        ],
        volumes: [
          { name: 'cm-volume', configMap: { name: 'openclaw-fleet-config' } },
          { name: 'openclaw-etc-writable', emptyDir: {} },
          { name: 'podinfo', downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
          { name: 'workspace-volume', emptyDir: {} },
        ],
      },
    },
  });
  const warmPool = new SandboxWarmPool(chart, 'pool', {
    metadata: { name: 'gateways' },
    template,
    replicas: 5,
    updateStrategy: 'Recreate',
  });
  new SandboxClaim(chart, 'claim', {
    metadata: { name: 'gateway-of-ada' },
    warmPool,
    additionalPodMetadata: { labels: { 'sandbox.users.io/openclaw-claim': 'gateway-of-ada' } },
  });
}
