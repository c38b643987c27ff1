import { dirname, resolve } from 'node:path';
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { AccessError, readText, remembered } from './access.js';
import type { ClusterAccess, Credentials } from './access.js';
import { systemClock } from './clock.js';
import { foreignCredentials, foreignProblem } from './foreign-credentials.js';
import type { ForeignUser } from './foreign-credentials.js';
import { impersonationHeaders } from './impersonation.js';
import { isAbsent, memberProblem } from './kubeconfig-members.js';
import type { KubeconfigObject, MemberProblem } from './kubeconfig-members.js';

/** An object of the file, and the path at which errors name its members. */
interface Part {
  readonly at: string;
  readonly value: JsonObject;
}

/**
 * Access by a context of a kubeconfig, the current one unless `contextName` is given. `kubeconfigMembers` lists what is done with each
 * member. Throws {@link AccessError} for an entry that is missing, and for a member that is unknown, contradictory or cannot be honoured.
 */
export function kubeconfigAccess(config: Json, file: string, contextName?: string): ClusterAccess {
  const refuse = (field: string, found: unknown, allowed: string): never => {
    throw new AccessError('access-invalid', { at: file, field, found, allowed });
  };
  const refuseAny = (at: string, problem: MemberProblem | undefined): void => {
    if (problem) refuse(at === '' ? problem.member : `${at}.${problem.member}`, problem.found, problem.allowed);
  };
  if (!isObject(config)) return refuse('', config, 'a kubeconfig');
  refuseAny('', memberProblem('config', config) ?? configProblem(config));
  const named = (list: string, name: Json | undefined): Part => {
    const entries = Array.isArray(config[list]) ? (config[list] as readonly Json[]) : [];
    const index = entries.findIndex((one) => isObject(one) && one['name'] === name);
    const entry = entries[index];
    const of = list.slice(0, -1) as KubeconfigObject;
    const value = isObject(entry) ? entry[of] : undefined;
    if (!isObject(value)) return refuse(list, name, 'the name of an entry');
    const at = `${list}[${index}].${of}`;
    refuseAny(at, memberProblem(of, value));
    return { at, value };
  };
  const context = named('contexts', contextName ?? config['current-context']).value;
  const cluster = named('clusters', context['cluster']);
  const user = isAbsent(context['user']) ? { at: 'users', value: {} } : named('users', context['user']);
  refuseAny(cluster.at, clusterProblem(cluster.value));
  refuseAny(user.at, userProblem(user.value));
  return {
    server: textOf(cluster.value, 'server') ?? '',
    ...present('namespace', textOf(context, 'namespace')),
    ...present('proxy', textOf(cluster.value, 'proxy-url')),
    ...present('serverName', textOf(cluster.value, 'tls-server-name')),
    ...(cluster.value['insecure-skip-tls-verify'] === true ? { insecure: true } : {}),
    ...present('headers', headersOf(user.value)),
    credentials: credentialsOf(file, cluster.value, user),
  };
}

function textOf(object: JsonObject, name: string): string | undefined {
  const value = object[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

const present = <Name extends string, T>(name: Name, value: T | undefined): Partial<Record<Name, T>> =>
  value === undefined ? {} : ({ [name]: value } as Record<Name, T>);

function configProblem(config: JsonObject): MemberProblem | undefined {
  for (const [member, allowed] of [
    ['apiVersion', 'v1'],
    ['kind', 'Config'],
  ] as const) {
    const found = textOf(config, member) ?? allowed;
    if (found !== allowed) return { member, found, allowed };
  }
  return undefined;
}

function clusterProblem(cluster: JsonObject): MemberProblem | undefined {
  const server = textOf(cluster, 'server');
  const url = server !== undefined && URL.canParse(server) ? new URL(server) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol))
    return { member: 'server', found: shownUrl(server), allowed: 'an http or https URL' };
  if (url.username + url.password + url.search + url.hash !== '')
    return { member: 'server', found: shownUrl(server), allowed: 'a URL without user, query and fragment' };
  const proxy = textOf(cluster, 'proxy-url');
  const proxyUrl = proxy !== undefined && URL.canParse(proxy) ? new URL(proxy) : undefined;
  if (proxy !== undefined && !(proxyUrl && ['http:', 'https:'].includes(proxyUrl.protocol)))
    return { member: 'proxy-url', found: shownUrl(proxy), allowed: 'the http or https URL of a proxy that takes CONNECT' };
  if (proxyUrl && url.protocol === 'http:')
    return { member: 'proxy-url', found: shownUrl(proxy), allowed: 'no proxy for an http server' };
  const authority = ['certificate-authority', 'certificate-authority-data'].find((name) => textOf(cluster, name) !== undefined);
  if (cluster['insecure-skip-tls-verify'] === true && authority !== undefined)
    return { member: 'insecure-skip-tls-verify', found: true, allowed: `one of it and ${authority}` };
  return undefined;
}

