import { afterEach, describe, expect, test } from '@jest/globals';
import { createClient } from '../../src/kube/client.js';
import { systemClock } from '../../src/kube/clock.js';
import type { Clock } from '../../src/kube/clock.js';
import { KubeError } from '../../src/kube/errors.js';
import { startReflector } from '../../src/kube/reflector.js';
import type { Reflector, ReflectorOptions } from '../../src/kube/reflector.js';
import { createTransport } from '../../src/kube/transport.js';
import type { Transport } from '../../src/kube/transport.js';
import type { ServerResponse } from 'node:http';
import { fakeApi, forbid, reply } from '../support/fake-api.js';
import type { Answer, FakeApi, Received } from '../support/fake-api.js';
import { fakeObjects } from '../support/fake-objects.js';
import type { FakeObjects } from '../support/fake-objects.js';
import { eventually, pause } from '../support/eventually.js';

const maps = '/api/v1/namespaces/a/configmaps';
const object = (name: string, data = '1') => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, managedFields: [{ manager: 'x' }] },
  data: { data },
});

let api: FakeApi | undefined;
let transport: Transport | undefined;
let reflector: Reflector | undefined;
afterEach(async () => {
  await reflector?.stop();
  transport?.close();
  await api?.close();
});

interface Seen {
  readonly changes: string[];
  readonly errors: unknown[];
  readonly missing: boolean[];
  readonly reflector: Reflector;
}

/** Reflects the config maps of namespace `a`; the fake server may be told to answer something else. */
async function reflect(
  objects: FakeObjects,
  options: Partial<ReflectorOptions> = {},
  instead: (...of: Parameters<Answer>) => boolean = () => false,
): Promise<Seen> {
  api = await fakeApi((request, response) => {
    if (!instead(request, response)) objects.answer(request, response);
  });
  transport = createTransport({ server: api.url, credentials: () => ({}) });
  const [changes, errors, missing]: [string[], unknown[], boolean[]] = [[], [], []];
  reflector = startReflector(createClient(transport), {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    namespace: 'a',
    onChange: (key, before, after) => {
      changes.push(`${before ? (after ? 'changed' : 'went') : 'came'} ${key}`);
    },
    onError: (error) => errors.push(error),
    onMissing: (now) => missing.push(now),
    backoff: { base: 10, cap: 40 },
    missingBackoff: { base: 20, cap: 20 },
    ...options,
  });
  return { changes, errors, missing, reflector };
}
/** A fake: waits are written down and last no time. */
const impatient = (waits: number[]): Clock => ({
  ...systemClock,
  after: (wait, run) => {
    waits.push(wait);
    return systemClock.after(1, run);
  },
});
const lists = () => api?.received.filter(({ path, query }) => path === maps && !query.has('watch')) ?? [];
const watches = () => api?.received.filter(({ path, query }) => path === maps && query.has('watch')) ?? [];

