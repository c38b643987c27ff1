import type { Manifest } from '../../api/index.js';
import { deployedIdentity, supervisorContainer } from '../../domain/deployed.js';
import type { PodCondition } from '../../domain/pod-end.js';
import { isObject } from '../../lib/json.js';
import { nodeOf } from '../world.js';
import type { PodView } from './observation.js';

interface ContainerStatus {
  readonly name?: string;
  readonly containerID?: string;
  readonly state?: { readonly waiting?: { readonly reason?: string } };
}

interface PodStatus {
  readonly phase?: string;
  /** Of a dual-stack Pod its first address: the family that the cluster prefers. All of them lead to the same attested Pod. */
  readonly podIP?: string;
  readonly conditions?: readonly PodCondition[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
  readonly containerStatuses?: readonly ContainerStatus[];
}

/** Reasons of a waiting container that need somebody. Source: workload.md §7.4. */
const stuck: readonly string[] = [
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'CreateContainerConfigError',
  'RunContainerError',
  'CrashLoopBackOff',
];

const cordonTaint = 'node.kubernetes.io/unschedulable';

export function podView(pod: Manifest): PodView {
  const {
    phase,
    podIP,
    conditions = [],
    containerStatuses = [],
    initContainerStatuses = [],
  } = (pod['status'] ?? {}) as PodStatus;
  const deleting = pod.metadata.deletionTimestamp !== undefined;
  const finished = phase === 'Succeeded' || phase === 'Failed';
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled');
  // Whatever admission put beside the supervisor may keep it from starting, or the Pod from being ready.
  const waiting = [...initContainerStatuses, ...containerStatuses].map(({ state }) => state?.waiting?.reason);
  return {
    live: pod,
    uid: pod.metadata.uid ?? '',
    name: pod.metadata.name,
    namespace: pod.metadata.namespace ?? '',
    address: deleting || finished || podIP === '' ? undefined : podIP,
    deleting,
    finished,
    ready: !deleting && phase === 'Running' && conditions.some(({ type, status }) => type === 'Ready' && status === 'True'),
    containerId: containerStatuses.find(({ name }) => name === supervisorContainer)?.containerID,
    waiting: waiting.find((reason) => reason !== undefined && stuck.includes(reason)),
    node: nodeOf(pod),
    toleratesCordon: toleratesCordon(pod),
    unschedulable:
      scheduled?.status === 'False'
        ? { reason: scheduled.reason ?? 'SchedulingFailed', message: scheduled.message ?? '' }
        : undefined,
    identity: deployedIdentity(pod),
  };
}

interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

/** What tolerates the taint that cordoning sets would come back to the same node at once. */
function toleratesCordon({ spec }: Manifest): boolean {
  const tolerations = (isObject(spec) ? (spec['tolerations'] ?? []) : []) as readonly Toleration[];
  return tolerations.some(({ key = '', operator = 'Equal', value = '', effect = '' }) => {
    const matches = operator === 'Exists' ? ['', cordonTaint].includes(key) : key === cordonTaint && value === '';
    return matches && ['', 'NoSchedule'].includes(effect);
  });
}
