import { hostname } from 'node:os';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { createClient } from '../../src/kube/client.js';
import type { KubeClient } from '../../src/kube/client.js';
import type { Clock } from '../../src/kube/clock.js';
import { microTime, systemClock } from '../../src/kube/clock.js';
import { elect } from '../../src/kube/lease.js';
import type { Election, ElectionOptions, Leadership } from '../../src/kube/lease.js';
import { createTransport } from '../../src/kube/transport.js';
import type { Transport } from '../../src/kube/transport.js';
import { eventually, pause } from '../support/eventually.js';
import { fakeApi, reply } from '../support/fake-api.js';
import type { Answer, FakeApi, Received } from '../support/fake-api.js';
import { fakeClock } from '../support/fake-clock.js';
import { fakeObjects } from '../support/fake-objects.js';
import type { FakeObjects } from '../support/fake-objects.js';

const leases = '/apis/coordination.k8s.io/v1/namespaces/a/leases';
const annotation = 'orka.ai/controller-epoch';

let api: FakeApi | undefined;
const transports: Transport[] = [];
const elections: Election[] = [];
afterEach(async () => {
  await Promise.all(elections.splice(0).map((election) => election.release()));
  for (const transport of transports.splice(0)) transport.close();
  await api?.close();
});

interface Candidate extends Election {
  readonly lost: Error[];
  readonly errors: unknown[];
}

/** A server with a Lease, or without, that may answer something else now and then. */
async function serve(objects: FakeObjects, instead: (...of: Parameters<Answer>) => boolean = () => false): Promise<void> {
  api = await fakeApi((request, response) => {
    if (!instead(request, response)) objects.answer(request, response);
  });
}

/** What is waited for takes a fraction of the real time; what is not to happen meanwhile, that a Lease runs out, takes as long as it does. */
function candidate(options: Partial<ElectionOptions> = {}, transport = createTransport(access())): Candidate {
  transports.push(transport);
  const client: KubeClient = createClient(transport);
  const [lost, errors]: [Error[], unknown[]] = [[], []];
  const election = elect(client, {
    namespace: 'a',
    name: 'l',
    manager: 'm',
    highestEpoch: () => Promise.resolve(0),
    onLost: (reason) => lost.push(reason),
    onError: (error) => errors.push(error),
    duration: 15_000,
    renewEvery: 500,
    renewWithin: 10_000,
    lookEvery: 40,
    retryEvery: 40,
    ...options,
  });
  elections.push(election);
  return { ...election, lost, errors };
}
/** Of a Lease that runs out in the test. */
const brief = { duration: 1000, renewEvery: 100, renewWithin: 500 };
const access = () => ({ server: api?.url ?? '', credentials: () => ({}) });
const leads = async ({ leading }: Election): Promise<Leadership> => {
  const leadership = await leading;
  if (!leadership) throw new Error('it was released');
  return leadership;
};
const spec = (objects: FakeObjects) => objects.get(leases, 'l')?.['spec'] as Record<string, unknown> | undefined;
const lease = (holder: string | undefined, epoch: string | undefined, change: Record<string, unknown> = {}) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {
    name: 'l',
    namespace: 'a',
    annotations: { other: 'stays', ...(epoch === undefined ? {} : { [annotation]: epoch }) },
  },
  spec: {
    leaseDurationSeconds: 1,
    leaseTransitions: 4,
    renewTime: '2030-01-01T00:00:00.000000Z',
    ...(holder === undefined ? {} : { holderIdentity: holder }),
    ...change,
  },
});
const requests = (method: string): readonly Received[] => api?.received.filter((one) => one.method === method) ?? [];

