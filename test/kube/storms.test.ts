import { afterEach, describe, expect, test } from '@jest/globals';
import { createClient } from '../../src/kube/client.js';
import { systemClock } from '../../src/kube/clock.js';
import type { Clock } from '../../src/kube/clock.js';
import { startReflector } from '../../src/kube/reflector.js';
import type { Reflector } from '../../src/kube/reflector.js';
import { createTransport } from '../../src/kube/transport.js';
import type { Transport } from '../../src/kube/transport.js';
import { createWorkqueue } from '../../src/kube/workqueue.js';
import type { WorkRun } from '../../src/kube/workqueue.js';
import { eventually } from '../support/eventually.js';
import { fakeApi, reply } from '../support/fake-api.js';
import type { Answer, FakeApi, Received } from '../support/fake-api.js';
import { fakeObjects } from '../support/fake-objects.js';
import type { FakeObjects } from '../support/fake-objects.js';

let api: FakeApi | undefined;
let transport: Transport | undefined;
const reflectors: Reflector[] = [];
afterEach(async () => {
  await Promise.all(reflectors.splice(0).map((reflector) => reflector.stop()));
  transport?.close();
  await api?.close();
});

/** A fake: it is as late as was waited for, but a wait lasts a millisecond. What takes real time counts as it is. */
interface Hurried extends Clock {
  readonly waits: { readonly at: number; readonly wait: number }[];
}
function hurried(): Hurried {
  const began = performance.now();
  let skipped = 0;
  const elapsed = () => performance.now() - began + skipped;
  const waits: Hurried['waits'] = [];
  return {
    ...systemClock,
    waits,
    elapsed,
    after: (wait, run) => {
      waits.push({ at: elapsed(), wait });
      return systemClock.after(1, () => {
        skipped += wait;
        run();
      });
    },
  };
}

const maps = '/api/v1/namespaces/a/configmaps';
const object = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });

/** Each reflector has its own clock, since each waits for itself. */
async function reflect(
  objects: FakeObjects,
  instead: (...of: Parameters<Answer>) => boolean,
  kinds: readonly string[] = ['ConfigMap'],
): Promise<{ readonly clocks: readonly Hurried[]; readonly changes: string[]; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const changes: string[] = [];
  api = await fakeApi((request, response) => {
    if (request.path.includes('/namespaces/')) asked.push(request.query.has('watch') ? 'watch' : 'list');
    if (!instead(request, response)) objects.answer(request, response);
  });
  transport = createTransport({ server: api.url, credentials: () => ({}) });
  const client = createClient(transport);
  const clocks = kinds.map((kind) => {
    const clock = hurried();
    reflectors.push(
      startReflector(client, {
        apiVersion: 'v1',
        kind,
        namespace: 'a',
        clock,
        onChange: (key, before, after) => changes.push(`${before ? (after ? 'changed' : 'went') : 'came'} ${key}`),
        onError: () => undefined,
      }),
    );
    return clock;
  });
  return { clocks, changes, asked };
}
const minutes = (clock: Clock | undefined) => (clock?.elapsed() ?? 0) / 60_000;
const isWatch = ({ query }: Received) => query.has('watch');
const isList = ({ path, query }: Received) => path === maps && !query.has('watch');

