import type { ServerResponse } from 'node:http';
import type { Manifest } from '../../src/api/index.js';
import { isObject } from '../../src/lib/json.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { discovery, reply } from './fake-api.js';
import type { Answer, Received } from './fake-api.js';

/**
 * A fake of what an API server does with stored objects: resourceVersions and uids with their conflicts and preconditions, pages of one moment,
 * watches with a history that can be forgotten, bookmarks, merge patches, six digits in the times of a Lease. No schema, no admission, no apply, no permissions, no
 * graceful deletion, and it keeps everything in memory.
 */
export interface FakeObjects {
  readonly answer: Answer;
  /** Stores an object of a collection, `/api/v1/namespaces/a/configmaps`, as another client would. */
  readonly put: (collection: string, object: JsonObject & { readonly metadata: JsonObject }) => Manifest;
  readonly remove: (collection: string, name: string) => void;
  readonly get: (collection: string, name: string) => Manifest | undefined;
  readonly list: (collection: string) => readonly Manifest[];
  /** Watches from what happened before now, and further pages of lists, are answered 410. */
  readonly forget: () => void;
  /** All watches get a bookmark of now. */
  readonly bookmark: () => void;
  /** Ends all watches, as `timeoutSeconds` does. */
  readonly endWatches: () => void;
  /** Breaks the connections of all watches. */
  readonly breakWatches: () => void;
  readonly watches: () => number;
  readonly resourceVersion: () => string;
  /** Discovery does not know the collections of a group and version, `apps/v1`, and neither does anything else. */
  readonly unknown: Set<string>;
}

interface Watch {
  readonly collection: string;
  readonly response: ServerResponse;
}
interface Happened {
  readonly at: number;
  readonly collection: string;
  readonly line: string;
}

const sixDigits = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

