import { systemClock } from './clock.js';
import type { Clock } from './clock.js';
import { isNotGranted } from './errors.js';
import type { KubeRequest, Transport } from './transport.js';

/** What a request needs to be allowed, in the words of RBAC. */
export interface Right {
  readonly verb: string;
  /** `<plural>.<group>/<subresource>`, as `kubectl auth can-i` takes it. */
  readonly resource: string;
  /** Absent: the whole cluster. */
  readonly namespace?: string;
  /** Absent: of any name. */
  readonly name?: string;
}

export interface MissingRightsOptions {
  /** Called once when a right is found missing, and once when it is granted again. */
  readonly onChange: (right: Right, missing: boolean) => void;
  readonly clock?: Clock;
}

interface Refused {
  readonly right: Right;
  count: number;
  /** In elapsed time. */
  at: number;
}

/** Refusals without a success between them after which a right counts as missing: a server that starts refuses what it has not loaded yet. */
const convincing = 3;
/** Milliseconds after which a refusal that was not repeated counts no more: what needed the right may be gone. */
const forgottenAfter = 1_200_000;

/** The rights that the API server refused and has not granted since. */
export class MissingRights {
  readonly #onChange: MissingRightsOptions['onChange'];
  readonly #clock: Clock;
  readonly #refused = new Map<string, Refused>();

  constructor({ onChange, clock = systemClock }: MissingRightsOptions) {
    this.#onChange = onChange;
    this.#clock = clock;
  }

  refused(right: Right): void {
    const key = describeRight(right);
    const known = this.#refused.get(key) ?? { right, count: 0, at: 0 };
    known.count++;
    known.at = this.#clock.elapsed();
    this.#refused.set(key, known);
    if (known.count === convincing) this.#onChange(right, true);
  }

  granted(right: Right): void {
    const key = describeRight(right);
    const known = this.#refused.get(key);
    if (!known) return;
    this.#refused.delete(key);
    if (known.count >= convincing) this.#onChange(known.right, false);
  }

  /** Sorted by their description. */
  list(): readonly Right[] {
    const now = this.#clock.elapsed();
    for (const [key, { at }] of this.#refused) if (now - at > forgottenAfter) this.#refused.delete(key);
    return [...this.#refused]
      .filter(([, { count }]) => count >= convincing)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { right }]) => right);
  }
}

/** `list tasks.core.orka.ai in namespace team-a`. */
export function describeRight({ verb, resource, namespace, name }: Right): string {
  const where = namespace === undefined ? 'in the cluster' : `in namespace ${namespace}`;
  return `${verb} ${resource}${name === undefined ? '' : ` ${name}`} ${where}`;
}

const verbs = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' } as const;
const resourcePath =
  /^\/(?:api|apis\/(?<group>[^/]+))\/[^/]+(?:\/namespaces\/(?<namespace>[^/]+))?\/(?<resource>[^/]+)(?:\/(?<name>[^/]+))?(?:\/(?<sub>.+))?$/;
/** A Namespace itself, whose path looks like the beginning of that of an object in it. */
const namespacePath = /^\/api\/v1\/namespaces\/(?<name>[^/]+)$/;

/**
 * The right that a request needs, as the API server derives it; `undefined` = it is for no resource. Objects of the cluster and single watched objects
 * are granted by name, all others by namespace.
 */
export function rightOf({ method, path, query = {} }: Pick<KubeRequest, 'method' | 'path' | 'query'>): Right | undefined {
  const itself = namespacePath.exec(path)?.groups;
  const parts = itself ? { resource: 'namespaces', ...itself } : resourcePath.exec(path)?.groups;
  const resource = parts?.['resource'];
  if (!parts || resource === undefined) return undefined;
  const { group, namespace, name, sub } = parts as Readonly<Record<string, string | undefined>>;
  const selected = /^metadata\.name=(.+)$/.exec(String(query['fieldSelector'] ?? ''))?.[1];
  const read = name !== undefined ? 'get' : query['watch'] === true ? 'watch' : 'list';
  const single = selected ?? (namespace === undefined ? name : undefined);
  return {
    verb: method === 'GET' ? read : verbs[method],
    resource: `${resource}${group === undefined ? '' : `.${group}`}${sub === undefined ? '' : `/${sub}`}`,
    ...(namespace === undefined ? {} : { namespace: decodeURIComponent(namespace) }),
    ...(single === undefined ? {} : { name: decodeURIComponent(single) }),
  };
}

/** A transport that notes which rights its requests lack, and which are granted again. */
export function notingRights(transport: Transport, missing: MissingRights): Transport {
  function failed(right: Right | undefined, error: unknown): void {
    if (right && isNotGranted(error)) missing.refused(right);
  }
  return {
    ...transport,
    request: async (wanted) => {
      const right = rightOf(wanted);
      try {
        const answer = await transport.request(wanted);
        if (right) missing.granted(right);
        return answer;
      } catch (error) {
        failed(right, error);
        throw error;
      }
    },
    stream: async function* (wanted) {
      const right = rightOf({ method: 'GET', ...wanted });
      try {
        for await (const event of transport.stream(wanted)) {
          if (right) missing.granted(right);
          yield event;
        }
        if (right) missing.granted(right);
      } catch (error) {
        failed(right, error);
        throw error;
      }
    },
  };
}