describe('a Lease that is not there', () => {
  test('is created with one more than the highest epoch that is known', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const one = candidate({ highestEpoch: () => Promise.resolve(41) });
    expect((await leads(one)).epoch).toBe(42);
    expect(objects.get(leases, 'l')?.metadata.annotations).toEqual({ [annotation]: '42' });
    expect(spec(objects)).toMatchObject({ holderIdentity: one.identity, leaseDurationSeconds: 15, leaseTransitions: 0 });
  });

  test('stays so while the highest epoch cannot be told', async () => {
    const objects = fakeObjects();
    await serve(objects);
    let asked = 0;
    const one = candidate({ highestEpoch: () => (++asked < 3 ? Promise.reject(new Error('no')) : Promise.resolve(7)) });
    expect((await leads(one)).epoch).toBe(8);
    expect(one.errors).toHaveLength(2);
  });

  test('because its namespace is not there is reported', async () => {
    const objects = fakeObjects();
    await serve(objects, ({ method }, response) => {
      if (method === 'POST')
        reply(response, 404, { kind: 'Status', reason: 'NotFound', details: { name: 'a', kind: 'namespaces' } });
      return method === 'POST';
    });
    const one = candidate();
    await eventually(() => one.errors.some((error) => (error as { code?: string }).code === 'not-found'));
  });
});

describe('a Lease that is free', () => {
  test.each([
    ['given back', lease(undefined, '7')],
    ['given back with an empty holder', lease('', '7')],
  ])('because it was %s is taken at once, with the next epoch, in one PUT', async (_, before) => {
    const objects = fakeObjects();
    objects.put(leases, before);
    await serve(objects);
    const one = candidate({ highestEpoch: () => Promise.reject(new Error('nobody asks')) });
    expect((await leads(one)).epoch).toBe(8);
    expect(requests('PUT')).toHaveLength(1);
    expect(objects.get(leases, 'l')).toMatchObject({
      metadata: { annotations: { other: 'stays', [annotation]: '8' } },
      spec: { holderIdentity: one.identity, leaseTransitions: 5, leaseDurationSeconds: 15 },
    });
  });

  test.each([undefined, '', 'x', '-1', '0', '1e3', '9'.repeat(30)])(
    'but says no epoch (%s) is taken with one more than the highest that is known',
    async (epoch) => {
      const objects = fakeObjects();
      objects.put(leases, lease(undefined, epoch));
      await serve(objects);
      expect((await leads(candidate({ highestEpoch: () => Promise.resolve(41) }))).epoch).toBe(42);
    },
  );

  test('is identified by host and a random UUID', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const [one, two] = [candidate(), candidate()];
    expect(one.identity).not.toBe(two.identity);
    expect(one.identity.startsWith(`${hostname()}_`)).toBe(true);
  });
});

describe('a Lease that someone else holds', () => {
  test.each([
    ['long ago', '1999-01-01T00:00:00.000000Z'],
    ['in the far future', '2999-01-01T00:00:00.000000Z'],
  ])('is taken when it did not change for its duration, though it says that it was renewed %s', async (_, renewTime) => {
    const objects = fakeObjects();
    objects.put(leases, lease('other', '7', { renewTime }));
    await serve(objects);
    const began = performance.now();
    expect((await leads(candidate(brief))).epoch).toBe(8);
    expect(performance.now() - began).toBeGreaterThanOrEqual(1000);
  });

  test('is left alone while it changes', async () => {
    const objects = fakeObjects();
    let looks = 0;
    // Whenever it is looked at, it was renewed before.
    await serve(objects, ({ method }) => {
      if (method === 'GET') objects.put(leases, lease('other', '7', { renewTime: microTime(looks++) }));
      return false;
    });
    const one = candidate(brief);
    await pause(1500);
    await eventually(() => looks >= 15);
    expect(requests('PUT')).toHaveLength(0);
    await one.release();
    expect(await one.leading).toBeUndefined();
    expect(spec(objects)).toMatchObject({ holderIdentity: 'other' });
  });

  test('is waited for as long as it says itself', async () => {
    const objects = fakeObjects();
    objects.put(leases, lease('other', '7', { leaseDurationSeconds: 60 }));
    await serve(objects);
    candidate(brief);
    await pause(1300);
    expect(requests('PUT')).toHaveLength(0);
  });
});

