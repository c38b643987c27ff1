import type { Chart } from 'cdk8s';
import { Sandbox } from 'orka-workspaces';
import { confined, disk, fromSecret, user } from './shared.js';

const secret = (name: string, secretName: string, rest: object = {}) => ({
  name,
  secret: { secretName, defaultMode: 0o440, ...rest },
});
const readOnly = (name: string, mountPath: string) => ({ name, mountPath, readOnly: true });

/**
 * An agent inside a second sandbox of its own process, which reads its profile from an annotation. The key has a domain of ours: one of
 * the provider's would not reach the Pod, and synth says so.
 */
export function confinedAgent(chart: Chart): void {
  new Sandbox(chart, 'sandbox', {
    metadata: { name: 'confined' },
    volumeClaimTemplates: [disk('workspace', '2Gi')],
    podTemplate: {
      metadata: { labels: { sandbox: 'nono-agent' }, annotations: { 'example.com/profile': 'agent' } },
      spec: {
        restartPolicy: 'Never',
        securityContext: user(1000),
        containers: [
          {
            name: 'agent',
            image: 'ghcr.io/example/nono-agent-runtime:latest',
            imagePullPolicy: 'IfNotPresent',
            workingDir: '/workspace',
            securityContext: confined,
            args: [
              ...['run', '--profile', '/etc/nono/profiles/agent.json'],
              ...['--audit-integrity', '--audit-sign-key', 'file:///etc/nono/audit-signing/private.pk8.b64'],
              ...['--', 'python3', '/opt/agent/workload.py'],
            ],
            env: [
              fromSecret('OPENAI_API_KEY', 'nono-demo-llm-credential', 'OPENAI_API_KEY'),
              { name: 'RUST_LOG', value: 'nono_proxy::tls_intercept::handle=error,nono_proxy::reverse=error' },
              { name: 'XDG_STATE_HOME', value: '/var/lib/nono-state' },
            ],
            volumeMounts: [
              { name: 'workspace', mountPath: '/workspace' },
              readOnly('nono-profiles', '/etc/nono/profiles'),
              readOnly('secret-config', '/etc/secret-config'),
              { name: 'audit-state', mountPath: '/var/lib/nono-state' },
              readOnly('audit-signing-key', '/etc/nono/audit-signing'),
              readOnly('loki-credential', '/etc/nono/loki-credential'),
              readOnly('loki-tls-ca', '/etc/nono/loki-tls'),
            ],
          },
        ],
        volumes: [
          { name: 'nono-profiles', configMap: { name: 'nono-agent-profiles' } },
          { name: 'secret-config', configMap: { name: 'secret-config-demo' } },
          { name: 'audit-state', persistentVolumeClaim: { claimName: 'nono-demo-audit' } },
          secret('audit-signing-key', 'nono-demo-audit-signing-key'),
          secret('loki-credential', 'nono-demo-llm-credential', { items: [{ key: 'LOKI_TOKEN', path: 'token' }] }),
          secret('loki-tls-ca', 'nono-demo-loki-tls', { items: [{ key: 'ca.crt', path: 'ca.crt' }] }),
        ],
      },
    },
  });
}
