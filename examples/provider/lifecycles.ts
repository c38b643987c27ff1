import type { Chart } from 'cdk8s';
import { Sandbox, SandboxClaim, SandboxTemplate, SandboxWarmPool } from 'orka-workspaces';
import { confined, disk, resources, user } from './shared.js';

const image = `registry.example/agent@sha256:${'a1'.repeat(32)}`;

/** How sandboxes begin and end, where they run, and what claims may add: fields that none of the other examples has. */
export function lifecycles(chart: Chart): void {
  const template = new SandboxTemplate(chart, 'template', {
    metadata: { name: 'task' },
    envVarsInjectionPolicy: 'Allowed',
    podTemplate: {
      metadata: { labels: { app: 'task' } },
      spec: {
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        // Without it a Pod never finishes, and `ttlSecondsAfterFinished` of a claim would wait for ever.
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 20,
        securityContext: user(65532),
        imagePullSecrets: [{ name: 'registry' }],
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64', 'arm64'] }] },
              ],
            },
          },
        },
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'kubernetes.io/hostname',
            whenUnsatisfiable: 'ScheduleAnyway',
            labelSelector: { matchLabels: { app: 'task' } },
          },
        ],
        containers: [
          {
            name: 'agent',
            image,
            securityContext: confined,
            resources: resources(['100m', '128Mi'], ['1', '1Gi']),
            startupProbe: { exec: { command: ['test', '-e', '/tmp/started'] }, periodSeconds: 1, failureThreshold: 60 },
            lifecycle: {
              postStart: { exec: { command: ['touch', '/tmp/started'] } },
              preStop: { sleep: { seconds: 5 } },
            },
            volumeMounts: [{ name: 'about', mountPath: '/etc/about', readOnly: true }],
          },
          { name: 'recorder', image, securityContext: confined, resources: resources(['10m', '32Mi'], ['100m', '64Mi']) },
        ],
        volumes: [
          {
            name: 'about',
            projected: {
              sources: [
                { configMap: { name: 'task-settings', optional: true } },
                { downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
              ],
            },
          },
        ],
      },
    },
  });
  const warmPool = new SandboxWarmPool(chart, 'pool', { metadata: { name: 'tasks' }, template });
  new SandboxClaim(chart, 'claim', {
    metadata: { name: 'task-1' },
    warmPool,
    env: [
      { name: 'TASK', value: '1' },
      { name: 'LEVEL', value: 'debug', containerName: 'recorder' },
    ],
    additionalPodMetadata: {
      labels: { 'sandbox.users.io/task': '1' },
      annotations: { 'example.com/requested-by': 'ada' },
    },
    lifecycle: { ttlSecondsAfterFinished: 600, shutdownTime: '2099-01-01T00:00:00Z', shutdownPolicy: 'DeleteForeground' },
  });

  new Sandbox(chart, 'paused', {
    metadata: { name: 'paused' },
    operatingMode: 'Suspended',
    shutdownTime: '2099-01-01T00:00:00Z',
    shutdownPolicy: 'Delete',
    volumeClaimTemplates: [disk('data', '1Gi')],
    podTemplate: { spec: { containers: [{ name: 'agent', image, volumeMounts: [{ name: 'data', mountPath: '/data' }] }] } },
  });
}
