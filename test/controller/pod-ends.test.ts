import { describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { PodEnds } from '../../src/controller/pod-ends.js';
import type { JsonObject } from '../../src/lib/json.js';

function pod(uid: string, status: JsonObject = {}, change: Partial<Manifest['metadata']> = {}): Manifest {
  const spec = { containers: [{ name: 'runtime', resources: { limits: { memory: '1Gi' } } }] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n', uid, ...change }, spec, status };
}
const last = (containerID: string, change: JsonObject): JsonObject => ({
  containerStatuses: [{ name: 'runtime', lastState: { terminated: { containerID, ...change } } }],
});
const oom = last('c1', { reason: 'OOMKilled', exitCode: 137 });

describe('how a Pod ended stays known', () => {
  test('after it has disappeared between two looks', () => {
    const ends = new PodEnds();
    ends.saw(pod('a'), pod('a', oom));
    ends.saw(pod('a', oom), undefined);
    expect(ends.of('a')).toMatchObject({ cause: 'OOMKilled', says: expect.stringContaining('memory limit of 1Gi') });
  });

  test('after its container was started and ended again', () => {
    const ends = new PodEnds();
    ends.saw(undefined, pod('a', oom));
    ends.saw(pod('a', oom), pod('a', last('c2', { reason: 'Error', exitCode: 1 })));
    expect(ends.of('a', 'c1')?.cause).toBe('OOMKilled');
    expect(ends.of('a', 'c2')?.cause).toBe('ContainerExited');
    expect(ends.of('a', 'c3')).toBeUndefined();
  });

  test('however often its container ended before', () => {
    const ends = new PodEnds();
    for (let count = 1; count <= 50; count++) ends.saw(undefined, pod('a', last(`c${count}`, { reason: 'Error', exitCode: 1 })));
    expect(ends.of('a', 'c50')?.cause).toBe('ContainerExited');
    expect(ends.of('a', 'c1')).toBeUndefined();
  });

  test('as what came first: the exit of a drained Pod follows from the drain', () => {
    const ends = new PodEnds();
    const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' }];
    ends.saw(pod('a'), pod('a', { conditions }));
    ends.saw(pod('a', { conditions }), pod('a', last('c1', { reason: 'Error', exitCode: 143 })));
    expect(ends.of('a')?.cause).toBe('NodeDrained');
  });

  test('as a deletion, if it went without a word', () => {
    const ends = new PodEnds();
    ends.saw(pod('a'), undefined);
    expect(ends.of('a')).toEqual({ cause: 'PodDeleted', says: 'its Pod was deleted' });
  });

  test('and of one that runs nothing is known', () => {
    const ends = new PodEnds();
    ends.saw(undefined, pod('a', { phase: 'Running' }));
    expect(ends.of('a')).toBeUndefined();
  });

  test('for a thousand Pods, of which the oldest are forgotten', () => {
    const ends = new PodEnds();
    for (let i = 0; i < 1_001; i++) ends.saw(pod(`p${i}`), undefined);
    expect([ends.of('p0'), ends.of('p1')?.cause, ends.of('p1000')?.cause]).toEqual([undefined, 'PodDeleted', 'PodDeleted']);
  });
});