describe('renewal', () => {
  test('is one PUT each time, with six digits in its time, and touches nothing else', async () => {
    const objects = fakeObjects();
    objects.put(leases, lease(undefined, '7'));
    await serve(objects);
    const one = candidate();
    await leads(one);
    const taken = objects.get(leases, 'l');
    await eventually(() => requests('PUT').length >= 4);
    expect(requests('GET').filter(({ path }) => path.endsWith('/l'))).toHaveLength(1);
    const { renewTime, ...rest } = spec(objects) ?? {};
    expect(renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    expect(taken?.['spec']).toMatchObject(rest);
    expect(objects.get(leases, 'l')?.metadata.annotations).toEqual(taken?.metadata.annotations);
    expect(one.errors).toEqual([]);
  });

  test('goes on after someone annotated the Lease, and keeps what was written', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const one = candidate();
    const { signal } = await leads(one);
    const now = objects.get(leases, 'l')!;
    objects.put(leases, { ...now, metadata: { ...now.metadata, annotations: { ...now.metadata.annotations, drain: 'yes' } } });
    await eventually(() => spec(objects)?.['renewTime'] !== (now['spec'] as { renewTime: string }).renewTime);
    expect(signal.aborted).toBe(false);
    expect(objects.get(leases, 'l')?.metadata.annotations).toEqual({ [annotation]: '1', drain: 'yes' });
  });

  test('survives answers that are lost and servers that fail for a while', async () => {
    const objects = fakeObjects();
    let puts = 0;
    await serve(objects, (request, response) => {
      if (request.method !== 'PUT') return false;
      if (++puts % 3 === 1) {
        // Stored, but nobody learns of it.
        objects.put(leases, JSON.parse(request.body) as Manifest);
        response.socket?.resetAndDestroy();
        return true;
      }
      if (puts % 3 === 2) reply(response, 500, {});
      return puts % 3 === 2;
    });
    const one = candidate();
    const { holds } = await leads(one);
    await eventually(() => puts >= 9);
    expect(holds()).toBe(true);
    expect(one.lost).toEqual([]);
  });
});

describe('a leadership is kept', () => {
  test('when the connections die without a word: there is time for another one', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const one = candidate({ renewEvery: 2000 });
    const { holds } = await leads(one);
    api?.freeze();
    // What is sent over a dead connection never comes.
    await eventually(() => requests('PUT').length === 1);
    await pause(50);
    expect(holds()).toBe(true);
    expect(one.lost).toEqual([]);
  });

  test('when all connections for other requests are busy', async () => {
    const objects = fakeObjects();
    await serve(objects, ({ path }) => path === '/hangs');
    const transport = createTransport(access(), { maxSockets: 1 });
    const hangs = transport.request({ method: 'GET', path: '/hangs', timeout: 1200 }).catch(() => undefined);
    const one = candidate({}, transport);
    const { holds } = await leads(one);
    await hangs;
    expect(holds()).toBe(true);
    expect(one.errors).toEqual([]);
  });

  test('when the server asks for more patience than there is time', async () => {
    const objects = fakeObjects();
    let refusals = 0;
    await serve(objects, ({ method }, response) => {
      if (method !== 'PUT' || ++refusals > 1) return false;
      reply(response, 429, {}, { 'retry-after': '60' });
      return true;
    });
    const one = candidate({ duration: 8000, renewWithin: 6000 });
    const { holds } = await leads(one);
    await eventually(() => requests('PUT').length >= 3);
    expect(holds()).toBe(true);
    expect(one.errors[0]).toMatchObject({ code: 'too-many-requests' });
  });

  test('when somebody shortens the Lease: others wait for as long as they would themselves, and it is mended', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const one = candidate();
    const { holds } = await leads(one);
    const two = candidate();
    const now = objects.get(leases, 'l')!;
    objects.put(leases, { ...now, spec: { ...(now['spec'] as object), leaseDurationSeconds: 0 } });
    await eventually(() => spec(objects)?.['leaseDurationSeconds'] === 15);
    expect(holds()).toBe(true);
    await two.release();
    expect(await two.leading).toBeUndefined();
  });
});

test('clocks on walls that are hours apart change nothing: one leads at a time, and the other when it is given back', async () => {
  const objects = fakeObjects();
  await serve(objects);
  const skewed = (hours: number): Clock => ({ ...systemClock, now: () => Date.now() + hours * 3_600_000 });
  for (const [here, there] of [
    [-7, 7],
    [7, -7],
  ] as const) {
    const one = candidate({ clock: skewed(here) });
    const { holds, epoch } = await leads(one);
    const two = candidate({ clock: skewed(there) });
    let early: Leadership | undefined;
    void two.leading.then((leadership) => (early = leadership));
    await pause(700);
    expect([holds(), early]).toEqual([true, undefined]);
    await one.release();
    expect((await leads(two)).epoch).toBe(epoch + 1);
    await two.release();
    expect([...one.errors, ...two.errors]).toEqual([]);
  }
});

