import type { ServerResponse } from 'node:http';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Manifest } from '../../src/api/index.js';
import { createClient, get } from '../../src/kube/client.js';
import type { ObjectRef } from '../../src/kube/client.js';
import { create } from '../../src/kube/create.js';
import { codeOf, KubeError } from '../../src/kube/errors.js';
import type { ServerStatus } from '../../src/kube/errors.js';
import { createView } from '../../src/kube/own-writes.js';
import { mergePatch } from '../../src/kube/patch.js';
import { startReflector } from '../../src/kube/reflector.js';
import type { Reflector } from '../../src/kube/reflector.js';
import { remove } from '../../src/kube/remove.js';
import type { KubeRequest, KubeStreamRequest, Transport } from '../../src/kube/transport.js';
import type { JsonObject } from '../../src/lib/json.js';
import type { Received } from '../support/fake-api.js';
import { fakeClock, settle } from '../support/fake-clock.js';
import { fakeObjects } from '../support/fake-objects.js';
import type { FakeObjects } from '../support/fake-objects.js';

const maps = '/api/v1/namespaces/a/configmaps';
const names = ['x', 'y', 'z'] as const;
const refTo = (name: string): ObjectRef => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'a', name });
const mapOf = (name: string, by: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'a' },
  data: { by },
});

/** The watch that is open, as a test holds it in its hands. */
interface Wire {
  /** Lines come one by one while it is not held, and not at all while it is. */
  hold: (held: boolean) => void;
  /** A line comes again. */
  repeat: (which: number) => void;
  /** A line that the server did not mean. */
  inject: (line: string) => void;
}

