import { readFileSync } from 'node:fs';
import { CodedError } from '../lib/errors.js';
import { systemWords } from '../lib/system-words.js';
import { systemClock } from './clock.js';
import type { Clock } from './clock.js';

/** What proves who we are, and who the server is. Asked for before each request. */
export interface Credentials {
  readonly token?: string;
  /** PEM. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** How to reach one API server. */
export interface ClusterAccess {
  /** `https://host:port`, with an optional path. */
  readonly server: string;
  /** Where objects without a namespace go. @default - the namespace `default` */
  readonly namespace?: string;
  /** URL of an HTTP proxy through which an https server is reached. May hold a credential. @default - no proxy */
  readonly proxy?: string;
  /** The name that the server's certificate must have. @default - the host of `server` */
  readonly serverName?: string;
  /** Accepts any certificate. @default false */
  readonly insecure?: boolean;
  /** Sent with each request, such as those of impersonation. May hold a credential. @default - none */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** With `fresh` nothing that was remembered is used: the server has refused it. */
  readonly credentials: (options?: { readonly fresh?: boolean }) => Credentials | Promise<Credentials>;
}

/** A kubeconfig or the files of a Pod cannot be used. */
export class AccessError extends CodedError<'access-invalid'> {}

const podFolder = '/var/run/secrets/kubernetes.io/serviceaccount';
/** A rotated token is used within this time. Source: the kubelet replaces tokens at 80 % of an hour or more. */
const rereadAfter = 60_000;

/** Access from inside a Pod. Token and CA are files that the kubelet replaces; they are read again once a minute. */
export function podAccess(
  environment: NodeJS.ProcessEnv = process.env,
  folder = podFolder,
  clock: Pick<Clock, 'elapsed'> = systemClock,
): ClusterAccess {
  const host = environment['KUBERNETES_SERVICE_HOST'];
  const port = environment['KUBERNETES_SERVICE_PORT'];
  if (!host || !port) {
    throw new AccessError('access-invalid', {
      at: 'environment',
      field: 'KUBERNETES_SERVICE_HOST',
      found: host,
      allowed: 'a Pod, or a kubeconfig',
    });
  }
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    credentials: remembered(clock, () => ({ token: readText(`${folder}/token`).trim(), ca: readText(`${folder}/ca.crt`) })),
  };
}

/** Keeps credentials for a minute. A failure is not kept. */
export function remembered<T extends Credentials | Promise<Credentials>>(
  clock: Pick<Clock, 'elapsed'>,
  read: () => T,
): (options?: { readonly fresh?: boolean }) => T {
  let kept: { readonly at: number; readonly credentials: T } | undefined;
  return ({ fresh = false } = {}) => {
    if (kept && !fresh && clock.elapsed() - kept.at < rereadAfter) return kept.credentials;
    kept = undefined;
    const credentials = read();
    const mine = { at: clock.elapsed(), credentials };
    kept = mine;
    if (credentials instanceof Promise)
      credentials.catch(() => {
        if (kept === mine) kept = undefined;
      });
    return credentials;
  };
}

/** A file of a Pod or of a kubeconfig. Throws {@link AccessError}. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new AccessError('access-invalid', { at: file, says: systemWords(cause) }, { cause });
  }
}
