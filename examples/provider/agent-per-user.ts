import type { Chart } from 'cdk8s';
import { NetworkPolicy, SandboxClaim, SandboxTemplate, SandboxWarmPool } from 'orka-workspaces';
import { disk, dnsPorts, fromSecret, resources, router, user } from './shared.js';

const platformSecret = (name: string, key: string) => fromSecret(name, 'hermes-platform-secrets', key);

/**
 * An agent for each user, with a disk of its own. The template leaves isolation to a NetworkPolicy of the platform, which has to be named,
 * and says no to whatever a claim would inject: a claim with `env` does not get past synth.
 */
export function agentPerUser(chart: Chart): void {
  const template = new SandboxTemplate(chart, 'template', {
    metadata: { name: 'assistant' },
    service: true,
    networkPolicyManagement: 'Unmanaged',
    allow: ['template/unmanaged-network'],
    volumeClaimTemplates: [disk('data', '1Gi')],
    podTemplate: {
      spec: {
        nodeSelector: { 'kubernetes.io/arch': 'amd64' },
        restartPolicy: 'OnFailure',
        securityContext: user(10000),
        initContainers: [
          {
            name: 'seed-config',
            image: 'busybox:1.36',
            command: [
              'sh',
              '-c',
              'test -e /opt/data/config.yaml || echo "model: {default: google/gemini-flash-latest}" >/opt/data/config.yaml',
            ],
            securityContext: { runAsUser: 10000, runAsGroup: 10000 },
            volumeMounts: [{ name: 'data', mountPath: '/opt/data' }],
          },
        ],
        containers: [
          {
            name: 'hermes',
            image: 'nousresearch/hermes-agent:v2026.7.7.2',
            imagePullPolicy: 'IfNotPresent',
            args: ['sleep', 'infinity'],
            ports: [
              { name: 'dashboard', containerPort: 9119 },
              { name: 'openai-api', containerPort: 8642 },
            ],
            envFrom: [{ secretRef: { name: 'hermes-provider-keys' } }],
            env: [
              { name: 'HERMES_DASHBOARD', value: '1' },
              { name: 'HERMES_DASHBOARD_HOST', value: '0.0.0.0' },
              platformSecret('HERMES_DASHBOARD_BASIC_AUTH_USERNAME', 'dashboard-username'),
              platformSecret('HERMES_DASHBOARD_BASIC_AUTH_PASSWORD', 'dashboard-password'),
              platformSecret('HERMES_DASHBOARD_BASIC_AUTH_SECRET', 'dashboard-session-secret'),
              { name: 'HERMES_GATEWAY_BOOTSTRAP_STATE', value: 'running' },
              { name: 'API_SERVER_ENABLED', value: 'true' },
              { name: 'API_SERVER_HOST', value: '0.0.0.0' },
              platformSecret('API_SERVER_KEY', 'api-server-key'),
            ],
            readinessProbe: { tcpSocket: { port: 9119 }, initialDelaySeconds: 2, periodSeconds: 2, failureThreshold: 60 },
            resources: resources(['500m', '1Gi'], ['2', '2Gi']),
            volumeMounts: [{ name: 'data', mountPath: '/opt/data' }],
          },
        ],
      },
    },
  });
  const warmPool = new SandboxWarmPool(chart, 'pool', { metadata: { name: 'assistants' }, template, replicas: 1 });
  new SandboxClaim(chart, 'claim', {
    metadata: { name: 'assistant-of-ada' },
    warmPool,
    additionalPodMetadata: { labels: { 'sandbox.users.io/hermes-user': 'ada' } },
  });
  new NetworkPolicy(chart, 'isolation', {
    metadata: { name: 'assistants' },
    podSelector: { matchExpressions: [{ key: 'sandbox.users.io/hermes-user', operator: 'Exists' }] },
    ingress: [{ from: [router], ports: [{ protocol: 'TCP', port: 9119 }] }],
    egress: [
      {
        to: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['169.254.0.0/16'] } }],
        ports: [...dnsPorts, { protocol: 'TCP', port: 443 }],
      },
    ],
  });
}
