import { afterEach, describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { createClient } from '../../src/kube/client.js';
import { createRecorder } from '../../src/kube/events.js';
import type { KubeEvent, Recorder, RecorderOptions } from '../../src/kube/events.js';
import { createTransport } from '../../src/kube/transport.js';
import type { Transport } from '../../src/kube/transport.js';
import { eventually } from '../support/eventually.js';
import { fakeApi, reply } from '../support/fake-api.js';
import type { Answer, FakeApi, Received } from '../support/fake-api.js';
import { fakeClock } from '../support/fake-clock.js';
import type { FakeClock } from '../support/fake-clock.js';
import { fakeObjects } from '../support/fake-objects.js';
import type { FakeObjects } from '../support/fake-objects.js';

let api: FakeApi | undefined;
let transport: Transport | undefined;
let current: Bench | undefined;
afterEach(async () => {
  const closed = current?.recorder.close(0);
  await current?.clock.advance(0);
  await closed;
  transport?.close();
  await api?.close();
});

interface Bench {
  readonly objects: FakeObjects;
  readonly clock: FakeClock;
  readonly errors: unknown[];
  readonly recorder: Recorder;
}

async function bench(
  options: Partial<RecorderOptions> = {},
  instead: (...of: Parameters<Answer>) => boolean = () => false,
): Promise<Bench> {
  const objects = fakeObjects();
  api = await fakeApi((request, response) => {
    if (!instead(request, response)) objects.answer(request, response);
  });
  transport = createTransport({ server: api.url, credentials: () => ({}) });
  const clock = fakeClock();
  const errors: unknown[] = [];
  const recorder = createRecorder(createClient(transport), {
    manager: 'm',
    reportingController: 'orka.ai/workspaces',
    reportingInstance: 'host_uuid',
    onError: (error) => errors.push(error),
    clock,
    ...options,
  });
  current = { objects, clock, errors, recorder };
  return current;
}
const regarding = (name = 'p'): Manifest => ({
  apiVersion: 'core.orka.ai/v1alpha1',
  kind: 'RuntimePool',
  metadata: { name, namespace: 'a', uid: `uid-of-${name}`, resourceVersion: '5' },
});
const event = (change: Partial<KubeEvent> = {}): KubeEvent => ({
  regarding: regarding(),
  type: 'Normal',
  reason: 'ClaimCreated',
  action: 'CreateClaim',
  note: 'the claim is there',
  ...change,
});
const stored = '/api/v1/namespaces/a/events';
/** A cause of its own for each index. */
const cause = (index: number) => `cause ${'x'.repeat(index + 1)}`;
const sent = (method: string): readonly Received[] => api?.received.filter((one) => one.method === method) ?? [];
const body = (one: Received | undefined): Record<string, unknown> => JSON.parse(one?.body ?? '{}') as Record<string, unknown>;

test('an event has its times and count, by which kubectl sorts and shows it', async () => {
  const { recorder, clock } = await bench();
  clock.jump(123);
  recorder.record(event());
  await eventually(() => sent('POST').length === 1);
  expect(sent('POST')[0]?.path).toBe(stored);
  expect(body(sent('POST')[0])).toEqual({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: expect.stringMatching(/^p\.[0-9a-f]{16}$/), namespace: 'a' },
    type: 'Normal',
    reason: 'ClaimCreated',
    action: 'CreateClaim',
    message: 'the claim is there',
    firstTimestamp: '2030-01-01T00:00:00Z',
    lastTimestamp: '2030-01-01T00:00:00Z',
    count: 1,
    eventTime: '2030-01-01T00:00:00.123000Z',
    source: { component: 'orka.ai/workspaces' },
    reportingComponent: 'orka.ai/workspaces',
    reportingInstance: 'host_uuid',
    involvedObject: {
      apiVersion: 'core.orka.ai/v1alpha1',
      kind: 'RuntimePool',
      name: 'p',
      namespace: 'a',
      uid: 'uid-of-p',
      resourceVersion: '5',
    },
  });
});

test('an event of an object without a namespace is in the default one', async () => {
  const { recorder } = await bench();
  recorder.record(event({ regarding: { ...regarding(), metadata: { name: 'node' } } }));
  await eventually(() => sent('POST').length === 1);
  expect(sent('POST')[0]?.path).toBe('/api/v1/namespaces/default/events');
});