describe('a list and a watch', () => {
  test('keep the store as the server has it', async () => {
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    const seen = await reflect(objects);
    expect(await seen.reflector.synced).toBe('listed');
    expect(seen.changes).toEqual(['came a/one']);
    await eventually(() => objects.watches() === 1);
    objects.put(maps, object('two'));
    objects.put(maps, object('one', '2'));
    objects.remove(maps, 'two');
    await eventually(() => seen.changes.length === 4);
    expect(seen.changes).toEqual(['came a/one', 'came a/two', 'changed a/one', 'went a/two']);
    expect(seen.reflector.list()).toHaveLength(1);
    expect(seen.reflector.get('a/one')).toMatchObject({ data: { data: '2' } });
  });

  test('ask for pages, for bookmarks, for an end, and begin where the list was', async () => {
    const objects = fakeObjects();
    for (let i = 0; i < 5; i++) objects.put(maps, object(`n${i}`));
    const seen = await reflect(objects, {
      pageSize: 2,
      labelSelector: 'x=y',
      fieldSelector: 'metadata.name=z',
      random: () => 0.5,
    });
    await eventually(() => objects.watches() === 1);
    expect(seen.reflector.list()).toHaveLength(5);
    const selectors = { labelSelector: 'x=y', fieldSelector: 'metadata.name=z' };
    expect(lists().map(({ query }) => Object.fromEntries(query))).toEqual([
      { ...selectors, limit: '2' },
      { ...selectors, limit: '2', continue: expect.stringMatching(/^2@/) },
      { ...selectors, limit: '2', continue: expect.stringMatching(/^4@/) },
    ]);
    expect(watches().map(({ query }) => Object.fromEntries(query))).toEqual([
      {
        ...selectors,
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: objects.resourceVersion(),
        timeoutSeconds: '450',
      },
    ]);
  });

  test('keep objects whole but for managed fields, with the kind that items of a list lack', async () => {
    const objects = fakeObjects();
    const { managedFields: _managedFields, ...metadata } = objects.put(maps, object('one')).metadata;
    const seen = await reflect(objects);
    await seen.reflector.synced;
    expect(seen.reflector.get('a/one')).toEqual({ ...object('one'), metadata });
    await eventually(() => objects.watches() === 1);
    const { managedFields: _others, ...changed } = objects.put(maps, object('one', '2')).metadata;
    await eventually(() => seen.changes.length === 2);
    expect(seen.reflector.get('a/one')).toEqual({ ...object('one', '2'), metadata: changed });
  });

  test('keep what they are told to keep', async () => {
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    const seen = await reflect(objects, { keep: ({ apiVersion, kind, metadata }) => ({ apiVersion, kind, metadata }) });
    await seen.reflector.synced;
    expect(Object.keys(seen.reflector.get('a/one') ?? {})).toEqual(['apiVersion', 'kind', 'metadata']);
  });

  test('have all objects in the store before the first handler runs', async () => {
    const objects = fakeObjects();
    for (const name of ['one', 'two', 'three']) objects.put(maps, object(name));
    const sizes: number[] = [];
    const seen = await reflect(objects, { onChange: () => sizes.push(reflector?.list().length ?? 0) });
    await seen.reflector.synced;
    expect(sizes).toEqual([3, 3, 3]);
  });
});

