import { expect, test } from '@jest/globals';
import { FailureLog } from '../../src/controller/failure-log.js';
import { createLog } from '../../src/controller/log.js';
import { KubeError } from '../../src/kube/errors.js';
import { fakeClock } from '../support/fake-clock.js';

const unreachable = () => new KubeError('unreachable', { at: 'GET /x', says: 'connect ECONNREFUSED' });
const invalid = (says = 'spec.x: no such field') => new KubeError('invalid', { at: 'PATCH /x', says });

function bench() {
  const lines: { level: string; key?: string }[] = [];
  const clock = fakeClock();
  const failures = new FailureLog(
    createLog('debug', (line) => lines.push(JSON.parse(line) as { level: string })),
    clock,
  );
  return { clock, failures, errors: () => lines.filter(({ level }) => level === 'error'), lines };
}

test('a restart of the API server, which many objects meet within seconds, is no error', async () => {
  const { clock, failures, errors, lines } = bench();
  for (let i = 0; i < 40; i++) {
    failures.failed('reconcile', unreachable(), { key: `a/${i % 8}` });
    await clock.advance(200);
  }
  expect([errors().length, lines.length]).toEqual([0, 40]);
});

test('an outage that lasts is one error, whatever number of objects meets it', async () => {
  const { clock, failures, errors } = bench();
  for (let i = 0; i < 60; i++) {
    failures.failed('reconcile', unreachable(), { key: `a/${i}` });
    await clock.advance(1_000);
  }
  expect(errors()).toHaveLength(1);
});

test('two restarts a minute apart are no outage', async () => {
  const { clock, failures, errors } = bench();
  failures.failed('lease', unreachable());
  await clock.advance(60_000);
  failures.failed('lease', unreachable());
  expect(errors()).toEqual([]);
});

test('any other failure is an error at once, and again after five minutes', async () => {
  const { clock, failures, errors } = bench();
  for (let i = 0; i < 10; i++) failures.failed('reconcile', invalid(), { key: 'a/b' }, { failures: i });
  failures.failed('reconcile', invalid(), { key: 'a/other' });
  failures.failed('reconcile', invalid('spec.y: no such field'), { key: 'a/b' });
  expect(errors().map(({ key }) => key)).toEqual(['a/b', 'a/other', 'a/b']);
  await clock.advance(300_000);
  failures.failed('reconcile', invalid(), { key: 'a/b' });
  expect(errors()).toHaveLength(4);
});

test('an error without a code is an error at once', () => {
  const { failures, errors } = bench();
  failures.failed('attempt', new TypeError('x is undefined'), { task: 'a/b' });
  expect(errors()).toHaveLength(1);
});