describe('429', () => {
  test.each([
    ['a list', isList, {}, '7', 7_000],
    ['a watch', isWatch, {}, '7', 7_000],
    ['a list, in the body', isList, { details: { retryAfterSeconds: 7 } }, undefined, 7_000],
    ['a list, for longer than anybody should wait', isList, {}, '86400', 600_000],
  ] as const)('with Retry-After to %s is waited for, and then it goes on', async (_, matches, body, header, wait) => {
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    let refused = false;
    const { clocks, changes, asked } = await reflect(objects, (request, response) => {
      if (refused || !matches(request)) return false;
      refused = true;
      reply(response, 429, body, header === undefined ? {} : { 'retry-after': header });
      return true;
    });
    await eventually(() => objects.watches() === 1);
    const [first] = clocks[0]?.waits ?? [];
    // The back-off comes on top, so that not all come back in the same second.
    expect(first?.wait).toBeGreaterThanOrEqual(wait);
    expect(first?.wait).toBeLessThanOrEqual(wait + 700);
    expect(clocks[0]?.waits).toHaveLength(1);
    expect(changes).toEqual(['came a/one']);
    expect(asked).toEqual(matches === isWatch ? ['list', 'watch', 'watch'] : ['list', 'list', 'watch']);
  });

  test('as an ERROR event with a time to wait is waited for', async () => {
    const objects = fakeObjects();
    let refused = false;
    const { clocks } = await reflect(objects, (request, response) => {
      if (refused || !isWatch(request)) return false;
      refused = true;
      const status = { kind: 'Status', code: 429, details: { retryAfterSeconds: 7 } };
      reply(response, 200, `${JSON.stringify({ type: 'ERROR', object: status })}\n`);
      return true;
    });
    await eventually(() => objects.watches() === 1);
    expect(clocks[0]?.waits[0]?.wait).toBeGreaterThanOrEqual(7_000);
  });

  test('without Retry-After is asked again after ever longer waits', async () => {
    const objects = fakeObjects();
    let refusals = 6;
    const { clocks } = await reflect(objects, (request, response) => {
      if (!isList(request) || refusals-- <= 0) return false;
      reply(response, 429, {});
      return true;
    });
    await eventually(() => objects.watches() === 1);
    const waits = clocks[0]?.waits.map(({ wait }) => wait) ?? [];
    expect(waits.map((wait, i) => Math.round(wait / (500 * 2 ** i)))).toEqual([1, 1, 1, 1, 1, 1]);
  });

  test.each([
    ['with Retry-After is waited for', '7', 7_000],
    ['with a Retry-After of a day is tried again after ten minutes', '86400', 600_000],
    ['without Retry-After backs off', undefined, 5],
  ])('to a write of a queue %s', async (_, header, nextIn) => {
    api = await fakeApi((_request, response) => reply(response, 429, {}, header === undefined ? {} : { 'retry-after': header }));
    const { request } = (transport = createTransport({ server: api.url, credentials: () => ({}) }));
    const runs: WorkRun[] = [];
    const queue = createWorkqueue({
      work: async () => {
        await request({ method: 'PATCH', path: '/x', body: {} });
        return undefined;
      },
      onRun: (run) => runs.push(run),
      clock: { ...systemClock, after: () => () => undefined },
    });
    queue.add('key');
    await eventually(() => runs.length === 1);
    expect(runs[0]).toMatchObject({ outcome: 'failed', nextIn });
  });
});

describe('in any minute one kind costs', () => {
  /** The most requests within a minute of the reflector's own time. */
  const busiest = (times: readonly number[]) =>
    Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 60_000).length));

  const count = async (
    answer: (request: Received, objects: FakeObjects, response: Parameters<Answer>[1]) => boolean,
    duration = 10,
  ) => {
    const objects = fakeObjects();
    const times: number[] = [];
    const seen = await reflect(objects, (request, response) => {
      if (!request.path.includes('/namespaces/')) return false;
      times.push(seen.clocks[0]?.elapsed() ?? 0);
      return answer(request, objects, response);
    });
    await eventually(() => minutes(seen.clocks[0]) >= duration);
    return { ...seen, times, most: busiest(times) };
  };
  const ends: Answer = (_, response) => response.writeHead(200).end();

  test('at most a dozen requests while its watches are closed at once', async () => {
    const { most, asked } = await count((request, _, response) => {
      if (isWatch(request)) ends(request, response);
      return isWatch(request);
    });
    expect(most).toBeLessThanOrEqual(12);
    expect(asked).toContain('list');
    expect(api?.connections()).toBeLessThanOrEqual(3);
  });

  test.each([500, 503])('at most a dozen requests while all of them are answered %i', async (code) => {
    const { most } = await count((_request, _objects, response) => {
      reply(response, code, {});
      return true;
    });
    expect(most).toBeLessThanOrEqual(12);
  });

  test('at most 16 requests while each watch is refused with 410, which needs a list each time', async () => {
    const { most } = await count((request, _, response) => {
      if (isWatch(request)) reply(response, 410, { reason: 'Expired' });
      return isWatch(request);
    });
    expect(most).toBeLessThanOrEqual(16);
  });

  test('at most 160 requests while each watch has one event and is closed', async () => {
    const { most, changes } = await count((request, objects, response) => {
      if (!isWatch(request)) return false;
      reply(response, 200, `${JSON.stringify({ type: 'ADDED', object: objects.put(maps, object('one')) })}\n`);
      return true;
    }, 2);
    expect(most).toBeLessThanOrEqual(160);
    expect(changes.length).toBeGreaterThan(100);
  });

  test('at most a dozen requests while each watch has nothing but what was told before', async () => {
    const { most, changes } = await count((request, objects, response) => {
      if (!isWatch(request)) {
        if (!objects.get(maps, 'one')) objects.put(maps, object('one'));
        return false;
      }
      reply(response, 200, `${JSON.stringify({ type: 'MODIFIED', object: objects.get(maps, 'one') })}\n`);
      return true;
    });
    expect(most).toBeLessThanOrEqual(12);
    expect(changes).toEqual(['came a/one']);
  });
});