describe('after a watch', () => {
  test.each(['endWatches', 'breakWatches'] as const)('%s, it is resumed from what was seen last, without a list', async (end) => {
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    const seen = await reflect(objects);
    await eventually(() => objects.watches() === 1);
    objects.put(maps, object('two'));
    await eventually(() => seen.changes.length === 2);
    const last = objects.resourceVersion();
    objects[end]();
    objects.put(maps, object('three'));
    await eventually(() => seen.changes.length === 3);
    expect(seen.changes).toEqual(['came a/one', 'came a/two', 'came a/three']);
    expect(lists()).toHaveLength(1);
    expect(watches().at(-1)?.query.get('resourceVersion')).toBe(last);
  });

  test('a bookmark moves the place to resume from', async () => {
    const objects = fakeObjects();
    const seen = await reflect(objects);
    await eventually(() => objects.watches() === 1);
    objects.put('/api/v1/namespaces/b/configmaps', object('elsewhere'));
    objects.bookmark();
    await pause(30);
    objects.forget();
    objects.endWatches();
    await eventually(() => objects.watches() === 1);
    expect(watches().at(-1)?.query.get('resourceVersion')).toBe(objects.resourceVersion());
    expect(lists()).toHaveLength(1);
    expect(seen.errors).toEqual([]);
  });

  test('that expired there is a list, each missed change is told once, and nothing is told of what stayed', async () => {
    const objects = fakeObjects();
    for (const name of ['stays', 'changes', 'goes', 'returns']) objects.put(maps, object(name));
    const seen = await reflect(objects);
    await eventually(() => objects.watches() === 1);
    seen.changes.length = 0;
    objects.breakWatches();
    objects.put(maps, object('changes', '2'));
    objects.remove(maps, 'goes');
    objects.remove(maps, 'returns');
    objects.put(maps, object('returns'));
    objects.put(maps, object('comes'));
    objects.forget();
    await eventually(() => objects.watches() === 1);
    expect([...seen.changes].sort()).toEqual([
      'came a/comes',
      'came a/returns',
      'changed a/changes',
      'went a/goes',
      'went a/returns',
    ]);
    expect(seen.changes.indexOf('went a/returns')).toBeLessThan(seen.changes.indexOf('came a/returns'));
    expect(lists()).toHaveLength(2);
    expect(watches()).toHaveLength(3);
    expect(seen.errors.filter((error) => error instanceof KubeError && error.code === 'gone')).toEqual([]);
  });

  test('an ERROR event of any kind leads to a list', async () => {
    const objects = fakeObjects();
    let first = true;
    const seen = await reflect(objects, {}, ({ query }, response) => {
      if (!query.has('watch') || !first) return false;
      first = false;
      reply(
        response,
        200,
        `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 500, message: 'etcd has gone away' } })}\n`,
      );
      return true;
    });
    await eventually(() => objects.watches() === 1);
    expect(lists()).toHaveLength(2);
    expect(seen.errors).toMatchObject([{ code: 'server-error', status: 500 }]);
  });

  test('that went silent another one is opened, and what was missed is told', async () => {
    const objects = fakeObjects();
    let deaf = true;
    const waits: number[] = [];
    const seen = await reflect(objects, { inactivity: 500, clock: impatient(waits) }, ({ query }, response) => {
      if (!query.has('watch') || !deaf) return false;
      response.writeHead(200).flushHeaders();
      return true;
    });
    await eventually(() => watches().length === 1);
    objects.put(maps, object('missed'));
    deaf = false;
    await eventually(() => seen.changes.length === 1);
    expect(seen.changes).toEqual(['came a/missed']);
    expect(seen.errors[0]).toMatchObject({ code: 'timeout' });
    expect(waits).toEqual([]);
    expect(lists()).toHaveLength(1);
  });

  test('of endless re-watching nothing piles up', async () => {
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    const seen = await reflect(objects, { backoff: { base: 1, cap: 1 } });
    for (let i = 0; i < 60; i++) {
      await eventually(() => objects.watches() === 1);
      objects.put(maps, object('one', String(i)));
      objects.bookmark();
      await eventually(() => seen.changes.length === i + 2);
      if (i % 2) objects.endWatches();
      else objects.breakWatches();
    }
    await eventually(() => objects.watches() === 1);
    expect(api?.sockets.size).toBeLessThanOrEqual(3);
    expect(seen.reflector.list()).toHaveLength(1);
  });
});

