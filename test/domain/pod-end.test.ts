import { describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { podEndCauses, podEndOf } from '../../src/domain/pod-end.js';
import type { PodEndCause } from '../../src/domain/pod-end.js';
import type { JsonObject } from '../../src/lib/json.js';

const limits = { cpu: '2', memory: '2Gi' };

function pod(status: JsonObject, { deleting = false, memory = true } = {}): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'n', uid: 'u', ...(deleting ? { deletionTimestamp: '2030-01-01T00:00:00Z' } : {}) },
    spec: { nodeName: 'node1', containers: [{ name: 'runtime', resources: memory ? { limits } : {} }, { name: 'sidecar' }] },
    status,
  };
}
const container = (state: JsonObject, lastState: JsonObject = {}, name = 'runtime'): JsonObject => ({ name, state, lastState });
const runs = { running: { startedAt: '2030-01-01T00:00:00Z' } };
const terminated = (change: JsonObject): JsonObject => ({ terminated: { containerID: 'containerd://1', ...change } });
const oom = terminated({ reason: 'OOMKilled', exitCode: 137 });
const one = (state: JsonObject, lastState: JsonObject = {}): JsonObject => ({
  phase: 'Running',
  containerStatuses: [container(state, lastState)],
});
const disrupted = (reason: string, message = '', more: JsonObject = {}): JsonObject => ({
  phase: 'Running',
  conditions: [{ type: 'DisruptionTarget', status: 'True', reason, message }],
  ...more,
});
const killed = 'its container runtime used more than its memory limit of 2Gi and was killed (OOMKilled, exit code 137)';

const rows: readonly (readonly [string, Manifest, PodEndCause, string])[] = [
  ['out of memory, and started again', pod(one(runs, oom)), 'OOMKilled', killed],
  ['out of memory, and not started again yet', pod(one(oom)), 'OOMKilled', killed],
  ['out of memory, and waiting to be started', pod(one({ waiting: { reason: 'CrashLoopBackOff' } }, oom)), 'OOMKilled', killed],
  ['out of memory, then deleted', pod(one(oom), { deleting: true }), 'OOMKilled', killed],
  [
    'out of memory without a limit',
    pod(one(runs, oom), { memory: false }),
    'OOMKilled',
    'its container runtime used more memory than its node has and was killed (OOMKilled, exit code 137)',
  ],
  [
    'exited with a code',
    pod(one(runs, terminated({ reason: 'Error', exitCode: 3 }))),
    'ContainerExited',
    'its container runtime exited with code 3',
  ],
  [
    'exited with success',
    pod({ ...one(terminated({ reason: 'Completed', exitCode: 0 })), phase: 'Succeeded' }),
    'ContainerExited',
    'its container runtime exited with code 0',
  ],
  [
    'killed by a signal, as a runtime writes it',
    pod(one(runs, terminated({ reason: 'Error', exitCode: 137 }))),
    'ContainerExited',
    'its container runtime was killed by signal 9 (exit code 137)',
  ],
  [
    'killed by a signal, as Kubernetes has a field for it',
    pod(one(runs, terminated({ reason: 'Error', exitCode: 139, signal: 11 }))),
    'ContainerExited',
    'its container runtime was killed by signal 11 (exit code 139)',
  ],
  [
    'not started',
    pod(one({ waiting: {} }, terminated({ reason: 'StartError', exitCode: 128 }))),
    'ContainerExited',
    'its container runtime exited with code 128 (StartError)',
  ],
  [
    'evicted by its node',
    pod({
      phase: 'Failed',
      reason: 'Evicted',
      message: 'Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ',
      conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet' }],
      containerStatuses: [container(terminated({ reason: 'Error', exitCode: 137 }))],
    }),
    'Evicted',
    'its Pod was evicted by its node: Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.',
  ],
  [
    'drained',
    pod(disrupted('EvictionByEvictionAPI', 'Eviction API: evicting', one(terminated({ reason: 'Error', exitCode: 143 }))), {
      deleting: true,
    }),
    'NodeDrained',
    'its Pod was evicted from node node1, as a drain of the node does: Eviction API: evicting',
  ],
  [
    'evicted by a taint',
    pod(disrupted('DeletionByTaintManager', 'Taint manager: deleting due to NoExecute taint'), { deleting: true }),
    'NodeTainted',
    'its Pod was evicted from node node1 by a taint of the node: Taint manager: deleting due to NoExecute taint',
  ],
  [
    'on a node that is gone',
    pod(disrupted('DeletionByPodGC', 'PodGC: node no longer exists')),
    'NodeLost',
    'its Pod was removed from node node1, which is gone: PodGC: node no longer exists',
  ],
  [
    'preempted',
    pod(disrupted('PreemptionByScheduler', 'default-scheduler: preempting'), { deleting: true }),
    'Preempted',
    'its Pod was preempted from node node1 by one of higher priority: default-scheduler: preempting',
  ],
  [
    'on a node that shuts down',
    pod({ phase: 'Failed', reason: 'Terminated', message: 'Pod was terminated in response to imminent node shutdown.' }),
    'NodeShutdown',
    'its node was shut down: Pod was terminated in response to imminent node shutdown.',
  ],
  [
    'not taken by its node',
    pod({ phase: 'Failed', reason: 'OutOfcpu', message: 'Node did not have enough resource: cpu' }),
    'PodRejected',
    'its node did not take its Pod (OutOfcpu): Node did not have enough resource: cpu',
  ],
  ['over its time', pod({ phase: 'Failed', reason: 'DeadlineExceeded' }), 'PodFailed', 'its Pod ran for longer than it may'],
  [
    'failed for a container beside the supervisor',
    pod({ phase: 'Failed', initContainerStatuses: [container(terminated({ reason: 'Error', exitCode: 2 }), {}, 'mesh')] }),
    'ContainerExited',
    'its container mesh exited with code 2',
  ],
  ['deleted', pod(one(runs), { deleting: true }), 'PodDeleted', 'its Pod was deleted'],
  [
    'deleted, and therefore stopped',
    pod(one(terminated({ reason: 'Error', exitCode: 143, finishedAt: '2030-01-01T00:00:05Z' })), { deleting: true }),
    'PodDeleted',
    'its Pod was deleted',
  ],
  [
    'deleted after it had exited',
    pod(one(terminated({ reason: 'Error', exitCode: 3, finishedAt: '2029-12-31T23:59:55Z' })), { deleting: true }),
    'ContainerExited',
    'its container runtime exited with code 3',
  ],
];

