import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { healthOf } from '../support/lua.js';
import { writtenClasses, writtenPools, writtenTasks } from '../support/written-statuses.js';
import type { Written } from '../support/written-statuses.js';

const script = (name: string): string => readFileSync(`gitops/argocd/${name}.lua`, 'utf8');
const told = (name: string, written: readonly Written[]) =>
  Object.fromEntries(written.map(({ says, object }) => [says, healthOf(script(name), object).status]));
const without = ({ status: _status, ...object }: Manifest): Manifest => object;
const newer = (object: Manifest): Manifest => ({ ...object, metadata: { ...object.metadata, generation: 99 } });

test('a class is healthy when it is approved, and degraded when only a person can help', () => {
  expect(told('runtime-pool-class', writtenClasses)).toEqual({
    Approved: 'Healthy',
    Drifted: 'Progressing',
    Invalid: 'Degraded',
    Ambiguous: 'Degraded',
  });
});

test('a pool is healthy when it does what is wanted', () => {
  expect(told('runtime-pool', writtenPools)).toEqual({
    Starting: 'Progressing',
    Serving: 'Healthy',
    'Serving at capacity': 'Healthy',
    'Serving, not wanted': 'Progressing',
    Draining: 'Progressing',
    Quiescent: 'Progressing',
    Stopping: 'Progressing',
    Stopped: 'Healthy',
    'Stopped, wanted again': 'Progressing',
    Degraded: 'Degraded',
    'timed out': 'Degraded',
    Ambiguous: 'Degraded',
  });
});

test('a Task is healthy when it succeeded', () => {
  expect(told('task', writtenTasks)).toEqual({
    'not seen yet': 'Progressing',
    Pending: 'Progressing',
    Running: 'Progressing',
    Finalizing: 'Progressing',
    Succeeded: 'Healthy',
    Failed: 'Degraded',
    Cancelled: 'Degraded',
    Scheduled: 'Suspended',
  });
});

describe.each([
  ['runtime-pool-class', writtenClasses],
  ['runtime-pool', writtenPools],
] as const)('%s', (name, written) => {
  test('is progressing while the controller has not seen it', () => {
    for (const { object } of written) {
      const unseen = { status: 'Progressing', message: 'the controller has not seen this generation yet' };
      expect(healthOf(script(name), without(object))).toEqual(unseen);
      expect(healthOf(script(name), { ...object, status: {} })).toEqual(unseen);
      expect(healthOf(script(name), newer(object))).toEqual(unseen);
    }
  });
});

test('a pool that is being deleted is progressing, however well it serves', () => {
  const { object } = writtenPools[1]!;
  const metadata = { ...object.metadata, deletionTimestamp: '2030-01-01T00:00:00Z' };
  expect(healthOf(script('runtime-pool'), { ...object, metadata }).status).toBe('Progressing');
});

test('whatever is not healthy says why, in the words of the status', () => {
  for (const [name, written] of [
    ['runtime-pool-class', writtenClasses],
    ['runtime-pool', writtenPools],
    ['task', writtenTasks.filter(({ says }) => says !== 'Scheduled')],
  ] as const) {
    for (const { object } of written) {
      const { status, message } = healthOf(script(name), object);
      if (status !== 'Healthy') expect(message).toMatch(/\w+/);
    }
  }
  expect(healthOf(script('task'), writtenTasks[5]!.object).message).toBe('the instance is gone');
});

test('no check uses what Argo CD does not give it', () => {
  expect(() => healthOf('return { status = string.upper("x") }', {})).toThrow('the health check failed');
});