describe('a server that', () => {
  test('ends each watch at once is asked after ever longer waits, and for a list in the end', async () => {
    const objects = fakeObjects();
    const waits: number[] = [];
    await reflect(objects, { clock: impatient(waits), random: () => 0.5, backoff: undefined as never }, ({ query }, response) => {
      if (query.has('watch')) response.writeHead(200).end();
      return query.has('watch');
    });
    await eventually(() => waits.length >= 8);
    expect(waits.slice(0, 8)).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    const asked = api?.received.filter(({ path }) => path === maps).map(({ query }) => (query.has('watch') ? 'watch' : 'list'));
    expect(asked?.slice(0, 8)).toEqual(['list', ...Array<string>(5).fill('watch'), 'list', 'watch']);
  });

  test('ends each watch after one event is asked twice a second, and what it sends arrives', async () => {
    const objects = fakeObjects();
    const waits: number[] = [];
    let sent = 0;
    const options = { clock: impatient(waits), random: () => 0.5, backoff: undefined as never };
    const seen = await reflect(objects, options, ({ query }, response) => {
      if (!query.has('watch')) return false;
      objects.put(maps, object(`n${++sent}`));
      const stored = objects.get(maps, `n${sent}`);
      reply(response, 200, `${JSON.stringify({ type: 'ADDED', object: stored })}\n`);
      return true;
    });
    await eventually(() => waits.length >= 4);
    expect(waits.slice(0, 4)).toEqual([500, 500, 500, 500]);
    await eventually(() => seen.changes.length >= 4);
    expect(seen.changes.slice(0, 4)).toEqual(['came a/n1', 'came a/n2', 'came a/n3', 'came a/n4']);
  });

  test('fails for a while is asked until it works', async () => {
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    let failing = 5;
    const seen = await reflect(objects, {}, ({ path }, response) => {
      if (path !== maps || failing-- <= 0) return false;
      if (failing % 2) response.socket?.resetAndDestroy();
      else reply(response, 500, {});
      return true;
    });
    expect(await seen.reflector.synced).toBe('listed');
    expect(seen.changes).toEqual(['came a/one']);
    // The transport repeats a request over a connection that was closed just now by itself.
    expect(seen.errors.length).toBeGreaterThanOrEqual(3);
  });

  test('asks for patience gets it', async () => {
    const objects = fakeObjects();
    let asked = 0;
    const seen = await reflect(objects, {}, ({ path }, response) => {
      if (path !== maps || asked > 0) return false;
      asked = performance.now();
      reply(response, 429, {}, { 'retry-after': '1' });
      return true;
    });
    await seen.reflector.synced;
    expect(performance.now() - asked).toBeGreaterThanOrEqual(990);
    expect(seen.errors).toMatchObject([{ code: 'too-many-requests' }]);
  });

  test('forgets the pages of a list in the middle is asked for all at once', async () => {
    const objects = fakeObjects();
    for (let i = 0; i < 5; i++) objects.put(maps, object(`n${i}`));
    const seen = await reflect(objects, { pageSize: 2 }, ({ query }, response) => {
      if (query.has('continue')) reply(response, 410, { reason: 'Expired' });
      return query.has('continue');
    });
    await seen.reflector.synced;
    expect(seen.reflector.list()).toHaveLength(5);
    expect(lists().map(({ query }) => query.get('limit'))).toEqual(['2', '2', null]);
  });

  test('answers a list with something else never empties the store', async () => {
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    let odd = false;
    const seen = await reflect(objects, {}, ({ path, query }, response) => {
      if (!odd || path !== maps || query.has('watch')) return false;
      reply(response, 200, { welcome: 'proxy' });
      return true;
    });
    await eventually(() => objects.watches() === 1);
    odd = true;
    objects.breakWatches();
    objects.put(maps, object('two'));
    objects.forget();
    await eventually(() => seen.errors.length >= 3);
    expect(seen.reflector.list()).toHaveLength(1);
    odd = false;
    await eventually(() => seen.changes.length === 2);
    expect(seen.changes).toEqual(['came a/one', 'came a/two']);
  });

  test('sends what is no event is asked again', async () => {
    const objects = fakeObjects();
    let odd = 3;
    const seen = await reflect(objects, {}, ({ query }, response) => {
      if (!query.has('watch') || odd-- <= 0) return false;
      reply(response, 200, ['{"type":"ADDED"}\n', '{"type":"NEW","object":{}}\n', 'no json\n'][odd]);
      return true;
    });
    await eventually(() => objects.watches() === 1);
    expect(seen.errors).toMatchObject([{ code: 'server-error' }, { code: 'server-error' }, { code: 'server-error' }]);
  });
});