test('of a thousand watches that are closed at once nothing is left behind: no socket, no timer, no memory', async () => {
  const objects = fakeObjects();
  let watches = 0;
  const seen = await reflect(objects, (request, response) => {
    if (!isWatch(request)) return false;
    watches++;
    if (watches % 3 === 0) response.socket?.resetAndDestroy();
    else if (watches % 3 === 1) response.writeHead(200).end();
    else reply(response, 200, '{"type":"AD');
    return true;
  });
  const resources = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout' || name.startsWith('TCP')).length;
  await eventually(() => watches >= 100);
  const [before, heap] = [resources(), process.memoryUsage().heapUsed];
  for (let aim = 200; aim <= 1000; aim += 100) await eventually(() => watches >= aim);
  expect(resources()).toBeLessThanOrEqual(before + 8);
  expect(api?.sockets.size).toBeLessThanOrEqual(3);
  // What a request leaves until it is collected is some kilobytes; what stays for ever would be more than that for each of them.
  expect(process.memoryUsage().heapUsed - heap).toBeLessThan(64 * 1024 * 1024);
  expect(seen.changes).toEqual([]);
}, 60_000);

test('many kinds that lost their server together come back spread over time, one list each, and miss nothing', async () => {
  const objects = fakeObjects();
  const kinds = ['ConfigMap', 'Service', 'Secret', 'Pod'];
  const many = Array.from({ length: 8 }, () => kinds).flat();
  const collection = (kind: string) => `/api/v1/namespaces/a/${kind.toLowerCase()}s`;
  let down = false;
  let lists = 0;
  const { clocks, changes } = await reflect(
    objects,
    (request, response) => {
      if (down) response.socket?.resetAndDestroy();
      else if (request.path.includes('/namespaces/') && !isWatch(request)) lists++;
      return down;
    },
    many,
  );
  for (const kind of kinds) objects.put(collection(kind), { apiVersion: 'v1', kind, metadata: { name: 'goes' } });
  await eventually(() => objects.watches() === many.length && changes.length === many.length);
  for (const { waits } of clocks) waits.length = 0;
  down = true;
  objects.breakWatches();
  for (const kind of kinds) {
    objects.remove(collection(kind), 'goes');
    objects.put(collection(kind), { apiVersion: 'v1', kind, metadata: { name: 'comes' } });
  }
  objects.forget();
  await eventually(() => clocks.every(({ waits }) => waits.length >= 4));
  lists = 0;
  down = false;
  await eventually(() => objects.watches() === many.length && changes.length === 3 * many.length);
  expect(lists).toBe(many.length);
  expect(changes.filter((change) => change === 'went a/goes')).toHaveLength(many.length);
  // The fourth wait is four seconds, more or less: no tenth of a second sees more than a few of them.
  const fourth = clocks.map(({ waits }) => Math.floor((waits[3]?.wait ?? 0) / 100));
  expect(new Set(fourth).size).toBeGreaterThan(many.length / 4);
});
