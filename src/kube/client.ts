import type { Manifest } from '../api/index.js';
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { KubeError } from './errors.js';
import type { KubeRequest, Transport } from './transport.js';

/** Group, version and kind of an object, as manifests have them. */
export interface ObjectKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** One stored object. */
export interface ObjectRef extends ObjectKind {
  readonly namespace?: string;
  readonly name: string;
}

/** What the server says about a kind. */
export interface ResourceInfo {
  readonly plural: string;
  readonly namespaced: boolean;
}

export type CallOptions = Pick<KubeRequest, 'timeout' | 'signal' | 'urgent'>;

/** Objects of any kind over a {@link Transport}; what every verb needs. */
export interface KubeClient extends Pick<Transport, 'request' | 'stream'> {
  /**
   * Path of an object, or of its collection without a name; a collection in namespace `''` is that of all namespaces. Asks the server once for each group and version; a kind that it does not know
   * throws `kind-missing` and is asked for again next time.
   */
  readonly pathOf: (
    object: ObjectKind & { readonly namespace?: string | undefined; readonly name?: string | undefined },
    options?: CallOptions,
  ) => Promise<string>;
}

/** @param namespace where objects that name none are */
export function createClient(transport: Transport, namespace = 'default'): KubeClient {
  const known = new Map<string, ReadonlyMap<string, ResourceInfo>>();

  async function infoOf({ apiVersion, kind }: ObjectKind, options: CallOptions): Promise<ResourceInfo> {
    const cached = known.get(apiVersion)?.get(kind);
    if (cached) return cached;
    const list = await transport.request({ method: 'GET', path: rootOf(apiVersion), ...options });
    const kinds = kindsOf(list);
    known.set(apiVersion, kinds);
    const info = kinds.get(kind);
    if (!info)
      throw new KubeError('kind-missing', {
        at: `${apiVersion} ${kind}`,
        says: 'the server does not know this kind',
        status: 404,
      });
    return info;
  }

  return {
    request: transport.request,
    stream: transport.stream,
    pathOf: async (object, options = {}) => {
      const { plural, namespaced } = await infoOf(object, options);
      const inside = object.namespace ?? namespace;
      const everywhere = inside === '' && object.name === undefined;
      const place = namespaced && !everywhere ? `/namespaces/${encodeURIComponent(inside)}` : '';
      return `${rootOf(object.apiVersion)}${place}/${plural}${object.name === undefined ? '' : `/${encodeURIComponent(object.name)}`}`;
    },
  };
}

/** Where the server lists the kinds of a group and version. */
export function rootOf(apiVersion: string): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}

/** Kinds of an `APIResourceList`. */
export function kindsOf(list: JsonObject): ReadonlyMap<string, ResourceInfo> {
  const resources = Array.isArray(list['resources']) ? (list['resources'] as readonly Json[]) : [];
  return new Map(
    resources.flatMap((resource): [string, ResourceInfo][] => {
      if (!isObject(resource) || typeof resource['name'] !== 'string' || typeof resource['kind'] !== 'string') return [];
      // Subresources are listed beside the kinds that they belong to.
      return resource['name'].includes('/')
        ? []
        : [[resource['kind'], { plural: resource['name'], namespaced: resource['namespaced'] === true }]];
    }),
  );
}

/** Reads one object; `undefined` = there is none. A kind that the server does not know throws `kind-missing`. */
export async function get(client: KubeClient, ref: ObjectRef, options: CallOptions = {}): Promise<Manifest | undefined> {
  try {
    return (await client.request({ method: 'GET', path: await client.pathOf(ref, options), ...options })) as Manifest;
  } catch (error) {
    if (error instanceof KubeError && error.code === 'not-found') return undefined;
    throw error;
  }
}

/** `apiVersion kind namespace/name` of a manifest. */
export function refOf({ apiVersion, kind, metadata }: Manifest): ObjectRef {
  return {
    apiVersion,
    kind,
    name: metadata.name,
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
  };
}
