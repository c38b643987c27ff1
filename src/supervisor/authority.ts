import type { IncomingMessage } from 'node:http';
import type { Credentials } from '../harness/bootstrap.js';
import { CapabilityError, openOperation, verifyOperation, verifyStatus } from '../harness/capability.js';
import { instant, milliseconds } from '../lib/instant.js';
import type { MutationMetadata, MutationScope } from '../harness/metadata.js';
import { headers } from '../harness/protocol.js';
import { sameText } from './bootstrap.js';
import type { SupervisorConfig } from './config.js';
import { Refusal, refusalOf } from './refusal.js';

/** Who may do what. All throw {@link Refusal}. Source: dispatch.md §5.2. */
export interface Authority {
  /** Judges headers alone, so that strangers cannot make us read a body. Returns the capability token. */
  readonly authenticate: (request: IncomingMessage) => string;
  /** The same for an operation: verifies the capability before the body is read. */
  readonly authenticateOperation: (request: IncomingMessage) => string;
  readonly authorize: (token: string, metadata: MutationMetadata, scope: MutationScope) => void;
  /** Each token once. */
  readonly authorizeStatus: (token: string) => void;
}

/** Milliseconds that a used nonce is remembered beyond the life of its token. */
const nonceGrace = 30_000;

export function createAuthority(
  credentials: Pick<Credentials, 'controllerToken' | 'capabilitySecret'>,
  config: SupervisorConfig,
): Authority {
  const used = new Map<string, number>();

  function authenticate(request: IncomingMessage): string {
    const [, bearer = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (!sameText(bearer, credentials.controllerToken))
      throw new Refusal('unauthenticated', 'the bearer token is not the one of the controller');
    const token = request.headers[headers.capability];
    if (typeof token !== 'string' || token === '') throw new Refusal('forbidden', 'the request has no capability');
    return token;
  }

  return {
    authenticate,
    authenticateOperation: (request) => {
      const token = authenticate(request);
      guarded(() => openOperation(credentials.capabilitySecret, token, instant(Date.now())));
      return token;
    },
    authorize: (token, metadata, scope) => {
      guarded(() => {
        verifyOperation(credentials.capabilitySecret, token, metadata, { now: instant(Date.now()), session: scope !== 'pool' });
      });
    },
    authorizeStatus: (token) => {
      const now = Date.now();
      for (const [nonce, until] of used) if (until < now) used.delete(nonce);
      const { runtimeInstanceID, runtimeProfileDigest } = config.fence;
      const { nonce, expiresAt } = guarded(() =>
        verifyStatus(credentials.capabilitySecret, token, { runtimeInstanceID, runtimeProfileDigest }, instant(now)),
      );
      if (used.has(nonce)) throw new Refusal('forbidden', 'the capability was used before');
      used.set(nonce, milliseconds(expiresAt) + nonceGrace);
    },
  };
}

function guarded<T>(verify: () => T): T {
  try {
    return verify();
  } catch (error) {
    if (!(error instanceof CapabilityError)) throw error;
    if (error.code === 'expired') throw refusalOf({ class: 'expired' });
    throw new Refusal('forbidden', 'the capability is not valid for this request and this instance');
  }
}