describe('how a Pod came to its end', () => {
  test.each(rows)('%s', (_, object, cause, says) => {
    expect(podEndOf(object)).toMatchObject({ cause, says });
  });

  test('every cause has a row', () => {
    expect([...new Set(rows.map(([, , cause]) => cause))].sort()).toEqual([...podEndCauses].sort());
  });

  test.each([
    ['runs', one(runs)],
    ['has no status yet', {}],
    [
      'has a container beside the supervisor that was started again',
      { ...one(runs), containerStatuses: [container(runs), container(runs, oom, 'sidecar')] },
    ],
  ])('a Pod that %s has not ended', (_, status) => {
    expect(podEndOf(pod(status))).toBeUndefined();
  });

  test('the end of a container that served another time does not count', () => {
    const restarted = pod(one(runs, oom));
    expect(podEndOf(restarted, 'containerd://2')).toBeUndefined();
    expect(podEndOf(restarted, 'containerd://1')).toMatchObject({ cause: 'OOMKilled', containerId: 'containerd://1' });
  });

  test.each(['constructor', 'toString', '__proto__'])('a reason that is no reason is told like any unknown one: %s', (reason) => {
    const of = (status: object) => podEndOf({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, status } as never);
    expect(of({ phase: 'Failed', reason })).toEqual({ cause: 'PodRejected', says: `its node did not take its Pod (${reason})` });
    expect(of({ conditions: [{ type: 'DisruptionTarget', status: 'True', reason }] })).toBeUndefined();
  });

  test('what a container says of its end is not repeated, and what a node says is bounded', () => {
    const talks = pod(one(runs, terminated({ reason: 'Error', exitCode: 1, message: 'token sk-1234' })));
    expect(JSON.stringify(podEndOf(talks))).not.toContain('sk-1234');
    const long = pod({ phase: 'Failed', reason: 'Evicted', message: `a\u0007\n${'x'.repeat(5_000)}` });
    expect(podEndOf(long)?.says).toMatch(/^its Pod was evicted by its node: a {2}x{200,300}…$/);
  });
});
