import type { Manifest } from '../api/index.js';
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { backoffOf, jittered } from './backoff.js';
import type { Backoff } from './backoff.js';
import type { KubeClient, ObjectKind } from './client.js';
import { sleep, systemClock } from './clock.js';
import type { Clock } from './clock.js';
import { kindPresent } from './discovery.js';
import { askedWait, codeOf, isNotGranted, KubeError, secondsOf } from './errors.js';
import type { ServerStatus } from './errors.js';
import { createStore, isNewer, keyOf } from './store.js';
import type { ChangeHandler, Store } from './store.js';

export interface ReflectorOptions extends ObjectKind {
  /** Of a kind that has namespaces; `''` for all namespaces. @default that of the client */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** See {@link ChangeHandler}. One that throws is reported and changes nothing. */
  readonly onChange: ChangeHandler;
  /** Whatever went wrong; all of it is tried again. */
  readonly onError: (error: unknown) => void;
  /**
   * The watch failed five times in a row, for this reason; `undefined`: it works again. Told once each.
   * @default no report
   */
  readonly onBroken?: (error: unknown) => void;
  /** The server does not know the kind, or knows it again. @default no report */
  readonly onMissing?: (missing: boolean) => void;
  /** Called when the right to list the objects is granted or missing. @default nothing */
  readonly onReadable?: (readable: boolean) => void;
  /** What the store keeps of an object; identity and resourceVersion must stay. @default all but `metadata.managedFields` */
  readonly keep?: (object: Manifest) => Manifest;
  /** Objects of one page of a list. @default 500 */
  readonly pageSize?: number;
  /** Seconds after which the server ends a watch, at least; at most twice as many. @default 300 */
  readonly watchSeconds?: number;
  /** Milliseconds without a byte until a watch counts as dead. The server sends a bookmark a minute. @default 90000 */
  readonly inactivity?: number;
  /** Between tries that led to nothing. @default half a second to 30 seconds */
  readonly backoff?: Backoff;
  /** Between questions for a missing kind. @default 2 to 60 seconds */
  readonly missingBackoff?: Backoff;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** The objects of one kind in one place, as the server has them, a moment ago. */
export interface Reflector extends Pick<Store, 'get' | 'list'> {
  /**
   * The first that is known: the objects are in the store and their handlers have run, the kind is missing, the right to list it is missing, or
   * nobody wants to know any more.
   */
  readonly synced: Promise<'listed' | 'missing' | 'denied' | 'stopped'>;
  readonly missing: () => boolean;
  /** The objects were listed, or the kind is missing. `false`: the store says nothing about what there is; it keeps what was listed before. */
  readonly readable: () => boolean;
  /** Whatever happened up to this resourceVersion is in the store. `undefined`: nothing was listed yet, or the kind is missing. */
  readonly reached: () => string | undefined;
  /** No handler runs after this. The promise resolves when the connection is closed. May be called often. */
  readonly stop: () => Promise<void>;
}

/** A watch that lived this long ended for a reason that is over. */
const healthyAfter = 10_000;
/** Refusals in a row after which a right counts as missing: a server that starts refuses what it has not loaded yet. */
const convincing = 3;
/** Failures in a row after which a watch counts as broken. */
const brokenAfter = 5;
/** Tries without any event after which the list is read anew, in case the server has other memories than we have. */
const patience = 5;

/**
 * Lists and then watches, for ever. Level-triggered: changes may be merged, but the store converges, and a deletion that happened while nobody
 * watched is told exactly once, after the next list.
 *
 * A watch that ended is resumed from the last resourceVersion seen, bookmarks included; what is told again is ignored. 410, an ERROR event
 * and a resourceVersion that the server refuses lead to a list. Waits grow while nothing comes, never fall below `backoff.base` for a
 * connection that did not last, and respect Retry-After. A kind that discovery does not know has no objects: those of before are told as deleted.
 * A list that is not granted is tried again like any other failure, and keeps what was listed before. Without the right to watch, lists follow each
 * other at the longest wait.
 */
export function startReflector(client: KubeClient, options: ReflectorOptions): Reflector {
  const {
    apiVersion,
    kind,
    namespace,
    clock = systemClock,
    random = Math.random,
    backoff = { base: 500, cap: 30_000 },
    missingBackoff = { base: 2_000, cap: 60_000 },
    inactivity = 90_000,
    watchSeconds = 300,
    pageSize = 500,
    keep = withoutManagedFields,
  } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const selectors = { labelSelector: options.labelSelector, fieldSelector: options.fieldSelector };
  let markSynced: (how: Awaited<Reflector['synced']>) => void = () => undefined;
  const synced: Reflector['synced'] = new Promise((resolve) => {
    markSynced = resolve;
  });
  const store = createStore((key, before, after) => {
    if (!signal.aborted) guarded(() => options.onChange(key, before, after));
  });
  let missing = false;
  let readable = false;
  /** Lists in a row that were refused. */
  let refusals = 0;
  /** Where the next watch begins; without it, there is a list first. */
  let since: string | undefined;
  let reached: string | undefined;
  /** Rounds in a row that led to nothing. */
  let failures = 0;
  /** Rounds in a row that ended with an error, and whether that was told. */
  let errors = 0;
  let broken = false;

  function guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      report(error);
    }
  }

  function report(error: unknown): void {
    try {
      options.onError(error);
    } catch {
      // Nobody is left to tell.
    }
  }

  function failedAgain(error: unknown, silent: boolean): void {
    report(error);
    // A missing right is reported to `onReadable`; a silent watch is only opened again.
    if (isNotGranted(error) || silent || ++errors < brokenAfter || broken) return;
    broken = true;
    guarded(() => options.onBroken?.(error));
  }

  function works(): void {
    errors = 0;
    if (!broken || signal.aborted) return;
    broken = false;
    guarded(() => options.onBroken?.(undefined));
  }

  function setMissing(now: boolean): void {
    if (missing === now || signal.aborted) return;
    missing = now;
    failures = 0;
    guarded(() => options.onMissing?.(now));
  }

  function setReadable(now: boolean): void {
    if (now) refusals = 0;
    if (readable === now || signal.aborted) return;
    readable = now;
    guarded(() => options.onReadable?.(now));
  }

  function refused(): void {
    if (++refusals < convincing) return;
    setReadable(false);
    markSynced('denied');
  }

  async function list(limit: number | undefined): Promise<string> {
    const path = await client.pathOf({ apiVersion, kind, namespace }, { signal });
    const objects: Manifest[] = [];
    let next: string | undefined;
    for (;;) {
      const page = await client.request({ method: 'GET', path, query: { ...selectors, limit, continue: next }, signal });
      const { items, resourceVersion, more } = readPage(path, page);
      for (const item of items) objects.push(keep({ ...item, apiVersion, kind }));
      if (more === undefined) {
        setMissing(false);
        store.replace(objects);
        reached = resourceVersion;
        setReadable(true);
        markSynced('listed');
        return resourceVersion;
      }
      next = more;
    }
  }

  async function relist(): Promise<string> {
    try {
      return await list(pageSize);
    } catch (error) {
      // The pages of one list are kept for five minutes at most. All at once needs no memory of the server.
      if (error instanceof KubeError && error.code === 'gone') return list(undefined);
      throw error;
    }
  }

  async function watch(seen: () => void): Promise<void> {
    const path = await client.pathOf({ apiVersion, kind, namespace }, { signal });
    const timeoutSeconds = Math.round(watchSeconds * (1 + random()));
    const query = { ...selectors, watch: true, allowWatchBookmarks: true, resourceVersion: since, timeoutSeconds };
    for await (const event of client.stream({ path, query, inactivity, signal })) {
      if (signal.aborted) return;
      if (event['type'] === 'ERROR') {
        since = undefined;
        throw statusError(path, event['object']);
      }
      const { type, object } = readEvent(path, event);
      // Told twice: what happened to the object since must not be undone.
      if (isNewer(object.metadata.resourceVersion, since) === false) continue;
      if (type === 'DELETED') store.remove(keyOf(object));
      else if (type !== 'BOOKMARK') store.put(keep(object));
      since = reached = object.metadata.resourceVersion;
      works();
      seen();
    }
  }

  /** One list, if needed, and one watch. Answers how many milliseconds to wait. */
  async function round(): Promise<number> {
    let opened: number | undefined;
    let events = 0;
    let failure: unknown;
    try {
      if (missing && !(await kindPresent(client, { apiVersion, kind }, { signal }))) {
        return jittered(backoffOf(++failures, missingBackoff), random);
      }
      since ??= await relist();
      opened = clock.elapsed();
      await watch(() => {
        events++;
      });
    } catch (error) {
      failure = error;
      if (signal.aborted) return 0;
      if (error instanceof KubeError && error.code === 'kind-missing' && (await missingForSure())) {
        return jittered(backoffOf(++failures, missingBackoff), random);
      }
      if (isNotGranted(error)) {
        if (opened === undefined) refused();
        since = undefined;
      }
      if (isOutdated(error)) since = undefined;
      // That a resourceVersion expires is nothing wrong.
      if (!(error instanceof KubeError && error.code === 'gone')) failedAgain(error, opened !== undefined && isSilent(error));
    }
    const healthy = opened !== undefined && clock.elapsed() - opened >= healthyAfter;
    const silent = opened !== undefined && isSilent(failure);
    if (healthy || silent) {
      failures = 0;
      works();
    } else failures = events > 0 ? 1 : failures + 1;
    if (failures >= patience) since = undefined;
    if (silent || (healthy && failure === undefined)) return 0;
    return askedWait(failure) + jittered(backoffOf(failures, backoff), random);
  }

  /** A 404 may be a hiccup of what stands before the server; only discovery makes all objects of a kind vanish. */
  async function missingForSure(): Promise<boolean> {
    try {
      if (await kindPresent(client, { apiVersion, kind }, { signal })) return false;
    } catch {
      return false;
    }
    if (signal.aborted) return false;
    since = undefined;
    setMissing(true);
    reached = undefined;
    store.replace([]);
    setReadable(true);
    markSynced('missing');
    return true;
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const wait = await round();
      if (wait > 0) await sleep(clock, wait, signal);
    }
  }

  const running = run().catch(report);
  return {
    synced,
    missing: () => missing,
    readable: () => readable,
    reached: () => reached,
    get: store.get,
    list: store.list,
    stop: () => {
      stopping.abort();
      markSynced('stopped');
      return running;
    },
  };
}

