import type { Manifest, RuntimePoolClassSpec } from '../api/index.js';
import type { KubeClient } from '../kube/client.js';
import { startReflector } from '../kube/reflector.js';
import type { Reflector } from '../kube/reflector.js';
import { isObject } from '../lib/json.js';
import { withoutData } from './world.js';

/** The Secrets that hold tokens of provider proxies. Their values are read when they are needed; here is only whether they changed. */
export interface Tokens {
  /** Of the Secret of that name as it was last seen; `undefined` = it is not there, or not known yet. */
  readonly versionOf: (name: string) => string | undefined;
  /** Watches the Secrets that these classes name, and no others. */
  readonly follow: (classes: readonly Manifest[]) => void;
  readonly stop: () => Promise<void>;
}

export interface TokensOptions {
  readonly namespace: string;
  /** A Secret came, changed or went. */
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
}

/** One watch for each Secret: the controller may read these by name, and no others of its namespace. */
export function watchTokens(client: KubeClient, { namespace, onChange, onError }: TokensOptions): Tokens {
  const watched = new Map<string, Reflector>();
  const ending = new Set<Promise<void>>();

  function end(name: string): void {
    const reflector = watched.get(name);
    watched.delete(name);
    if (!reflector) return;
    const ended = reflector.stop().finally(() => ending.delete(ended));
    ending.add(ended);
  }

  return {
    versionOf: (name) => watched.get(name)?.get(`${namespace}/${name}`)?.metadata.resourceVersion,
    follow: (classes) => {
      const names = new Set(classes.flatMap(tokenName));
      for (const name of [...watched.keys()]) if (!names.has(name)) end(name);
      for (const name of names) {
        if (watched.has(name)) continue;
        const fieldSelector = `metadata.name=${name}`;
        const of = { apiVersion: 'v1', kind: 'Secret', namespace, fieldSelector, keep: withoutData };
        watched.set(name, startReflector(client, { ...of, onChange, onError }));
      }
    },
    stop: async () => {
      for (const name of [...watched.keys()]) end(name);
      await Promise.all(ending);
    },
  };
}

function tokenName({ spec }: Manifest): readonly string[] {
  const proxy = isObject(spec) ? (spec as unknown as Partial<RuntimePoolClassSpec>).providerProxy : undefined;
  return proxy ? [proxy.tokenSecretRef.name] : [];
}