export function fakeObjects(): FakeObjects {
  const stored = new Map<string, Manifest>();
  const watches = new Set<Watch>();
  const unknown = new Set<string>();
  let history: Happened[] = [];
  /** What the further pages of a list are taken from, by its resourceVersion. */
  const listed = new Map<string, readonly Manifest[]>();
  let forgotten = 0;
  let version = 100;
  let uids = 0;

  const status = (response: ServerResponse, code: number, reason: string, message: string, name?: string): void => {
    reply(response, code, { kind: 'Status', code, reason, message, details: name === undefined ? {} : { name } });
  };

  function happen(type: string, collection: string, object: Manifest): void {
    const happened = { at: version, collection, line: `${JSON.stringify({ type, object })}\n` };
    history.push(happened);
    for (const watch of watches) if (watch.collection === collection) watch.response.write(happened.line);
  }

  function put(collection: string, object: JsonObject & { readonly metadata: JsonObject }): Manifest {
    const name = nameOf(object.metadata);
    const before = stored.get(`${collection}/${name}`);
    const namespace = /\/namespaces\/([^/]+)\//.exec(collection)?.[1];
    const after = {
      ...object,
      metadata: {
        ...object.metadata,
        ...(namespace === undefined ? {} : { namespace }),
        uid: before?.metadata.uid ?? `uid-${++uids}`,
        resourceVersion: String(++version),
      },
    } as unknown as Manifest;
    stored.set(`${collection}/${name}`, after);
    happen(before ? 'MODIFIED' : 'ADDED', collection, after);
    return after;
  }

  function remove(collection: string, name: string): void {
    const before = stored.get(`${collection}/${name}`);
    if (!before) return;
    stored.delete(`${collection}/${name}`);
    happen('DELETED', collection, { ...before, metadata: { ...before.metadata, resourceVersion: String(++version) } });
  }

  function objectsOf(collection: string): readonly Manifest[] {
    return [...stored].filter(([path]) => path.slice(0, path.lastIndexOf('/')) === collection).map(([, object]) => object);
  }

  function list(collection: string, query: URLSearchParams, response: ServerResponse): void {
    const [start, at] = (query.get('continue') ?? `0@${version}`).split('@') as [string, string];
    const all = query.has('continue') ? listed.get(`${collection}@${at}`) : objectsOf(collection);
    if (!all) {
      status(response, 410, 'Expired', 'the provided continue parameter is too old');
      return;
    }
    const end = query.has('limit') ? Number(start) + Number(query.get('limit')) : all.length;
    const more = end < all.length;
    if (more) listed.set(`${collection}@${at}`, all);
    reply(response, 200, {
      kind: 'FakeList',
      metadata: { resourceVersion: at, ...(more ? { continue: `${end}@${at}` } : {}) },
      // Items of a list have no kind of their own.
      items: all.slice(Number(start), end).map(({ apiVersion: _apiVersion, kind: _kind, ...item }) => item),
    });
  }

  function watch(collection: string, query: URLSearchParams, response: ServerResponse): void {
    const since = Number(query.get('resourceVersion'));
    if (since < forgotten) {
      status(response, 410, 'Expired', 'too old resource version');
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    for (const one of history) if (one.collection === collection && one.at > since) response.write(one.line);
    const mine = { collection, response };
    watches.add(mine);
    response.on('close', () => watches.delete(mine));
  }

  function write(request: Received, collection: string, name: string, response: ServerResponse): void {
    const before = stored.get(`${collection}/${name}`);
    if (!before) {
      status(response, 404, 'NotFound', `${name} not found`, name);
      return;
    }
    const sent = JSON.parse(request.body) as JsonObject & { readonly metadata?: JsonObject };
    if (!isStill(before, sent.metadata)) {
      status(response, 409, 'Conflict', 'the object has been modified', name);
      return;
    }
    const after = (request.method === 'PUT' ? sent : merge(before, sent)) as Manifest;
    if (hasBadTime(after)) status(response, 400, 'BadRequest', 'parsing time: six digits are needed');
    else if (JSON.stringify({ ...after, metadata: before.metadata }) === JSON.stringify(before) && sameMetadata(before, after))
      reply(response, 200, before);
    else reply(response, 200, put(collection, after));
  }

  function end({ body }: Received, collection: string, name: string, response: ServerResponse): void {
    const before = stored.get(`${collection}/${name}`);
    const { preconditions } = (body === '' ? {} : JSON.parse(body)) as { readonly preconditions?: JsonObject };
    if (!before) status(response, 404, 'NotFound', `${name} not found`, name);
    else if (!isStill(before, preconditions)) status(response, 409, 'Conflict', 'a precondition failed', name);
    else {
      remove(collection, name);
      reply(response, 200, { kind: 'Status', status: 'Success' });
    }
  }

  return {
    put,
    remove,
    list: objectsOf,
    get: (collection, name) => stored.get(`${collection}/${name}`),
    forget: () => {
      history = [];
      listed.clear();
      forgotten = version;
    },
    bookmark: () => {
      for (const { response } of watches) {
        response.write(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(version) } } })}\n`);
      }
    },
    endWatches: () => {
      for (const { response } of watches) response.end();
      watches.clear();
    },
    breakWatches: () => {
      for (const { response } of watches) response.socket?.resetAndDestroy();
      watches.clear();
    },
    watches: () => watches.size,
    resourceVersion: () => String(version),
    unknown,
    answer: (request, response) => {
      const root = /^\/(?:api|apis\/[^/]+)\/v[^/]+/.exec(request.path)?.[0] ?? '';
      if (unknown.has(root.replace(/^\/apis?\//, ''))) {
        reply(response, 404, '404 page not found');
        return;
      }
      if (root === request.path) {
        const kinds = discovery(request.path);
        reply(response, kinds ? 200 : 404, kinds ?? '404 page not found');
        return;
      }
      const parts = /^(\/namespaces\/[^/]+)?\/([^/]+)(?:\/([^/]+))?(?:\/status)?$/.exec(request.path.slice(root.length));
      const collection = `${root}${parts?.[1] ?? ''}/${parts?.[2] ?? ''}`;
      const name = parts?.[3];
      if (request.method === 'POST') {
        const object = JSON.parse(request.body) as JsonObject & { readonly metadata: JsonObject };
        if (stored.has(`${collection}/${nameOf(object.metadata)}`)) status(response, 409, 'AlreadyExists', 'exists');
        else if (hasBadTime(object)) status(response, 400, 'BadRequest', 'parsing time: six digits are needed');
        else reply(response, 201, put(collection, object));
      } else if (name === undefined) {
        if (request.query.has('watch')) watch(collection, request.query, response);
        else list(collection, request.query, response);
      } else if (request.method === 'GET') {
        const object = stored.get(`${collection}/${name}`);
        if (object) reply(response, 200, object);
        else status(response, 404, 'NotFound', `${name} not found`, name);
      } else if (request.method === 'DELETE') {
        end(request, collection, name, response);
      } else {
        write(request, collection, name, response);
      }
    },
  };
}

function isStill({ metadata }: Manifest, { uid, resourceVersion }: JsonObject = {}): boolean {
  const sameUid = uid === undefined || uid === metadata.uid;
  return sameUid && (resourceVersion === undefined || resourceVersion === metadata.resourceVersion);
}

function nameOf({ name }: JsonObject): string {
  return typeof name === 'string' ? name : '';
}

function sameMetadata(a: Manifest, b: Manifest): boolean {
  const rest = ({ metadata: { resourceVersion: _version, uid: _uid, namespace: _namespace, ...others } }: Manifest) => others;
  return JSON.stringify(rest(a)) === JSON.stringify(rest(b));
}

function hasBadTime({ spec, eventTime, series }: JsonObject): boolean {
  const times = [
    eventTime,
    ...(isObject(spec) ? [spec['renewTime'], spec['acquireTime']] : []),
    ...(isObject(series) ? [series['lastObservedTime']] : []),
  ];
  return times.some((time) => typeof time === 'string' && !sixDigits.test(time));
}

function merge(target: Json | undefined, change: Json | undefined): Json {
  if (!isObject(change)) return change ?? null;
  const result = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [name, value] of Object.entries(change)) {
    if (value === null) result.delete(name);
    else result.set(name, merge(result.get(name), value));
  }
  return Object.fromEntries(result);
}
