import type { Chart } from 'cdk8s';
import { Sandbox } from 'orka-workspaces';
import { disk, resources } from './shared.js';

const device = (name: string, path: string) => ({ name, hostPath: { path, type: 'CharDevice' } });

/** Windows in a virtual machine: it needs devices of the node and all privileges, and both are said by name. */
export function windows(chart: Chart): void {
  new Sandbox(chart, 'sandbox', {
    metadata: { name: 'desktop' },
    allow: ['pod/host-path', 'pod/privileged'],
    volumeClaimTemplates: [disk('storage', '64Gi')],
    podTemplate: {
      metadata: { labels: { sandbox: 'windows-sandbox' } },
      spec: {
        terminationGracePeriodSeconds: 120,
        containers: [
          {
            name: 'windows',
            image: 'dockurr/windows:6.00',
            imagePullPolicy: 'IfNotPresent',
            env: [
              { name: 'VERSION', value: '11' },
              { name: 'DISK_SIZE', value: '64G' },
            ],
            resources: resources(['2', '4Gi'], ['4', '8Gi']),
            ports: [
              { containerPort: 8006, name: 'http', protocol: 'TCP' },
              { containerPort: 3389, name: 'rdp-tcp', protocol: 'TCP' },
              { containerPort: 3389, name: 'rdp-udp', protocol: 'UDP' },
              { containerPort: 5900, name: 'vnc', protocol: 'TCP' },
            ],
            securityContext: { privileged: true },
            volumeMounts: [
              { name: 'storage', mountPath: '/storage' },
              { name: 'dev-kvm', mountPath: '/dev/kvm' },
              { name: 'dev-tun', mountPath: '/dev/net/tun' },
            ],
          },
        ],
        volumes: [device('dev-kvm', '/dev/kvm'), device('dev-tun', '/dev/net/tun')],
      },
    },
  });
}
