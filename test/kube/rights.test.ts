import { afterEach, describe, expect, test } from '@jest/globals';
import { createTransport } from '../../src/kube/transport.js';
import type { Transport } from '../../src/kube/transport.js';
import { describeRight, MissingRights, notingRights, rightOf } from '../../src/kube/rights.js';
import type { Right } from '../../src/kube/rights.js';
import { fakeApi, forbid, reply } from '../support/fake-api.js';
import type { FakeApi } from '../support/fake-api.js';
import { fakeClock } from '../support/fake-clock.js';

type Request = Parameters<typeof rightOf>[0];
const tasks = '/apis/core.orka.ai/v1alpha1/namespaces/team-a/tasks';

describe('the right that a request needs', () => {
  test.each<[Request, string]>([
    [{ method: 'GET', path: tasks }, 'list tasks.core.orka.ai in namespace team-a'],
    [{ method: 'GET', path: tasks, query: { watch: true } }, 'watch tasks.core.orka.ai in namespace team-a'],
    [{ method: 'GET', path: `${tasks}/one` }, 'get tasks.core.orka.ai in namespace team-a'],
    [{ method: 'PATCH', path: `${tasks}/one/status` }, 'patch tasks.core.orka.ai/status in namespace team-a'],
    [{ method: 'POST', path: '/api/v1/namespaces/team-a/secrets' }, 'create secrets in namespace team-a'],
    [{ method: 'PUT', path: '/api/v1/namespaces/a/services/one' }, 'update services in namespace a'],
    [{ method: 'DELETE', path: '/api/v1/namespaces/a/pods/one' }, 'delete pods in namespace a'],
    [{ method: 'GET', path: '/api/v1/namespaces/team-a' }, 'get namespaces team-a in the cluster'],
    [{ method: 'GET', path: '/api/v1/nodes', query: { watch: true } }, 'watch nodes in the cluster'],
    [
      { method: 'GET', path: '/api/v1/namespaces/a/secrets', query: { fieldSelector: 'metadata.name=proxy', watch: true } },
      'watch secrets proxy in namespace a',
    ],
  ])('%j', (request, expected) => {
    const right = rightOf(request);
    expect(right && describeRight(right)).toBe(expected);
  });

  test.each(['/api/v1', '/apis/core.orka.ai/v1alpha1', '/openapi/v3', '/readyz'])('to read %s is none', (path) => {
    expect(rightOf({ method: 'GET', path })).toBeUndefined();
  });
});

describe('a right', () => {
  const right: Right = { verb: 'list', resource: 'pods', namespace: 'a' };
  const changes: string[] = [];
  const clock = fakeClock();
  const rights = new MissingRights({ onChange: (one, missing) => changes.push(`${describeRight(one)}: ${missing}`), clock });

  test('is missing after three refusals in a row, which is told once', () => {
    for (let times = 0; times < 2; times++) rights.refused(right);
    rights.granted(right);
    for (let times = 0; times < 2; times++) rights.refused(right);
    expect([rights.list(), changes]).toEqual([[], []]);
    for (let times = 0; times < 5; times++) rights.refused(right);
    expect([rights.list(), changes]).toEqual([[right], ['list pods in namespace a: true']]);
  });

  test('that is granted again is told once', () => {
    rights.granted(right);
    rights.granted(right);
    expect([rights.list(), changes.slice(1)]).toEqual([[], ['list pods in namespace a: false']]);
  });

  test('that nothing needs any more is forgotten', async () => {
    for (let times = 0; times < 3; times++) rights.refused(right);
    await clock.advance(1_200_001);
    expect(rights.list()).toEqual([]);
  });
});

describe('over a transport', () => {
  let api: FakeApi;
  let transport: Transport;
  afterEach(async () => {
    transport.close();
    await api.close();
  });

  test('refusals of the authorizer count, those of a quota do not, and a success ends them', async () => {
    let granted = false;
    api = await fakeApi((request, response) => {
      if (granted) reply(response, 200, { kind: 'Secret' });
      else if (request.method === 'GET') forbid(response, ['get', 'secrets', '', 'a']);
      else reply(response, 403, { kind: 'Status', reason: 'Forbidden', message: 'secrets "x" is forbidden: exceeded quota: q' });
    });
    transport = createTransport({ server: api.url, credentials: () => ({}) });
    const rights = new MissingRights({ onChange: () => undefined });
    const noting = notingRights(transport, rights);
    const ask = (method: 'GET' | 'POST') =>
      noting.request({ method, path: '/api/v1/namespaces/a/secrets/x' }).catch(() => undefined);
    for (let times = 0; times < 3; times++) await Promise.all([ask('GET'), ask('POST')]);
    expect(rights.list().map(describeRight)).toEqual(['get secrets in namespace a']);
    granted = true;
    await ask('GET');
    expect(rights.list()).toEqual([]);
  });
});
