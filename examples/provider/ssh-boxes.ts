import type { Chart } from 'cdk8s';
import { Sandbox } from 'orka-workspaces';
import { confined, disk, user } from './shared.js';

const seccompProfile = { type: 'RuntimeDefault' };

/** Two boxes to log into, each behind a Service of its own name and with a disk that stays when its Pod is made anew. */
export function sshBoxes(chart: Chart): void {
  for (const name of ['box-a', 'box-b']) {
    new Sandbox(chart, name, {
      metadata: { name },
      service: true,
      volumeClaimTemplates: [disk('workspace', '1Gi')],
      podTemplate: {
        metadata: { labels: { sandbox: name } },
        spec: {
          securityContext: { ...user(1000), seccompProfile },
          containers: [
            {
              name: 'agent-box',
              image: 'ghcr.io/footprintai/containarium-agent-box:v0.52.1',
              imagePullPolicy: 'IfNotPresent',
              securityContext: { ...confined, runAsNonRoot: true, runAsUser: 1000, seccompProfile },
              ports: [{ name: 'ssh', containerPort: 2222 }],
              volumeMounts: [
                { name: 'workspace', mountPath: '/home/agent/workspace' },
                { name: 'ssh-authorized-keys', mountPath: '/etc/agent-box', readOnly: true },
              ],
              readinessProbe: { tcpSocket: { port: 'ssh' }, initialDelaySeconds: 3, periodSeconds: 5 },
            },
          ],
          volumes: [
            {
              name: 'ssh-authorized-keys',
              secret: {
                secretName: 'containarium-ssh-key',
                items: [{ key: 'authorized_keys', path: 'authorized_keys' }],
                defaultMode: 0o400,
              },
            },
          ],
        },
      },
    });
  }
}