test('who cannot renew stops before another one may begin, and leads again with a greater epoch than that', async () => {
  const objects = fakeObjects();
  const hanging = new Set<string>();
  await serve(objects, ({ method, body }) => method === 'PUT' && [...hanging].some((identity) => body.includes(identity)));
  const patient = { duration: 2000, renewWithin: 1500 };
  const one = candidate(patient);
  const first = await leads(one);
  const two = candidate(patient);
  hanging.add(one.identity);
  let both = false;
  let second: Leadership | undefined;
  void two.leading.then((leadership) => (second = leadership));
  await eventually(() => {
    both ||= first.holds() && second !== undefined;
    return second !== undefined;
  });
  expect([both, first.signal.aborted, first.holds(), second?.epoch]).toEqual([false, true, false, 2]);
  expect(one.lost).toHaveLength(1);
  // The process is started anew.
  const three = candidate(patient);
  await pause(200);
  await two.release();
  expect((await leads(three)).epoch).toBe(3);
});

test.each([
  ['as late as others begin', { duration: 1000, renewWithin: 1000 }],
  ['never', { renewEvery: 500, renewWithin: 500 }],
  ['always', { renewEvery: 0 }],
])('times that would let two lead, since one renews %s, are refused', (_, times) => {
  expect(() => candidate(times)).toThrow(RangeError);
});

describe('a leadership is lost, told once, and nothing is tried any more,', () => {
  const loses = async (one: Candidate, { signal, holds }: Leadership, why: string): Promise<void> => {
    await eventually(() => one.lost.length === 1);
    expect([signal.aborted, holds()]).toEqual([true, false]);
    expect(one.lost[0]?.message).toBe(`the Lease a/l is lost: ${why}`);
    await pause(50);
    const before = api?.received.length;
    // Longer than between two renewals.
    await pause(600);
    expect(api?.received.length).toBe(before);
    await one.release();
    expect(one.lost).toHaveLength(1);
    expect(api?.received.length).toBe(before);
  };

  test('when another one holds the Lease', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const one = candidate();
    const leadership = await leads(one);
    objects.put(leases, lease('other', '2'));
    await loses(one, leadership, 'it is held by "other"');
    expect(spec(objects)).toMatchObject({ holderIdentity: 'other' });
  });

  test('when the Lease is gone, though it could be made again: its epoch is no longer ours alone', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const one = candidate();
    const leadership = await leads(one);
    objects.remove(leases, 'l');
    await loses(one, leadership, 'it is gone');
    expect(objects.get(leases, 'l')).toBeUndefined();
  });

  test('when the epoch was changed', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const one = candidate();
    const leadership = await leads(one);
    const now = objects.get(leases, 'l')!;
    objects.put(leases, { ...now, metadata: { ...now.metadata, annotations: { [annotation]: '9' } } });
    await loses(one, leadership, 'its epoch is no longer 1');
  });

  test.each([
    ['refuses', (_: Received, response: Parameters<Answer>[1]) => reply(response, 403, {})],
    ['never answers', () => undefined],
  ] as [string, Answer][])('when the server %s for too long, before others take over', async (_, answer) => {
    const objects = fakeObjects();
    await serve(objects, (request, response) => {
      if (request.method === 'PUT') answer(request, response);
      return request.method === 'PUT';
    });
    const duration = 15_000;
    const one = candidate({ duration, renewWithin: 1000 });
    const leadership = await leads(one);
    const began = performance.now();
    await eventually(() => one.lost.length === 1);
    expect(performance.now() - began).toBeLessThan(duration);
    await loses(one, leadership, 'it could not be renewed for 1000 ms');
  });

  test('when the process stood still for so long that others may have taken over', async () => {
    const objects = fakeObjects();
    await serve(objects);
    // Fake: the time that passed is told by a clock, the timers are real, as after SIGCONT.
    let slept = 0;
    const clock: Clock = { ...systemClock, elapsed: () => performance.now() + slept };
    const one = candidate({ clock });
    const { holds } = await leads(one);
    expect(holds()).toBe(true);
    slept = 20_000;
    expect(holds()).toBe(false);
    await eventually(() => one.lost.length === 1);
    expect(requests('PUT')).toHaveLength(0);
  });

  test('but not when the clock on the wall jumps', async () => {
    const objects = fakeObjects();
    await serve(objects);
    let jump = 0;
    const one = candidate({ renewEvery: 100, clock: { ...systemClock, now: () => Date.now() + jump } });
    const { holds } = await leads(one);
    for (jump of [86_400_000, -86_400_000]) await pause(250);
    expect(holds()).toBe(true);
    expect(one.lost).toEqual([]);
  });
});