test('what is too long is cut: the note at 1024 bytes, the name at 253 characters', async () => {
  const { recorder } = await bench({ reportingInstance: 'h'.repeat(300) });
  recorder.record(event({ regarding: regarding(`${'x'.repeat(235)}.${'y'.repeat(17)}`), note: 'é'.repeat(2000) }));
  await eventually(() => sent('POST').length === 1);
  const {
    metadata,
    message: note,
    reportingInstance,
  } = body(sent('POST')[0]) as Record<string, string> & { metadata: { name: string } };
  expect(metadata.name).toMatch(/^x{235}\.[0-9a-f]{16}$/);
  expect(Buffer.byteLength(note ?? '')).toBeLessThanOrEqual(1024);
  expect(note?.endsWith('é…')).toBe(true);
  expect(reportingInstance).toHaveLength(128);
});

describe('the same event again', () => {
  test('is counted by one patch, later', async () => {
    const { recorder, clock, objects, errors } = await bench();
    for (let i = 0; i < 5; i++) {
      recorder.record(event());
      await clock.advance(1000);
    }
    await eventually(() => sent('POST').length === 1);
    expect(sent('PATCH')).toHaveLength(0);
    await clock.advance(30_000);
    await eventually(() => sent('PATCH').length === 1);
    expect(body(sent('PATCH')[0])).toEqual({ count: 5, lastTimestamp: '2030-01-01T00:00:04Z', message: 'the claim is there' });
    const name = sent('PATCH')[0]?.path.split('/').at(-1) ?? '';
    await eventually(() => objects.get(stored, name)?.['count'] === 5);
    expect(objects.get(stored, name)).toMatchObject({ firstTimestamp: '2030-01-01T00:00:00Z' });
    expect(errors).toEqual([]);
    await clock.advance(300_000);
    expect([sent('POST').length, sent('PATCH').length, clock.timers()]).toEqual([1, 1, 0]);
  });

  test('is the same cause when only its numbers, digests and names differ, and the latest note is kept', async () => {
    const { recorder, clock } = await bench();
    recorder.record(event({ note: 'try 1 of claim acp-c256: found sha256:ab01, again in 500ms' }));
    recorder.record(event({ note: 'try 2 of claim acp-d734: found sha256:cd02, again in 1.5s' }));
    await clock.advance(30_000);
    await eventually(() => sent('PATCH').length === 1);
    expect(body(sent('PATCH')[0])).toMatchObject({ count: 2, message: expect.stringContaining('try 2 of claim acp-d734') });
    expect(sent('POST')).toHaveLength(1);
  });

  test('is counted after an hour of quiet too', async () => {
    const { recorder, clock } = await bench();
    recorder.record(event());
    await eventually(() => sent('POST').length === 1);
    await clock.advance(3_600_000);
    recorder.record(event());
    await clock.advance(30_000);
    await eventually(() => sent('PATCH').length === 1);
    expect(body(sent('PATCH')[0])).toMatchObject({ count: 2, lastTimestamp: '2030-01-01T01:00:00Z' });
  });

  test('is written again with its whole count when the server has forgotten the first', async () => {
    const { recorder, clock, objects, errors } = await bench();
    recorder.record(event());
    await eventually(() => sent('POST').length === 1);
    const { name } = body(sent('POST')[0])['metadata'] as { name: string };
    await eventually(() => objects.get(stored, name) !== undefined);
    objects.remove(stored, name);
    recorder.record(event());
    await clock.advance(30_000);
    await eventually(() => sent('POST').length === 2);
    expect(body(sent('POST')[1])).toMatchObject({ count: 2, firstTimestamp: '2030-01-01T00:00:00Z' });
    expect(errors).toEqual([]);
  });

  test.each([
    ['object', { regarding: regarding('q') }],
    ['type', { type: 'Warning' }],
    ['reason', { reason: 'Other' }],
    ['action', { action: 'Other' }],
    ['note', { note: 'other' }],
  ] as [string, Partial<KubeEvent>][])('but for its %s is another event', async (_, change) => {
    const { recorder } = await bench();
    recorder.record(event());
    recorder.record(event(change));
    await eventually(() => sent('POST').length === 2);
  });
});

