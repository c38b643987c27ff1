import type { Manifest } from '../../src/api/index.js';
import type { KubeClient } from '../../src/kube/client.js';
import { rootOf } from '../../src/kube/client.js';
import { KubeError } from '../../src/kube/errors.js';
import type { KubeErrorCode } from '../../src/kube/errors.js';
import type { KubeRequest } from '../../src/kube/transport.js';
import { equalJson, isObject } from '../../src/lib/json.js';
import type { Json, JsonObject } from '../../src/lib/json.js';

/** An API server without a network: resourceVersions, conflicts, merge patches, and whatever a test lets go wrong. */
export interface MemoryClient extends KubeClient {
  /** `METHOD path` of everything that was asked, in order. */
  readonly asked: string[];
  readonly stored: Map<string, Manifest>;
  /** Stores an object as another client would. */
  readonly put: (object: object) => Manifest;
  readonly at: (kind: string, name: string) => Manifest | undefined;
  /** Called before each request; what it throws is the answer. */
  before: (request: KubeRequest) => void | Promise<void>;
  /** Called after a write was stored; what it throws is the answer, and the write stays. */
  after: (request: KubeRequest) => void;
}

const plural = (kind: string): string => (kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`).toLowerCase();

export function refusal(code: KubeErrorCode, says: string = code): KubeError {
  return new KubeError(code, { at: 'memory', says });
}

export function memoryClient(onWrite: (before: Manifest | undefined, after: Manifest) => void = () => undefined): MemoryClient {
  const stored = new Map<string, Manifest>();
  let version = 100;
  const pathTo = ({ apiVersion, kind, metadata }: Manifest) =>
    `${rootOf(apiVersion)}/namespaces/${metadata.namespace ?? ''}/${plural(kind)}/${metadata.name}`;

  function store(path: string, object: Manifest): Manifest {
    const before = stored.get(path);
    const metadata = { uid: `uid-${version + 1}`, ...object.metadata, resourceVersion: String(++version) };
    const after = { ...object, metadata } as Manifest;
    onWrite(before, after);
    stored.set(path, after);
    return after;
  }

  function change(path: string, { body }: KubeRequest): Manifest {
    const status = path.endsWith('/status');
    const key = path.replace(/\/status$/, '');
    const before = stored.get(key);
    if (!before) throw refusal('not-found');
    const { metadata, ...rest } = body as JsonObject & { readonly metadata: JsonObject };
    if (metadata['resourceVersion'] !== before.metadata.resourceVersion) throw refusal('conflict');
    const { resourceVersion: _version, ...changed } = metadata;
    // A subresource takes nothing else, and the main object does not take the status.
    const wanted = status ? { status: rest['status'] } : { ...rest, status: undefined, metadata: changed };
    const merged = merge(before, wanted) as unknown as Manifest;
    return equalJson(merged, before) ? before : store(key, merged);
  }

  function answer(request: KubeRequest): Manifest {
    const { method, path, body } = request;
    if (method === 'DELETE') {
      const gone = stored.get(path);
      if (!gone) throw refusal('not-found');
      stored.delete(path);
      return gone;
    }
    if (method === 'GET') {
      const found = stored.get(path);
      if (!found) throw refusal('not-found');
      return found;
    }
    if (method === 'POST') {
      const object = body as unknown as Manifest;
      if (stored.has(pathTo(object))) throw refusal('already-exists');
      return store(pathTo(object), object);
    }
    return change(path, request);
  }

  const it: MemoryClient = {
    asked: [],
    stored,
    put: (object) => store(pathTo(object as Manifest), object as Manifest),
    at: (kind, name) => [...stored].find(([path]) => path.endsWith(`/${plural(kind)}/${name}`))?.[1],
    before: () => undefined,
    after: () => undefined,
    pathOf: ({ apiVersion, kind, namespace, name }) =>
      Promise.resolve(
        `${rootOf(apiVersion)}/namespaces/${namespace ?? ''}/${plural(kind)}${name === undefined ? '' : `/${name}`}`,
      ),
    request: async (request) => {
      it.asked.push(`${request.method} ${request.path.replace(/^.*\/namespaces\/[^/]*\//, '')}`);
      await it.before(request);
      if (request.signal?.aborted) throw refusal('aborted');
      const result = answer(request);
      it.after(request);
      return result;
    },
    stream: () => {
      throw new Error('nothing is watched here');
    },
  };
  return it;
}

function merge(target: Json | undefined, change: Json | undefined): Json {
  if (!isObject(change)) return change ?? null;
  const result = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [name, value] of Object.entries(change)) {
    if (value === null) result.delete(name);
    else if (value !== undefined) result.set(name, merge(result.get(name), value));
  }
  return Object.fromEntries(result);
}
