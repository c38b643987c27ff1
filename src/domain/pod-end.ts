import type { Manifest } from '../api/index.js';
import { cutBytes } from '../lib/text.js';
import { supervisorContainer } from './deployed.js';

/** What can end an instance, as conditions, events and metrics name it. Closed, so that a metric has a bounded number of series. */
export const podEndCauses = [
  'OOMKilled',
  'ContainerExited',
  'Evicted',
  'NodeDrained',
  'NodeTainted',
  'NodeLost',
  'NodeShutdown',
  'Preempted',
  'PodRejected',
  'PodFailed',
  'PodDeleted',
] as const;
export type PodEndCause = (typeof podEndCauses)[number];

/** How a Pod, or its supervisor, came to its end. */
export interface PodEnd {
  readonly cause: PodEndCause;
  /** A clause for people: `its container runtime used more than its memory limit of 2Gi and was killed (OOMKilled, exit code 137)`. */
  readonly says: string;
  /** Of the container that ended; absent if the whole Pod did. */
  readonly containerId?: string;
}

interface Terminated {
  readonly reason?: string;
  readonly exitCode?: number;
  readonly signal?: number;
  readonly containerID?: string;
  readonly finishedAt?: string;
}

interface ContainerStatus {
  readonly name?: string;
  readonly state?: { readonly terminated?: Terminated };
  readonly lastState?: { readonly terminated?: Terminated };
}

/** A condition in the status of a Pod. */
export interface PodCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

