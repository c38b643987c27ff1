import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { count, requestsOf } from './support/audit.js';

const us = 'system:serviceaccount:ours:controller';
const second = (n: number) => new Date(Date.UTC(2020, 0, 1, 0, 0, n)).toISOString();
const line = (at: number, verb: string, more: object = {}) =>
  JSON.stringify({
    stage: 'ResponseComplete',
    verb,
    requestURI: '/api/v1/pods?limit=500',
    user: { username: us },
    objectRef: { resource: 'pods' },
    requestReceivedTimestamp: second(at),
    ...more,
  });
let folder = '';
const log = () => join(folder, 'audit.log');

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'orka-audit-'));
  writeFileSync(join(folder, 'audit-2020-01-01T00-00-05.000.log'), `${line(1, 'list')}\n${line(3, 'get')}\n`);
  const now = [
    line(9, 'patch', { objectRef: { resource: 'runtimepools', subresource: 'status' } }),
    line(6, 'get', { user: { username: us, extra: { 'authentication.kubernetes.io/pod-name': ['controller-1'] } } }),
    line(7, 'get', { user: { username: `${us}-2` } }),
    line(7, 'get', { user: { username: 'admin' }, impersonatedUser: { username: us } }),
    line(8, 'watch', { stage: 'ResponseStarted' }),
    line(8, 'watch'),
    line(9, 'get', { objectRef: undefined, requestURI: '/apis/core.orka.ai/v1alpha1?timeout=5s' }),
  ];
  writeFileSync(log(), `${now.join('\n')}\n${line(9, 'delete').slice(0, 90)}`);
  writeFileSync(join(folder, 'other.log'), `${line(7, 'delete')}\n`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the requests of an account', () => {
  test('are read from all that the server wrote, in the order in which it received them', async () => {
    const found = await requestsOf(log(), us, 0);
    expect(found.map(({ what }) => what)).toEqual([
      'list pods',
      'get pods',
      'get pods',
      'watch pods',
      'patch runtimepools/status',
      'get /apis/core.orka.ai/v1alpha1',
    ]);
  });

  test('begin at the moment that is asked for', async () => {
    expect(await requestsOf(log(), us, Date.parse(second(9)))).toHaveLength(2);
  });

  test('say which Pod asked', async () => {
    expect((await requestsOf(log(), us, 0)).flatMap(({ pod }) => pod ?? [])).toEqual(['controller-1']);
  });

  test('are counted by sort, and watches apart, each once', async () => {
    expect(count(await requestsOf(log(), us, 0))).toEqual({
      requests: 5,
      watches: 1,
      by: new Map([
        ['get pods', 2],
        ['get /apis/core.orka.ai/v1alpha1', 1],
        ['list pods', 1],
        ['patch runtimepools/status', 1],
      ]),
    });
  });
});
