import { describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { kinds, validate } from '../../src/api/index.js';
import { conditionProblems, kstatusOf } from '../support/kstatus.js';
import { writtenClasses, writtenPools, writtenTasks } from '../support/written-statuses.js';
import type { Written } from '../support/written-statuses.js';

const all = [...writtenClasses, ...writtenPools, ...writtenTasks];
const told = (written: readonly Written[]) => Object.fromEntries(written.map(({ says, object }) => [says, kstatusOf(object)]));

/** The object after a change of its spec that the controller has not seen. */
const newer = ({ metadata, ...rest }: Manifest): Manifest => ({
  ...rest,
  metadata: { ...metadata, generation: (metadata.generation ?? 0) + 1 },
});

describe.each(all)('the status of a $object.kind that is $says', ({ object }) => {
  test('has conditions as Kubernetes and kstatus want them', () => {
    expect(conditionProblems(object)).toEqual([]);
  });

  test('is one that its schema accepts', () => {
    const kind = kinds.find((one) => one.kind === object.kind)!;
    expect(validate(kind, object).filter(({ field }) => field.startsWith('status'))).toEqual([]);
  });

  test('is Terminating while the object is being deleted', () => {
    const metadata = { ...object.metadata, deletionTimestamp: '2030-01-01T00:00:00Z' };
    expect(kstatusOf({ ...object, metadata })).toBe('Terminating');
  });
});

test('a class is current when it is approved, in progress while it may yet be approved, and failed when only a person can help', () => {
  expect(told(writtenClasses)).toEqual({
    Approved: 'Current',
    Drifted: 'InProgress',
    Invalid: 'Failed',
    Ambiguous: 'Failed',
  });
});

test('a class and a pool whose new generation the controller has not seen are in progress', () => {
  const seen = [...writtenClasses, ...writtenPools].map(({ object }) => kstatusOf(newer(object)));
  expect(new Set(seen)).toEqual(new Set(['InProgress']));
});

test('a pool has no Ready: it is current once its generation is seen, and whether it serves is for its health check', () => {
  expect(new Set(Object.values(told(writtenPools)))).toEqual(new Set(['Current']));
});

test('a Task is current at once, as a Job is: nobody waits for an answer to be delivered', () => {
  expect(new Set(Object.values(told(writtenTasks)))).toEqual(new Set(['Current']));
});

describe('the oracle knows the order of the rules', () => {
  const condition = (type: string, status: string) => ({ type, status, reason: 'X', message: 'x', lastTransitionTime: 'x' });
  const object = (observedGeneration: number | undefined, ...conditions: readonly object[]): Manifest =>
    ({
      apiVersion: 'x/v1',
      kind: 'X',
      metadata: { name: 'x', generation: 2 },
      status: { ...(observedGeneration === undefined ? {} : { observedGeneration }), conditions },
    }) as unknown as Manifest;

  test.each([
    ['nothing', object(undefined), 'Current'],
    ['an old generation before Stalled', object(1, condition('Stalled', 'True')), 'InProgress'],
    ['Reconciling before Stalled', object(2, condition('Stalled', 'True'), condition('Reconciling', 'True')), 'InProgress'],
    ['Stalled before Ready', object(2, condition('Ready', 'True'), condition('Stalled', 'True')), 'Failed'],
    ['Ready False', object(2, condition('Ready', 'False')), 'InProgress'],
    ['Ready Unknown', object(2, condition('Ready', 'Unknown')), 'InProgress'],
    ['Ready True', object(2, condition('Ready', 'True')), 'Current'],
  ])('%s', (_, manifest, expected) => {
    expect(kstatusOf(manifest)).toBe(expected);
  });

  test('a condition that kstatus wants left out unless it is true is a problem', () => {
    expect(conditionProblems(object(3, condition('Stalled', 'False')))).toEqual([
      'observedGeneration is ahead',
      'Stalled: time x',
      'Stalled is there although it is False',
    ]);
  });
});
