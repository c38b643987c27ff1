import { digest, identifier, integer, oneOf, optional, record, checked } from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';
import { profileDigestSchemaVersion } from './protocol.js';

/**
 * Which instance of which pool, and which session in it, a request is meant for. A request with the fence of another life of the
 * same pool changes nothing. Source: dispatch.md §5.4.
 */
export const fence = checked(
  record({
    runtimeInstanceID: identifier,
    supervisorBootID: identifier,
    controllerEpoch: integer(1),
    runtimePoolUID: identifier,
    runtimePoolGeneration: integer(1),
    runtimeSessionUID: optional(identifier),
    runtimeSessionGeneration: optional(integer(1)),
    runtimeProfileDigest: digest,
    profileDigestSchemaVersion: oneOf(profileDigestSchemaVersion),
  }),
  (value) =>
    (value.runtimeSessionUID === undefined) === (value.runtimeSessionGeneration === undefined)
      ? undefined
      : 'runtimeSessionUID and runtimeSessionGeneration together, or neither',
);
export type Fence = Decoded<typeof fence>;

/** Names of what may differ, in the order in which it is compared. */
export const fenceMismatches = [
  'runtime_instance',
  'supervisor_boot',
  'controller_epoch',
  'runtime_pool_uid',
  'runtime_pool_generation',
  'runtime_session_uid',
  'runtime_session_generation',
  'runtime_profile',
  'profile_digest_schema',
] as const;
export type FenceMismatch = (typeof fenceMismatches)[number];

const compared: readonly (readonly [keyof Fence, FenceMismatch])[] = [
  ['runtimeInstanceID', 'runtime_instance'],
  ['supervisorBootID', 'supervisor_boot'],
  ['controllerEpoch', 'controller_epoch'],
  ['runtimePoolUID', 'runtime_pool_uid'],
  ['runtimePoolGeneration', 'runtime_pool_generation'],
  ['runtimeSessionUID', 'runtime_session_uid'],
  ['runtimeSessionGeneration', 'runtime_session_generation'],
  ['runtimeProfileDigest', 'runtime_profile'],
  ['profileDigestSchemaVersion', 'profile_digest_schema'],
];

/** The first component in which two fences differ. `session: false` leaves the session out of the comparison. */
export function fenceMismatch(a: Fence, b: Fence, { session }: { readonly session: boolean }): FenceMismatch | undefined {
  const differing = compared.find(([name]) => a[name] !== b[name] && (session || !name.startsWith('runtimeSession')));
  return differing?.[1];
}

/** The fence of one session of an instance. */
export function sessionFence(pool: Fence, runtimeSessionUID: string, runtimeSessionGeneration: number): Fence {
  return { ...poolFence(pool), runtimeSessionUID, runtimeSessionGeneration };
}

/** A fence without its session: that of the whole instance. */
function poolFence({ runtimeSessionUID: _uid, runtimeSessionGeneration: _generation, ...pool }: Fence): Fence {
  return pool;
}