/** A fake transport: requests and watches of one server, without a network. */
function directly(objects: FakeObjects): { readonly transport: Transport; readonly wire: () => Wire | undefined } {
  let current: Wire | undefined;
  const received = (request: KubeRequest): Received => ({
    method: request.method,
    path: request.path,
    query: new URLSearchParams(
      Object.entries(request.query ?? {}).flatMap(([key, value]): [string, string][] =>
        value === undefined ? [] : [[key, String(value)]],
      ),
    ),
    headers: {},
    body: request.body === undefined ? '' : JSON.stringify(request.body),
  });
  const refusal = ({ method, path }: KubeRequest, status: number, text: string): KubeError => {
    const said = JSON.parse(text) as ServerStatus;
    return new KubeError(codeOf(status, said), { at: `${method} ${path}`, says: said.message ?? '', status });
  };

  function request(wanted: KubeRequest): Promise<JsonObject> {
    return new Promise((resolve, reject) => {
      let status = 0;
      const response = {
        writeHead: (code: number) => {
          status = code;
          return response;
        },
        end: (text: string) => {
          if (status < 300) resolve(JSON.parse(text) as JsonObject);
          else reject(refusal(wanted, status, text));
        },
      };
      objects.answer(received(wanted), response as unknown as ServerResponse);
    });
  }

  async function* stream(wanted: KubeStreamRequest): AsyncGenerator<JsonObject, void, undefined> {
    const get: KubeRequest = { method: 'GET', ...wanted };
    const lines: string[] = [];
    let [status, held] = [0, false];
    let over: Error | 'ended' | undefined;
    let [wake, closed] = [(): void => undefined, (): void => undefined];
    const stop = (how: Error | 'ended') => {
      over ??= how;
      wake();
    };
    const response = {
      writeHead: (code: number) => {
        status = code;
        return response;
      },
      flushHeaders: () => undefined,
      write: (line: string) => {
        lines.push(line);
        wake();
      },
      end: (text?: string) => stop(text === undefined ? 'ended' : refusal(get, status, text)),
      on: (_: 'close', run: () => void) => {
        closed = run;
      },
      socket: { resetAndDestroy: () => stop(new KubeError('unreachable', { at: 'watch', says: 'reset' })) },
    };
    const give = () => stop(new KubeError('aborted', { at: 'watch', says: 'stopped' }));
    wanted.signal?.addEventListener('abort', give);
    objects.answer(received(get), response as unknown as ServerResponse);
    let next = 0;
    const mine: Wire = {
      hold: (now) => {
        held = now;
        wake();
      },
      repeat: (which) => {
        const line = lines[which % Math.max(1, next)];
        if (line !== undefined && next > 0) response.write(line);
      },
      inject: (line) => response.write(line),
    };
    current = mine;
    try {
      for (;;) {
        // What had not come when the connection broke never comes.
        if (over instanceof Error) throw over;
        const line = held ? undefined : lines[next];
        if (line !== undefined) {
          next++;
          yield JSON.parse(line) as JsonObject;
        } else if (over === 'ended') return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      wanted.signal?.removeEventListener('abort', give);
      closed();
      if (current === mine) current = undefined;
    }
  }

  return { transport: { request, stream, close: () => undefined }, wire: () => current };
}

/** Everything that may happen, and what must hold at any moment of it. */
function scene() {
  const objects = fakeObjects();
  const { transport, wire } = directly(objects);
  const client = createClient(transport);
  const clock = fakeClock();
  const late: (() => void)[] = [];
  const wrong: string[] = [];
  /** By uid, what the handler was told of. */
  const told = new Map<string, { version: number; went: boolean }>();
  /** By name, the last that a reader saw. */
  const seen = new Map<string, number>();
  const ended = new Set<string>();
  const versionOf = ({ metadata }: Manifest) => Number(metadata.resourceVersion);

  function check({ metadata: { uid = '' } }: Manifest, holds: boolean, says: string): void {
    if (!holds) wrong.push(`${uid} ${says}`);
  }

  function onChange(before: Manifest | undefined, after: Manifest | undefined): void {
    if (before) {
      const of = told.get(before.metadata.uid ?? '');
      check(before, of !== undefined && !of.went, after ? 'changed, but was not there' : 'went, but was not there');
    }
    if (before && !after) told.set(before.metadata.uid ?? '', { version: versionOf(before), went: true });
    if (!after) return;
    const of = told.get(after.metadata.uid ?? '');
    check(
      after,
      before ? of !== undefined && of.version < versionOf(after) : of === undefined,
      before ? 'changed to no news' : 'came twice',
    );
    told.set(after.metadata.uid ?? '', { version: versionOf(after), went: false });
  }

  const view = createView(() => reflector, { clock });
  const reflector: Reflector = startReflector(client, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    namespace: 'a',
    pageSize: 2,
    clock,
    onChange: (key, before, after) => {
      view.changed(key, before, after);
      onChange(before, after);
      look();
    },
    onError: () => undefined,
  });

  /** As a reader that runs at this moment does. */
  function look(): void {
    const listed = new Map(view.list().map((object) => [object.metadata.name, object]));
    for (const name of names) {
      const object = view.get(`a/${name}`);
      if (object?.metadata.resourceVersion !== listed.get(name)?.metadata.resourceVersion)
        wrong.push(`${name} is listed otherwise`);
      const before = seen.get(name) ?? 0;
      if (object) {
        check(object, versionOf(object) >= before, 'went back');
        check(object, !ended.has(object.metadata.uid ?? ''), 'is there again');
        seen.set(name, versionOf(object));
      }
      for (const [uid, { went }] of told) if (went && uid !== object?.metadata.uid) ended.add(uid);
    }
  }

  /** Sometimes the answer is dealt with only after other things have happened. */
  function answer(later: boolean, run: () => void): void {
    if (later) late.push(run);
    else run();
  }

  async function readAgain(name: string): Promise<void> {
    const fresh = await get(client, refTo(name));
    const known = view.get(`a/${name}`);
    if (fresh) view.wrote(fresh);
    else if (known) view.removed(known);
  }

  /** Writes what a reader of the view would: creates what is absent, changes what is there, and reads what was refused. */
  async function own(name: string, by: string, later: boolean, lost: boolean): Promise<void> {
    const known = view.get(`a/${name}`);
    try {
      const object = known
        ? (
            await mergePatch(
              client,
              refTo(name),
              { data: { by } },
              { manager: 'm', resourceVersion: known.metadata.resourceVersion ?? '' },
            )
          ).object
        : await create(client, mapOf(name, by), { manager: 'm' });
      if (!lost) answer(later, () => view.wrote(object));
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      await readAgain(name);
    }
  }

  async function ownEnd(name: string, later: boolean): Promise<void> {
    const known = view.get(`a/${name}`);
    if (!known) return;
    const { uid = '', resourceVersion = '' } = known.metadata;
    const outcome = await remove(client, refTo(name), { uid, resourceVersion, propagation: 'Background' });
    if (outcome === 'another') await readAgain(name);
    else
      answer(later, () => {
        ended.add(uid);
        view.removed(known);
      });
  }

  return { objects, wire, clock, late, wrong, told, view, reflector, look, own, ownEnd };
}