test('ten causes of one reason have events of their own, and all further ones share one', async () => {
  const { recorder, clock } = await bench();
  for (let i = 0; i < 15; i++) recorder.record(event({ note: cause(i) }));
  await eventually(() => sent('POST').length === 11);
  expect(body(sent('POST')[10])['message']).toContain('(combined from similar events) cause');
  await clock.advance(30_000);
  await eventually(() => sent('PATCH').length === 1);
  expect(body(sent('PATCH')[0])).toMatchObject({ count: 5, message: `(combined from similar events) ${cause(14)}` });
});

describe('an object', () => {
  test('may have 25 events at once and one more each five minutes; the others are reported', async () => {
    const { recorder, clock, errors } = await bench();
    for (let i = 0; i < 30; i++) recorder.record(event({ action: `Action${i}` }));
    expect(errors).toHaveLength(5);
    expect(String(errors[0])).toContain('event ClaimCreated of RuntimePool a/p');
    await eventually(() => sent('POST').length === 25);
    await clock.advance(300_000);
    for (let i = 30; i < 33; i++) recorder.record(event({ action: `Action${i}` }));
    await eventually(() => sent('POST').length === 26);
    expect(errors).toHaveLength(7);
  });

  test('that is noisy silences no other', async () => {
    const { recorder } = await bench({ burst: 1 });
    for (let i = 0; i < 5; i++) recorder.record(event({ note: cause(i) }));
    recorder.record(event({ regarding: regarding('q') }));
    await eventually(() => sent('POST').length === 2);
  });
});

describe('a server that', () => {
  test('refuses is reported, once for each event, and nobody else is', async () => {
    const { recorder, errors } = await bench({}, ({ method }, response) => {
      if (method === 'POST') reply(response, 403, {});
      return method === 'POST';
    });
    recorder.record(event());
    await eventually(() => errors.length === 1);
    expect(errors).toMatchObject([{ code: 'forbidden' }]);
    expect(sent('POST')).toHaveLength(1);
  });

  test('fails is asked three times', async () => {
    const { recorder, clock, errors } = await bench({}, ({ method }, response) => {
      if (method === 'POST') reply(response, 500, {});
      return method === 'POST';
    });
    recorder.record(event());
    for (let i = 1; i <= 3; i++) {
      await eventually(() => sent('POST').length === i);
      await eventually(() => clock.timers() === 1 || errors.length === 1);
      await clock.advance(1000);
    }
    await eventually(() => errors.length === 1);
    expect(sent('POST')).toHaveLength(3);
  });

  test('stored the event but lost its answer is not an error', async () => {
    let lost = false;
    const { recorder, clock, errors, objects } = await bench({}, (request, response) => {
      if (request.method !== 'POST' || lost) return false;
      lost = true;
      objects.put(request.path, JSON.parse(request.body) as Manifest);
      response.socket?.resetAndDestroy();
      return true;
    });
    recorder.record(event());
    await eventually(() => clock.timers() === 1);
    await clock.advance(1000);
    await eventually(() => sent('POST').length === 2);
    await recorder.close(1000);
    expect(errors).toEqual([]);
  });

  test('hangs costs no more than a bounded number of waiting events', async () => {
    const { recorder, errors } = await bench({}, ({ method }) => method === 'POST');
    for (let i = 0; i < 1000; i++) recorder.record(event({ regarding: regarding(`p${i}`) }));
    expect(errors.length).toBeGreaterThan(700);
  });
});

test('recording never throws, whatever it is given and whatever its reporter does', async () => {
  const { recorder } = await bench({
    burst: 0,
    onError: () => {
      throw new Error('reporter');
    },
  });
  recorder.record(event());
  recorder.record({} as KubeEvent);
  recorder.record(event({ note: undefined as never }));
});

describe('close', () => {
  test('sends what waits and the counts that are due later, and takes nothing more', async () => {
    const { recorder, clock } = await bench();
    for (let i = 0; i < 3; i++) recorder.record(event());
    await Promise.all([recorder.close(1000), recorder.close(1000)]);
    recorder.record(event({ note: 'late' }));
    expect([sent('POST').length, sent('PATCH').length, clock.timers()]).toEqual([1, 1, 0]);
    expect(body(sent('PATCH')[0])).toMatchObject({ count: 3 });
  });

  test('waits no longer than it is told', async () => {
    const { recorder, clock } = await bench({}, ({ method }) => method === 'POST');
    recorder.record(event());
    await eventually(() => sent('POST').length === 1);
    const closed = recorder.close(1000);
    await clock.advance(1000);
    await closed;
  });
});