describe('release', () => {
  test('lets another one take over at once, with the next epoch', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const one = candidate();
    const { signal } = await leads(one);
    const two = candidate();
    await pause(150);
    const began = performance.now();
    await one.release();
    expect(signal.aborted).toBe(true);
    expect((await leads(two)).epoch).toBe(2);
    // Not when it runs out.
    expect(performance.now() - began).toBeLessThan(14_000);
    expect(one.lost).toEqual([]);
  });

  test('leaves the epoch in the Lease, without a holder', async () => {
    const objects = fakeObjects();
    objects.put(leases, lease(undefined, '7'));
    await serve(objects);
    const one = candidate();
    await leads(one);
    await Promise.all([one.release(), one.release()]);
    await one.release();
    expect(objects.get(leases, 'l')).toMatchObject({ metadata: { annotations: { other: 'stays', [annotation]: '8' } } });
    expect(spec(objects)).not.toHaveProperty('holderIdentity');
    expect(requests('PUT')).toHaveLength(2);
  });

  test('works when the Lease was annotated just before', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const one = candidate();
    await leads(one);
    const now = objects.get(leases, 'l')!;
    objects.put(leases, { ...now, metadata: { ...now.metadata, annotations: { ...now.metadata.annotations, drain: 'yes' } } });
    await one.release();
    expect(spec(objects)).not.toHaveProperty('holderIdentity');
    expect(objects.get(leases, 'l')?.metadata.annotations).toMatchObject({ drain: 'yes' });
  });

  test('never throws, and leaves a Lease alone that it cannot give back', async () => {
    const objects = fakeObjects();
    await serve(objects, ({ method }, response) => {
      if (method === 'PUT') reply(response, 500, {});
      return method === 'PUT';
    });
    const one = candidate();
    await leads(one);
    await one.release();
    expect(one.errors.length).toBeGreaterThan(0);
    expect(spec(objects)).toMatchObject({ holderIdentity: one.identity });
  });

  test('lets a replica with the usual times lead within two seconds; until then it asks for the Lease alone, about once a second', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const one = candidate();
    await leads(one);
    const heard = () =>
      api?.received.filter(({ method, path }) => method !== 'PUT' && path !== '/apis/coordination.k8s.io/v1') ?? [];
    const before = heard().length;
    const waits: number[] = [];
    const after: Clock['after'] = (wait, run) => {
      waits.push(wait);
      return systemClock.after(wait, run);
    };
    const two = candidate({
      duration: 15_000,
      renewEvery: 5000,
      renewWithin: 10_000,
      lookEvery: undefined as never,
      clock: { ...systemClock, after },
    });
    const began = performance.now();
    await pause(2600);
    const looks = heard().slice(before);
    expect(looks.every(({ method, path }) => method === 'GET' && path === `${leases}/l`)).toBe(true);
    expect(looks.length).toBeLessThanOrEqual(2 + (performance.now() - began) / 750);
    expect(Math.max(...waits)).toBeLessThanOrEqual(1250);
    await one.release();
    await leads(two);
  });

  test.each([
    [401, {}],
    [403, { kind: 'Status', reason: 'Forbidden' }],
    [404, { kind: 'Status', reason: 'NotFound', details: { name: 'l', kind: 'leases' } }],
    [404, '404 page not found'],
  ])('that is answered %i is quiet: what is uninstalled has no next leader', async (code, body) => {
    const objects = fakeObjects();
    let uninstalled = false;
    await serve(objects, (_request, response) => {
      if (uninstalled) reply(response, code, body);
      return uninstalled;
    });
    const one = candidate({ renewEvery: 2000 });
    await leads(one);
    uninstalled = true;
    await one.release();
    expect(one.errors).toEqual([]);
    expect(one.lost).toEqual([]);
  });

  test('of a Lease that somebody deleted is quiet, and makes no new one', async () => {
    const objects = fakeObjects();
    await serve(objects);
    const one = candidate({ renewEvery: 2000 });
    await leads(one);
    objects.remove(leases, 'l');
    await one.release();
    expect([objects.get(leases, 'l'), one.errors, one.lost]).toEqual([undefined, [], []]);
  });

  test('while the Lease is being taken gives it back', async () => {
    const objects = fakeObjects();
    objects.put(leases, lease(undefined, '7'));
    let taking: (() => void) | undefined;
    await serve(objects, (request, response) => {
      if (request.method !== 'PUT' || taking) return false;
      taking = () => objects.answer(request, response);
      return true;
    });
    const one = candidate({ renewEvery: 5000 });
    await eventually(() => taking !== undefined);
    const released = one.release();
    await pause(20);
    taking?.();
    await released;
    expect(await one.leading).toBeUndefined();
    expect(spec(objects)).not.toHaveProperty('holderIdentity');
  });
});