interface PodStatus {
  readonly phase?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly conditions?: readonly PodCondition[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
  readonly containerStatuses?: readonly ContainerStatus[];
}

interface PodSpec {
  readonly nodeName?: string;
  readonly containers?: readonly {
    readonly name: string;
    readonly resources?: { readonly limits?: { readonly memory?: string } };
  }[];
}

/**
 * Why a Pod is no instance any more: its supervisor's container ended, also if it was started again, or the Pod was ended as a whole.
 * `undefined` = neither, as far as its status says. What Kubernetes did on purpose comes before the exit that follows from it.
 * @param containerId of the supervisor that served; an earlier or later end of another container does not count
 */
export function podEndOf(pod: Manifest, containerId?: string): PodEnd | undefined {
  const status = (pod['status'] ?? {}) as PodStatus;
  const ended = endedContainer(status, containerId);
  if (ended?.terminated.reason === 'OOMKilled') return outOfMemory(pod, ended);
  const onPurpose = disrupted(pod, status) ?? failed(status);
  if (onPurpose) return onPurpose;
  const deletedAt = deletionAskedAt(pod);
  if (ended && !(Date.parse(ended.terminated.finishedAt ?? '') >= deletedAt)) return exited(ended);
  return Number.isNaN(deletedAt) ? undefined : { cause: 'PodDeleted', says: 'its Pod was deleted' };
}

/** Milliseconds since 1970; NaN: no request asked for it. */
function deletionAskedAt({ metadata }: Manifest): number {
  const { deletionTimestamp = '', deletionGracePeriodSeconds = 0 } = metadata;
  return Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1_000;
}

interface EndedContainer {
  readonly name: string;
  readonly terminated: Terminated;
}

/** The supervisor; of a Pod that failed as a whole, whatever else ended badly. */
function endedContainer({ phase, ...status }: PodStatus, containerId: string | undefined): EndedContainer | undefined {
  const { containerStatuses = [], initContainerStatuses = [] } = status;
  const ends = ({ name = '', state, lastState }: ContainerStatus): readonly EndedContainer[] =>
    [lastState?.terminated, state?.terminated].flatMap((terminated) => (terminated ? [{ name, terminated }] : []));
  const counts = ({ terminated }: EndedContainer) =>
    containerId === undefined || terminated.containerID === undefined || terminated.containerID === containerId;
  const own = containerStatuses.filter(({ name }) => name === supervisorContainer).flatMap(ends);
  const supervisor = own.filter(counts).at(-1);
  if (supervisor || phase !== 'Failed') return supervisor;
  return [...initContainerStatuses, ...containerStatuses].flatMap(ends).find(({ terminated }) => terminated.exitCode !== 0);
}

function outOfMemory(pod: Manifest, { name, terminated }: EndedContainer): PodEnd {
  const { containers = [] } = (pod['spec'] ?? {}) as PodSpec;
  const limit = containers.find((one) => one.name === name)?.resources?.limits?.memory;
  const used = limit === undefined ? 'more memory than its node has' : `more than its memory limit of ${limit}`;
  return {
    cause: 'OOMKilled',
    says: `its container ${name} used ${used} and was killed (OOMKilled${codeOf(terminated)})`,
    ...idOf(terminated),
  };
}

function exited({ name, terminated }: EndedContainer): PodEnd {
  const { exitCode = 0, signal = 0, reason = '' } = terminated;
  // A shell's convention, which runtimes follow.
  const by = signal > 0 ? signal : exitCode > 128 && exitCode < 160 ? exitCode - 128 : 0;
  const how = by > 0 ? `was killed by signal ${by} (exit code ${exitCode})` : `exited with code ${exitCode}`;
  const known = ['', 'Error', 'Completed'].includes(reason) ? '' : ` (${reason})`;
  return { cause: 'ContainerExited', says: `its container ${name} ${how}${known}`, ...idOf(terminated) };
}

const codeOf = ({ exitCode }: Terminated): string => (exitCode === undefined ? '' : `, exit code ${exitCode}`);
const idOf = ({ containerID }: Terminated): Pick<PodEnd, 'containerId'> =>
  containerID === undefined ? {} : { containerId: containerID };

/** Reasons of the condition `DisruptionTarget`, and what they mean for the user. */
const disruptions: Readonly<Record<string, (node: string) => Pick<PodEnd, 'cause' | 'says'>>> = {
  EvictionByEvictionAPI: (node) => ({ cause: 'NodeDrained', says: `its Pod was evicted${node}, as a drain of the node does` }),
  DeletionByTaintManager: (node) => ({ cause: 'NodeTainted', says: `its Pod was evicted${node} by a taint of the node` }),
  DeletionByPodGC: (node) => ({ cause: 'NodeLost', says: `its Pod was removed${node}, which is gone` }),
  PreemptionByScheduler: (node) => ({ cause: 'Preempted', says: `its Pod was preempted${node} by one of higher priority` }),
};

function disrupted({ spec }: Manifest, { conditions = [] }: PodStatus): PodEnd | undefined {
  const { nodeName } = (spec ?? {}) as PodSpec;
  const target = conditions.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True');
  const { reason = '', message = '' } = target ?? {};
  const tell = Object.hasOwn(disruptions, reason) ? disruptions[reason] : undefined;
  const told = tell?.(nodeName === undefined ? '' : ` from node ${nodeName}`);
  return told && { ...told, says: `${told.says}${quoted(message)}` };
}

/** Reasons that a kubelet gives a Pod which it ends as a whole. */
const failures: Readonly<Record<string, Pick<PodEnd, 'cause' | 'says'>>> = {
  Evicted: { cause: 'Evicted', says: 'its Pod was evicted by its node' },
  NodeLost: { cause: 'NodeLost', says: 'its node is lost' },
  Terminated: { cause: 'NodeShutdown', says: 'its node was shut down' },
  NodeShutdown: { cause: 'NodeShutdown', says: 'its node was shut down' },
  Shutdown: { cause: 'NodeShutdown', says: 'its node was shut down' },
  Preempting: { cause: 'Preempted', says: 'its Pod was preempted by one of higher priority' },
  DeadlineExceeded: { cause: 'PodFailed', says: 'its Pod ran for longer than it may' },
};

function failed({ phase, reason, message = '' }: PodStatus): PodEnd | undefined {
  if (phase !== 'Failed' || reason === undefined || reason === '') return undefined;
  const rejected = { cause: 'PodRejected', says: `its node did not take its Pod (${reason})` } as const;
  const told = (Object.hasOwn(failures, reason) ? failures[reason] : undefined) ?? rejected;
  return { ...told, says: `${told.says}${quoted(message)}` };
}

/** Bytes of what a node says. What a container says of its end is the agent's to write, and never repeated. */
const longestQuote = 300;

function quoted(message: string): string {
  const text = cutBytes(message.replaceAll(/\p{C}/gu, ' ').trim(), longestQuote, '…');
  return text === '' ? '' : `: ${text}`;
}
