import { readFileSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import type { RequestOptions } from 'node:https';
import { dirname, resolve } from 'node:path';
import { CodedError } from '../lib/errors.js';
import { systemWords } from '../lib/system-words.js';
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
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
function remembered<T extends Credentials | Promise<Credentials>>(
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

/**
 * Access by a context of a kubeconfig, the current one unless one is named: client certificate, token or token file, inline or in files beside it. Users that need
 * a program or an identity provider are handed to client-node, which is loaded for them only.
 */
export function kubeconfigAccess(config: Json, file: string, contextName?: string): ClusterAccess {
  const refuse = (field: string, found: unknown, allowed: string): never => {
    throw new AccessError('access-invalid', { at: file, field, found, allowed });
  };
  if (!isObject(config)) return refuse('', config, 'a kubeconfig');
  const named = (list: string, name: Json | undefined): JsonObject => {
    const entry = (Array.isArray(config[list]) ? (config[list] as readonly Json[]) : []).find(
      (one) => isObject(one) && one['name'] === name,
    );
    const value = isObject(entry) ? entry[list.slice(0, -1)] : undefined;
    return isObject(value) ? value : refuse(list, name, 'the name of an entry');
  };
  const context = named('contexts', contextName ?? config['current-context']);
  const cluster = named('clusters', context['cluster']);
  const user = named('users', context['user']);
  const server = cluster['server'];
  if (typeof server !== 'string' || !URL.canParse(server)) return refuse('clusters[].cluster.server', server, 'a URL');
  const namespace = typeof context['namespace'] === 'string' ? { namespace: context['namespace'] } : {};
  if (user['exec'] !== undefined || user['auth-provider'] !== undefined)
    return { ...foreignAccess(server, file, contextName), ...namespace };
  const at = dirname(resolve(file));
  const pem = (from: JsonObject, name: string): string | undefined => {
    const [data, path] = [from[`${name}-data`], from[name]];
    if (typeof data === 'string') return Buffer.from(data, 'base64').toString();
    return typeof path === 'string' ? readText(resolve(at, path)) : undefined;
  };
  const tokenFile = user['tokenFile'];
  return {
    server,
    ...namespace,
    credentials: () => {
      const token =
        typeof user['token'] === 'string'
          ? user['token']
          : typeof tokenFile === 'string'
            ? readText(resolve(at, tokenFile)).trim()
            : undefined;
      const [ca, cert, key] = [pem(cluster, 'certificate-authority'), pem(user, 'client-certificate'), pem(user, 'client-key')];
      return {
        ...(token === undefined ? {} : { token }),
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert }),
        ...(key === undefined ? {} : { key }),
      };
    },
  };
}

/**
 * Users with exec or an auth provider. Loading client-node costs half a second and 60 MB, so it waits until it is needed; what a program
 * prints is kept for a minute, since client-node runs it before each request when it names no expiry.
 */
function foreignAccess(server: string, file: string, contextName: string | undefined): ClusterAccess {
  return { server, credentials: remembered(systemClock, () => foreignCredentials(file, contextName)) };
}

async function foreignCredentials(file: string, contextName: string | undefined): Promise<Credentials> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  const options: RequestOptions & { headers?: OutgoingHttpHeaders } = {};
  try {
    config.loadFromFile(file);
    if (contextName !== undefined) config.setCurrentContext(contextName);
    await config.applyToHTTPSOptions(options);
  } catch (cause) {
    // A parser's words quote what was printed, and that may be a credential.
    const unsafe = cause instanceof SyntaxError;
    const says = unsafe ? 'a program that prints no JSON' : cause instanceof Error ? cause.message.trim() : String(cause);
    throw new AccessError(
      'access-invalid',
      { at: file, field: 'users[].user', found: says, allowed: 'a user whose credentials can be had' },
      unsafe ? {} : { cause },
    );
  }
  const authorization = options.headers?.['Authorization'];
  const pem = (name: 'ca' | 'cert' | 'key') => {
    const value = options[name];
    return typeof value === 'string' || Buffer.isBuffer(value) ? { [name]: value.toString() } : {};
  };
  return {
    ...(typeof authorization === 'string' && authorization.startsWith('Bearer ')
      ? { token: authorization.slice('Bearer '.length) }
      : {}),
    ...pem('ca'),
    ...pem('cert'),
    ...pem('key'),
  };
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new AccessError('access-invalid', { at: file, says: systemWords(cause) }, { cause });
  }
}