test('the waits are those of a Lease of 15 s unless told otherwise: looked at every second, taken after 15 s, renewed every 5 s', async () => {
  const objects = fakeObjects();
  objects.put(leases, lease('other', '7', { leaseDurationSeconds: 15 }));
  await serve(objects);
  const clock = fakeClock();
  const one = candidate({
    clock,
    random: () => 0.5,
    duration: undefined as never,
    renewEvery: undefined as never,
    renewWithin: undefined as never,
    lookEvery: undefined as never,
    retryEvery: undefined as never,
  });
  const looks = () => requests('GET').filter(({ path }) => path.endsWith('/l')).length;
  for (let i = 1; i <= 15; i++) {
    await eventually(() => looks() === i && clock.timers() === 1);
    expect(requests('PUT')).toHaveLength(0);
    await clock.advance(1000);
  }
  const { signal } = await leads(one);
  expect(spec(objects)).toMatchObject({ leaseDurationSeconds: 15 });
  for (let i = 2; i <= 4; i++) {
    await eventually(() => clock.timers() === 2);
    await clock.advance(4999);
    expect(requests('PUT')).toHaveLength(i - 1);
    await clock.advance(1);
    await eventually(() => requests('PUT').length === i);
    await eventually(() => clock.timers() === 2);
  }
  expect(signal.aborted).toBe(false);
});

test('of many candidates one leads at a time, and no epoch is given twice, though answers are lost and leaders vanish', async () => {
  const objects = fakeObjects();
  let count = 0;
  await serve(objects, (request, response) => {
    if (request.method === 'GET' || ++count % 4 !== 0) return false;
    if (count % 8 === 0) objects.answer(request, { writeHead: () => ({ end: () => undefined }) } as never);
    response.socket?.resetAndDestroy();
    return true;
  });
  const leaders: Leadership[] = [];
  const start = (): Candidate => {
    const one = candidate({ ...brief, lookEvery: 15, retryEvery: 15 });
    void one.leading.then((leadership) => leadership && leaders.push(leadership));
    return one;
  };
  const all = [start(), start(), start()];
  // At least so long, and until leadership has changed hands, which on a busy machine takes longer.
  for (let i = 0; i < 240 || (leaders.length <= 2 && i < 2000); i++) {
    expect(leaders.filter(({ holds }) => holds()).length).toBeLessThanOrEqual(1);
    if (i % 30 === 29) {
      // One of them leaves, another comes.
      void all.shift()?.release();
      all.push(start());
    }
    await pause(5);
  }
  const epochs = leaders.map(({ epoch }) => epoch);
  expect(leaders.length).toBeGreaterThan(2);
  expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
});