describe('a kind that the server does not know', () => {
  test('is reported once, asked for slowly, and reflected when it comes', async () => {
    const objects = fakeObjects();
    objects.unknown.add('v1');
    const began = performance.now();
    const seen = await reflect(objects);
    expect(await seen.reflector.synced).toBe('missing');
    expect(seen.reflector.missing()).toBe(true);
    await pause(150);
    expect(api?.received.length).toBeLessThanOrEqual(2 + (performance.now() - began) / 15);
    objects.put(maps, object('one'));
    objects.unknown.clear();
    await eventually(() => seen.changes.length === 1);
    expect(seen.missing).toEqual([true, false]);
    expect(seen.errors).toEqual([]);
    expect(seen.reflector.missing()).toBe(false);
  });

  test('any more has no objects: each is told as gone, once', async () => {
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    const seen = await reflect(objects);
    await eventually(() => objects.watches() === 1);
    objects.unknown.add('v1');
    objects.breakWatches();
    await eventually(() => seen.missing.length === 1);
    await pause(80);
    expect(seen.changes).toEqual(['came a/one', 'went a/one']);
    expect(seen.reflector.list()).toEqual([]);
  });

  test('is not concluded from a 404 that discovery does not confirm', async () => {
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    let hiccup = false;
    const seen = await reflect(objects, {}, ({ path }, response) => {
      if (!hiccup || path !== maps) return false;
      reply(response, 404, '404 page not found');
      return true;
    });
    await eventually(() => objects.watches() === 1);
    hiccup = true;
    objects.breakWatches();
    await eventually(() => seen.errors.length >= 3);
    expect(seen.changes).toEqual(['came a/one']);
    expect(seen.missing).toEqual([]);
    hiccup = false;
    await eventually(() => objects.watches() === 1);
  });

  test('is not concluded when nobody answers', async () => {
    const objects = fakeObjects();
    const seen = await reflect(objects, {}, (_, response) => {
      reply(response, 503, {});
      return true;
    });
    await eventually(() => seen.errors.length >= 3);
    expect(seen.reflector.missing()).toBe(false);
    await seen.reflector.stop();
    expect(await seen.reflector.synced).toBe('stopped');
  });
});

describe('a right that is missing', () => {
  /** Refuses the verbs that it holds. */
  const guarded = (refused: Set<string>) => (request: Received, response: ServerResponse) => {
    const verb = request.query.has('watch') ? 'watch' : 'list';
    const refuses = request.path === maps && refused.has(verb);
    if (refuses) forbid(response, [verb, 'configmaps', '', 'a']);
    return refuses;
  };

  test('is concluded after the third refusal, and the objects come once it is granted', async () => {
    const refused = new Set(['list']);
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    const readable: boolean[] = [];
    const seen = await reflect(objects, { onReadable: (now) => readable.push(now) }, guarded(refused));
    expect(await seen.reflector.synced).toBe('denied');
    expect([lists().length, seen.reflector.readable(), seen.changes]).toEqual([3, false, []]);
    refused.clear();
    await eventually(() => seen.reflector.readable());
    expect([seen.changes, readable]).toEqual([['came a/one'], [true]]);
  });

  test('keeps what was listed before, and tells that it may be out of date', async () => {
    const refused = new Set<string>();
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    const readable: boolean[] = [];
    const seen = await reflect(objects, { onReadable: (now) => readable.push(now) }, guarded(refused));
    await eventually(() => objects.watches() === 1);
    refused.add('list').add('watch');
    objects.breakWatches();
    await eventually(() => !seen.reflector.readable());
    expect([seen.reflector.list().length, seen.changes]).toEqual([1, ['came a/one']]);
    objects.remove(maps, 'one');
    refused.clear();
    await eventually(() => seen.reflector.readable());
    expect([seen.changes, readable]).toEqual([
      ['came a/one', 'went a/one'],
      [true, false, true],
    ]);
  });

  test('to watch leaves lists, which follow each other', async () => {
    const objects = fakeObjects();
    const seen = await reflect(objects, {}, guarded(new Set(['watch'])));
    expect(await seen.reflector.synced).toBe('listed');
    objects.put(maps, object('one'));
    await eventually(() => seen.changes.length === 1);
    expect(seen.reflector.readable()).toBe(true);
  });

  test.each<[string, number, unknown]>([
    ['a server that is not ready', 503, {}],
    ['a proxy', 403, '<html>forbidden</html>'],
    ['an unknown account', 401, { kind: 'Status', reason: 'Unauthorized', message: 'Unauthorized' }],
  ])('is not concluded from %s', async (_, code, body) => {
    const seen = await reflect(fakeObjects(), {}, (request, response) => {
      if (request.path === maps) reply(response, code, body);
      return request.path === maps;
    });
    await eventually(() => seen.errors.length >= 4);
    await seen.reflector.stop();
    expect(await seen.reflector.synced).toBe('stopped');
  });
});

