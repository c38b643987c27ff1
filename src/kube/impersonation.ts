import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';

/** Characters that a header's name may have. `%` is legal and escaped, since it begins an escape. Source: RFC 9110 §5.6.2. */
const legal = /[^A-Za-z0-9!#$&'*+\-.^_`|~]/g;

/**
 * The headers that make the API server act as another user. `user` has `as`, `as-uid`, `as-groups` and `as-user-extra` of a kubeconfig.
 * Source: Kubernetes, "User impersonation".
 */
export function impersonationHeaders(user: JsonObject): Readonly<Record<string, string | readonly string[]>> {
  const { as, 'as-uid': uid, 'as-groups': groups, 'as-user-extra': extra } = user;
  return {
    ...valuesOf('Impersonate-User', as),
    ...valuesOf('Impersonate-Uid', uid),
    ...valuesOf('Impersonate-Group', groups),
    ...Object.fromEntries(
      Object.entries(isObject(extra) ? extra : {}).flatMap(([key, values]) =>
        Object.entries(valuesOf(`Impersonate-Extra-${escaped(key)}`, values)),
      ),
    ),
  };
}

function valuesOf(name: string, given: Json | undefined): Readonly<Record<string, string | readonly string[]>> {
  const values = (Array.isArray(given) ? (given as readonly Json[]) : [given ?? '']).filter((value) => typeof value === 'string');
  const bytes = values.filter((value) => value !== '').map(asHeader);
  return bytes.length === 0 ? {} : { [name]: bytes.length === 1 ? (bytes[0] ?? '') : bytes };
}

/** Node writes headers as Latin-1; the server reads UTF-8. */
const asHeader = (text: string): string => Buffer.from(text).toString('latin1');

const escaped = (key: string): string =>
  Buffer.from(key.toLowerCase())
    .toString('latin1')
    .replace(legal, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