const isSilent = (error: unknown): boolean => error instanceof KubeError && error.code === 'timeout';

function withoutManagedFields(object: Manifest): Manifest {
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Anything that only looks like a list would empty the store. */
function readPage(
  path: string,
  { kind, items, metadata }: JsonObject,
): { readonly items: readonly Manifest[]; readonly resourceVersion: string; readonly more: string | undefined } {
  const resourceVersion = isObject(metadata) ? metadata['resourceVersion'] : undefined;
  const all = items ?? [];
  if (typeof kind !== 'string' || !kind.endsWith('List') || typeof resourceVersion !== 'string' || !Array.isArray(all)) {
    throw new KubeError('server-error', { at: `GET ${path}`, says: 'an answer that is no list', status: 200 });
  }
  const more = isObject(metadata) ? metadata['continue'] : undefined;
  return { items: all as readonly Manifest[], resourceVersion, more: typeof more === 'string' && more !== '' ? more : undefined };
}

/** The server refuses our resourceVersion, not our connection. 504 is its word for one that it has not reached, after a restore. */
function isOutdated(error: unknown): boolean {
  return error instanceof KubeError && (error.code === 'gone' || error.code === 'invalid' || error.status === 504);
}

function readEvent(path: string, { type, object }: JsonObject): { readonly type: string; readonly object: Manifest } {
  const metadata = isObject(object) ? object['metadata'] : undefined;
  const known = type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK';
  if (!known || !isObject(metadata) || typeof metadata['resourceVersion'] !== 'string') {
    throw new KubeError('server-error', { at: `GET ${path}`, says: 'an answer that is no watch event', status: 200 });
  }
  return { type, object: object as Manifest };
}

function statusError(path: string, object: Json | undefined): KubeError {
  const status = (isObject(object) ? object : {}) as ServerStatus & { readonly code?: number };
  const code = status.code ?? 0;
  const retryAfter = secondsOf(status.details?.retryAfterSeconds);
  return new KubeError(codeOf(code, status), {
    at: `GET ${path}`,
    says: status.message ?? 'an ERROR event',
    status: code,
    reason: status.reason,
    ...(retryAfter === undefined ? {} : { retryAfter }),
  });
}
