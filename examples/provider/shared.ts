import type { NetworkPolicyEgressRule } from 'orka-workspaces';

/** DNS on both of its protocols. */
export const dnsPorts = [
  { protocol: 'UDP', port: 53 },
  { protocol: 'TCP', port: 53 },
] as const;

/** Names from any server and HTTPS to anyone: rules without peers, which `allow: ['network-policy/open-rule']` has to name. */
export const dnsAndHttps: readonly NetworkPolicyEgressRule[] = [
  { to: [], ports: dnsPorts },
  { to: [], ports: [{ protocol: 'TCP', port: 443 }] },
];

/** Pods of the provider's router. */
export const router = { podSelector: { matchLabels: { app: 'sandbox-router' } } };

/** A user without rights. */
export const user = (id: number) => ({
  runAsNonRoot: true,
  runAsUser: id,
  runAsGroup: id,
  fsGroup: id,
});

/** A container without capabilities, which cannot get more. */
export const confined = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };

/** A node pool of gVisor, on GKE. */
export const gvisor = {
  runtimeClassName: 'gvisor',
  nodeSelector: { 'sandbox.gke.io/runtime': 'gvisor' },
  tolerations: [{ key: 'sandbox.gke.io/runtime', value: 'gvisor', effect: 'NoSchedule' }],
};

/** A volume of one writer. */
export const disk = (name: string, storage: string) => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
});

/** A variable from a Secret. */
export const fromSecret = (name: string, secret: string, key: string) => ({
  name,
  valueFrom: { secretKeyRef: { name: secret, key } },
});

/** Requests and limits. */
export const resources = (request: readonly [cpu: string, memory: string], limit: readonly [cpu: string, memory: string]) => ({
  requests: { cpu: request[0], memory: request[1] },
  limits: { cpu: limit[0], memory: limit[1] },
});