/** Protocol and host: the rest of a URL may be a credential, and so may all of a text that is none. */
function shownUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (!URL.canParse(text)) return 'a text that is no URL';
  const { protocol, username, password, host } = new URL(text);
  return `${protocol}//${username + password === '' ? '' : '***@'}${host}`;
}

function userProblem(user: JsonObject): MemberProblem | undefined {
  const given = (...names: readonly string[]): string | undefined => names.find((name) => !isAbsent(user[name]));
  const basic = given('username', 'password');
  const token = given('token', 'tokenFile');
  if (basic !== undefined && token !== undefined) return { member: basic, found: 'a text', allowed: `one of it and ${token}` };
  const [cert, key] = [given('client-certificate-data', 'client-certificate'), given('client-key-data', 'client-key')];
  if (cert !== undefined && key === undefined) return { member: 'client-key', found: undefined, allowed: `the key of ${cert}` };
  const extra = given('as-uid', 'as-groups', 'as-user-extra');
  if (extra !== undefined && given('as') === undefined)
    return { member: extra, found: user[extra], allowed: 'only together with as' };
  const unsendable = unsendableText(user);
  if (unsendable !== undefined)
    return { member: unsendable, found: 'a value with control characters', allowed: 'none, not even a line break at its end' };
  const [exec, provider] = [user['exec'], user['auth-provider']];
  if (!isAbsent(exec) && !isAbsent(provider))
    return { member: 'auth-provider', found: 'an object', allowed: 'one of it and exec' };
  return foreignProblem(user);
}

/** What an HTTP header cannot carry; a line break would make headers of its own. */
function unsendableText(user: JsonObject): string | undefined {
  // eslint-disable-next-line no-control-regex
  const control = /[\u0000-\u001f\u007f]/;
  const hasControl = (value: Json | undefined): boolean => {
    if (typeof value === 'string') return control.test(value);
    return Object.values((value ?? {}) as JsonObject).some(hasControl);
  };
  return ['token', 'as', 'as-uid', 'as-groups', 'as-user-extra'].find((name) => hasControl(user[name]));
}

/** What every request of this user carries besides a token. */
function headersOf(user: JsonObject): ClusterAccess['headers'] | undefined {
  const [username, password] = [textOf(user, 'username'), textOf(user, 'password')];
  const basic = Buffer.from(`${username ?? ''}:${password ?? ''}`).toString('base64');
  const headers = {
    ...((username ?? password) === undefined ? {} : { authorization: `Basic ${basic}` }),
    ...impersonationHeaders(user),
  };
  return Object.keys(headers).length === 0 ? undefined : headers;
}

function credentialsOf(file: string, cluster: JsonObject, user: Part): ClusterAccess['credentials'] {
  const folder = dirname(resolve(file));
  const pem = (from: JsonObject, name: string): string | undefined => {
    const [data, path] = [textOf(from, `${name}-data`), textOf(from, name)];
    if (data !== undefined) return Buffer.from(data, 'base64').toString();
    return path === undefined ? undefined : readText(resolve(folder, path));
  };
  const local = (): Credentials => ({
    ...present('token', tokenOf(user.value, folder)),
    ...present('ca', pem(cluster, 'certificate-authority')),
    ...present('cert', pem(user.value, 'client-certificate')),
    ...present('key', pem(user.value, 'client-key')),
  });
  const hasForeign = !isAbsent(user.value['exec']) || !isAbsent(user.value['auth-provider']);
  if (!hasForeign || !isAbsent(user.value['token']) || !isAbsent(user.value['tokenFile'])) return local;
  const foreign: ForeignUser = {
    file,
    at: user.at,
    folder,
    user: user.value,
    cluster,
    authority: () => pem(cluster, 'certificate-authority'),
  };
  return remembered(systemClock, async () => ({ ...local(), ...(await foreignCredentials(foreign)) }));
}

/** The file wins while it can be read. Source: `tokenFile` in k8s.io/client-go, tools/clientcmd/api/v1. */
function tokenOf(user: JsonObject, folder: string): string | undefined {
  const [token, file] = [textOf(user, 'token'), textOf(user, 'tokenFile')];
  if (file === undefined) return token;
  try {
    return readText(resolve(folder, file)).trim();
  } catch (error) {
    if (token === undefined) throw error;
    return token;
  }
}
