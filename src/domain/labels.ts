/** Keys that live objects carry; dashboards and policies of users select on them. Source: workload.md §3.3–3.7, dispatch.md §1.5. */
export const labelKeys = {
  managedBy: 'app.kubernetes.io/managed-by',
  name: 'app.kubernetes.io/name',
  networkRole: 'orka.ai/network-role',
  poolKey: 'orka.ai/runtime-pool-key',
  poolName: 'orka.ai/runtime-pool-name',
  poolNamespace: 'orka.ai/runtime-pool-namespace',
  poolUid: 'orka.ai/runtime-pool-uid',
  runtimePool: 'orka.ai/acp-runtime-pool',
  trustDomain: 'orka.ai/acp-trust-domain',
  profile: 'orka.ai/acp-profile',
  workspaceProvider: 'orka.ai/acp-execution-workspace-provider',
  poolAuth: 'orka.ai/runtime-pool-auth',
  providerCredential: 'orka.ai/runtime-pool-provider-credential',
  controllerEpoch: 'orka.ai/runtime-pool-controller-epoch',
  providerGeneration: 'orka.ai/runtime-pool-provider-generation',
  parentTask: 'orka.ai/parent-task',
  taskPool: 'orka.ai/runtime-pool',
  taskUid: 'orka.ai/task-uid',
} as const;

export const annotationKeys = {
  profileDigest: 'orka.ai/runtime-profile-digest',
  tokenGeneration: 'orka.ai/provider-token-generation',
  pidsLimit: 'orka.ai/runtime-pids-limit',
  templateRevision: 'orka.ai/runtime-template-revision',
  lastDemandAt: 'orka.ai/acp-last-demand-at',
  poolClass: 'orka.ai/runtime-pool-class',
  /** Of a pool that belongs to one Task: the name of the Task. Objects of the provider never carry it: they are attested byte for byte. */
  task: 'orka.ai/task',
  /** Which Pod the credentials of a pool were made for; see {@link authSecretAnnotation} for the credentials themselves. */
  instanceBinding: 'orka.ai/bootstrap-instance-binding',
  /** Digest of the stored SandboxTemplate's spec. */
  templateIntegrity: 'orka.ai/sandbox-template-revision',
  queuedAt: 'orka.ai/acp-queued-at',
  /** Of the publisher's Pods: digest of its configuration, so that a change of it rolls them. */
  publisherConfig: 'orka.ai/publisher-config-digest',
  /** Of a namespace: `true` lets no new Task begin. */
  paused: 'orka.ai/paused',
} as const;

export const finalizers = { pool: 'orka.ai/runtime-pool-cleanup', task: 'orka.ai/cleanup' } as const;

/** Annotation of a pool that names its auth Secret of one controller epoch, as `<name>/<UID>`. Source: workload.md §3.7. */
export const authSecretAnnotation = (epoch: number): string => `orka.ai/private-auth-secret-e${epoch}`;

/** Whether an annotation is one of {@link authSecretAnnotation}, of whatever epoch. */
export const isAuthSecretAnnotation = (key: string): boolean => /^orka\.ai\/private-auth-secret-e[1-9]\d*$/.test(key);

/** Pod label that the sandbox's isolation policies admit: the controller's Pods in the controller's namespace. */
export const controllerRole = { [labelKeys.networkRole]: 'controller' } as const;

/** Label of every sandbox's Pod, by which providers and the publisher admit it. */
export const sandboxRole = { [labelKeys.networkRole]: 'provider-client' } as const;

/** Pod label of the publisher: sandboxes and the controller may connect to it. */
export const publisherRole = { [labelKeys.networkRole]: 'workspace-publisher' } as const;

/** Identity of a pool as its children carry it. */
export interface PoolLabels {
  readonly poolKey: string;
  readonly poolName: string;
  readonly poolNamespace: string;
  readonly poolUid: string;
}

/**
 * The labels of every child and of the Pod; an object without all of them, exactly, is not ours and is never touched.
 * Source: workload.md §3.3.
 */
export function commonLabels(pool: PoolLabels): Readonly<Record<string, string>> {
  return {
    [labelKeys.managedBy]: 'orka',
    [labelKeys.name]: 'orka-acp-runtime',
    ...sandboxRole,
    [labelKeys.poolKey]: pool.poolKey,
    [labelKeys.poolName]: pool.poolName,
    [labelKeys.poolNamespace]: pool.poolNamespace,
    [labelKeys.poolUid]: pool.poolUid,
  };
}
