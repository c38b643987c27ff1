import type { Chart } from 'cdk8s';
import { SandboxTemplate, SandboxWarmPool } from 'orka-workspaces';
import { confined, dnsPorts, gvisor, resources, user } from './shared.js';

const ofPod = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });

/** Warm members whose data is mounted from outside once they are claimed; until then they wait for a file. The way out is DNS alone. */
export function lateBind(chart: Chart): void {
  const template = new SandboxTemplate(chart, 'template', {
    metadata: { name: 'late' },
    networkPolicy: { egress: [{ to: [], ports: dnsPorts }] },
    allow: ['network-policy/open-rule'],
    podTemplate: {
      metadata: { annotations: { 'dev.gvisor.empty-dir.workspace-volume.force-shared': 'true' } },
      spec: {
        ...gvisor,
        restartPolicy: 'OnFailure',
        automountServiceAccountToken: false,
        securityContext: user(1000),
        containers: [
          {
            name: 'agent',
            image: 'registry.k8s.io/agent-sandbox/python-runtime-sandbox:v0.1.0',
            resources: resources(['250m', '512Mi'], ['500m', '1Gi']),
            securityContext: confined,
            volumeMounts: [{ name: 'workspace-volume', mountPath: '/workspace', mountPropagation: 'HostToContainer' }],
            env: [
              ofPod('POD_UID', 'metadata.uid'),
              ofPod('NODE_IP', 'status.hostIP'),
              { name: 'VOLUME_NAME', value: 'workspace-volume' },
              { name: 'MOUNT_PATH', value: '/workspace' },
              { name: 'SUB_DIR', value: 'user_data' },
            ],
            command: ['/bin/sh', '-c'],
            args: ['until test -e "$MOUNT_PATH/.ready"; do sleep 0.1; done; cd "$MOUNT_PATH/$SUB_DIR"; exec sleep infinity'],
          },
        ],
        volumes: [{ name: 'workspace-volume', emptyDir: {} }],
      },
    },
  });
  new SandboxWarmPool(chart, 'pool', { metadata: { name: 'late' }, template, replicas: 2 });
}