describe('a watch that fails', () => {
  const brokenBy = async (failures: number) => {
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    const told: unknown[] = [];
    let left = failures;
    const seen = await reflect(objects, { onBroken: (error) => told.push(error) }, ({ query }, response) => {
      if (!query.has('watch') || left <= 0) return false;
      left--;
      reply(response, 500, {});
      return true;
    });
    await eventually(() => left === 0 && objects.watches() === 1);
    objects.put(maps, object('two'));
    await eventually(() => seen.changes.includes('came a/two'));
    return { told, seen };
  };

  test('four times in a row is not told as broken', async () => {
    const { told, seen } = await brokenBy(4);
    expect([told, seen.errors.length]).toEqual([[], 4]);
  });

  test('five times in a row is told once, and once that it works again', async () => {
    const { told } = await brokenBy(9);
    expect(told).toEqual([expect.objectContaining({ code: 'server-error' }), undefined]);
  });
});

describe('a handler that throws', () => {
  test('is reported and stops nothing', async () => {
    const objects = fakeObjects();
    objects.put(maps, object('one'));
    const errors: unknown[] = [];
    let calls = 0;
    const seen = await reflect(objects, {
      onChange: () => {
        calls++;
        throw new Error('handler');
      },
      onError: (error) => {
        errors.push(error);
        throw new Error('and the reporter as well');
      },
    });
    expect(await seen.reflector.synced).toBe('listed');
    await eventually(() => objects.watches() === 1);
    objects.put(maps, object('two'));
    await eventually(() => calls === 2);
    expect(errors).toMatchObject([{ message: 'handler' }, { message: 'handler' }]);
    expect(seen.reflector.list()).toHaveLength(2);
  });
});

describe('stop', () => {
  test('may be called often, closes the connection and reports nothing', async () => {
    const objects = fakeObjects();
    const seen = await reflect(objects);
    await eventually(() => objects.watches() === 1);
    await Promise.all([seen.reflector.stop(), seen.reflector.stop()]);
    await seen.reflector.stop();
    await eventually(() => objects.watches() === 0);
    objects.put(maps, object('late'));
    await pause(30);
    expect(seen.changes).toEqual([]);
    expect(seen.errors).toEqual([]);
  });

  test('inside a handler keeps the next one from running', async () => {
    const objects = fakeObjects();
    for (const name of ['one', 'two']) objects.put(maps, object(name));
    let calls = 0;
    const seen = await reflect(objects, {
      onChange: () => {
        calls++;
        void reflector?.stop();
      },
    });
    await seen.reflector.synced;
    await seen.reflector.stop();
    expect(calls).toBe(1);
  });

  test('ends a wait at once', async () => {
    const objects = fakeObjects();
    const seen = await reflect(objects, { backoff: { base: 60_000, cap: 60_000 } }, (_, response) => {
      reply(response, 500, {});
      return true;
    });
    await eventually(() => seen.errors.length === 1);
    // It would be a minute.
    await expect(seen.reflector.stop()).resolves.toBeUndefined();
  });
});
