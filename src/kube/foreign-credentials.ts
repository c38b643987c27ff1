import type { OutgoingHttpHeaders } from 'node:http';
import type { RequestOptions } from 'node:https';
import { resolve } from 'node:path';
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { AccessError } from './access.js';
import type { Credentials } from './access.js';
import { memberProblem } from './kubeconfig-members.js';
import type { MemberProblem } from './kubeconfig-members.js';

/** A user whose credentials come from a program or an identity provider. */
export interface ForeignUser {
  readonly file: string;
  /** The user's place in the file. */
  readonly at: string;
  /** Where relative paths start. */
  readonly folder: string;
  readonly user: JsonObject;
  readonly cluster: JsonObject;
  /** PEM of the cluster's authority. */
  readonly authority: () => string | undefined;
}

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];
/** Those that client-node knows; it sends no credentials for any other. */
const providers = ['oidc', 'gcp', 'azure'];

/** The first member of `exec` or `auth-provider` that cannot be honoured. */
export function foreignProblem(user: JsonObject): MemberProblem | undefined {
  const { exec, 'auth-provider': provider } = user;
  if (isObject(provider)) {
    const problem = memberProblem('auth-provider', provider) ?? oneOf(provider, 'name', providers);
    if (problem) return { ...problem, member: `auth-provider.${problem.member}` };
  }
  if (!isObject(exec) || Object.keys(exec).length === 0) return undefined;
  const mode = exec['interactiveMode'] ?? '';
  const problem =
    memberProblem('exec', exec) ??
    oneOf(exec, 'apiVersion', execVersions) ??
    (mode === '' ? undefined : oneOf(exec, 'interactiveMode', ['Never', 'IfAvailable'])) ??
    (typeof exec['command'] === 'string' && exec['command'] !== ''
      ? undefined
      : { member: 'command', found: exec['command'], allowed: 'a program' });
  return problem && { ...problem, member: `exec.${problem.member}` };
}

function oneOf(object: JsonObject, member: string, allowed: readonly string[]): MemberProblem | undefined {
  const found = object[member];
  return typeof found === 'string' && allowed.includes(found) ? undefined : { member, found, allowed: allowed.join(' or ') };
}

/** Asks client-node. Loading it costs half a second and 60 MB, so it waits until it is needed. It gets nothing but this user. */
export async function foreignCredentials(of: ForeignUser): Promise<Credentials> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  const options: RequestOptions & { headers?: OutgoingHttpHeaders } = {};
  const { exec, 'auth-provider': authProvider } = of.user;
  try {
    config.loadFromClusterAndUser(
      { name: 'cluster', server: 'https://cluster.invalid', skipTLSVerify: false },
      {
        name: 'user',
        ...(isObject(exec) && Object.keys(exec).length > 0 ? { exec: programOf(exec, of) } : {}),
        ...(isObject(authProvider)
          ? { authProvider: structuredClone({ ...authProvider, config: authProvider['config'] ?? {} }) }
          : {}),
      },
    );
    await config.applyToHTTPSOptions(options);
  } catch (cause) {
    throw refusal(of, exec, cause);
  }
  const authorization = options.headers?.['Authorization'];
  const pem = (name: 'cert' | 'key') => {
    const value = options[name];
    return typeof value === 'string' || Buffer.isBuffer(value) ? { [name]: value.toString() } : {};
  };
  return {
    ...(typeof authorization === 'string' && authorization.startsWith('Bearer ')
      ? { token: authorization.slice('Bearer '.length) }
      : {}),
    ...pem('cert'),
    ...pem('key'),
  };
}

function refusal({ file, at }: ForeignUser, exec: Json | undefined, cause: unknown): AccessError {
  // A parser's words quote what was printed, and that may be a credential.
  const unsafe = cause instanceof SyntaxError;
  const says = unsafe ? 'a program that prints no JSON' : cause instanceof Error ? cause.message.trim() : String(cause);
  const missing = (cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT';
  const hint = missing && isObject(exec) && typeof exec['installHint'] === 'string' ? `; ${exec['installHint'].trim()}` : '';
  return new AccessError(
    'access-invalid',
    { at: file, field: at, found: says, allowed: `a user whose credentials can be had${hint}` },
    unsafe ? {} : { cause },
  );
}

/** The `exec` of client-node, which neither resolves paths nor describes the cluster to the program. */
function programOf(exec: JsonObject, of: ForeignUser): JsonObject {
  const command = typeof exec['command'] === 'string' ? exec['command'] : '';
  const env = Array.isArray(exec['env']) ? (exec['env'] as readonly Json[]) : [];
  return {
    ...exec,
    command: command.includes('/') ? resolve(of.folder, command) : command,
    env: [...env, { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(execInfo(exec, of)) }],
  };
}

/** Source: Kubernetes, client.authentication.k8s.io/v1 ExecCredential. */
function execInfo(exec: JsonObject, { cluster, authority }: ForeignUser): JsonObject {
  const ca = authority();
  const info = {
    server: cluster['server'],
    'tls-server-name': cluster['tls-server-name'],
    'insecure-skip-tls-verify': cluster['insecure-skip-tls-verify'],
    'certificate-authority-data': ca === undefined ? undefined : Buffer.from(ca).toString('base64'),
    'proxy-url': cluster['proxy-url'],
    'disable-compression': cluster['disable-compression'],
    config: execExtension(cluster),
  };
  return {
    kind: 'ExecCredential',
    apiVersion: exec['apiVersion'],
    spec: { interactive: false, ...(exec['provideClusterInfo'] === true ? { cluster: info } : {}) },
  };
}

/** What a cluster has for its program. */
function execExtension(cluster: JsonObject): Json | undefined {
  const extensions = Array.isArray(cluster['extensions']) ? (cluster['extensions'] as readonly Json[]) : [];
  const found = extensions.find((one) => isObject(one) && one['name'] === 'client.authentication.k8s.io/exec');
  return isObject(found) ? found['extension'] : undefined;
}