type Scene = ReturnType<typeof scene>;
interface Step {
  /** What a counterexample says. */
  readonly toString: () => string;
  readonly run: (it: Scene) => unknown;
}

const step = (says: string, run: Step['run']): Step => ({ run, toString: () => says });
const name = fc.constantFrom(...names);
const error = (code: number) => `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code } })}\n`;
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(name, fc.nat(99))
      .map(([one, by]) => step(`${one} is put`, ({ objects }) => objects.put(maps, mapOf(one, `other ${by}`)))),
  },
  { weight: 2, arbitrary: name.map((one) => step(`${one} is deleted`, ({ objects }) => objects.remove(maps, one))) },
  {
    weight: 5,
    arbitrary: fc
      .tuple(name, fc.nat(99), fc.boolean(), fc.nat(4))
      .map(([one, by, later, luck]) =>
        step(`we write ${one}${luck === 0 ? ', and never learn of it' : later ? ', and learn of it later' : ''}`, (it) =>
          it.own(one, `own ${by}`, later, luck === 0),
        ),
      ),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(name, fc.boolean())
      .map(([one, later]) => step(`we delete ${one}${later ? ', and learn of it later' : ''}`, (it) => it.ownEnd(one, later))),
  },
  {
    weight: 3,
    arbitrary: fc
      .nat()
      .map((which) => step(`answer ${which} comes`, ({ late }) => late.splice(which % Math.max(1, late.length), 1)[0]?.())),
  },
  {
    weight: 2,
    arbitrary: fc.boolean().map((held) => step(held ? 'the watch lags' : 'the watch goes on', ({ wire }) => wire()?.hold(held))),
  },
  { weight: 3, arbitrary: fc.nat().map((which) => step(`event ${which} comes again`, ({ wire }) => wire()?.repeat(which))) },
  { weight: 1, arbitrary: fc.constant(step('the watch breaks', ({ objects }) => objects.breakWatches())) },
  { weight: 1, arbitrary: fc.constant(step('the watch ends', ({ objects }) => objects.endWatches())) },
  { weight: 1, arbitrary: fc.constant(step('the server forgets', ({ objects }) => objects.forget())) },
  { weight: 1, arbitrary: fc.constant(step('a bookmark comes', ({ objects }) => objects.bookmark())) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(410, 500).map((code) => step(`ERROR ${code}`, ({ wire }) => wire()?.inject(error(code)))),
  },
  {
    weight: 4,
    arbitrary: fc.integer({ min: 1, max: 9_000 }).map((wait) => step(`${wait} ms pass`, ({ clock }) => clock.advance(wait))),
  },
  { weight: 3, arbitrary: fc.constant(step('what can come comes', settle)) },
);

test('whatever happens in whatever order, a reader never sees a state go back, each deletion is told once, and in the end all is as the server has it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 50 }), async (all) => {
      const it = scene();
      const { objects, reflector, view, clock, wire, look, late, wrong, told } = it;
      try {
        await reflector.synced;
        for (const one of all) {
          await one.run(it);
          look();
        }
        wire()?.hold(false);
        for (const answer of late.splice(0)) answer();
        await clock.advance(60_000);
        look();
        await settle();
        const stored = objects.list(maps).map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`);
        const versions = (of: readonly Manifest[]) =>
          of.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`).sort();
        expect(wrong).toEqual([]);
        expect(versions(reflector.list())).toEqual(stored.sort());
        expect(versions(view.list())).toEqual(stored.sort());
        const live = [...told].filter(([, { went }]) => !went).map(([uid]) => uid);
        expect(live.sort()).toEqual(
          objects
            .list(maps)
            .map(({ metadata }) => metadata.uid)
            .sort(),
        );
      } finally {
        await reflector.stop();
      }
    }),
    { numRuns: 300 },
  );
}, 120_000);
