import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { nearest } from '../lib/nearest.js';

/** Objects of a kubeconfig whose members are listed here. */
export type KubeconfigObject = 'config' | 'context' | 'cluster' | 'user' | 'exec' | 'auth-provider';

type MemberType = 'text' | 'flag' | 'list of texts' | 'map of texts' | 'map of lists of texts' | 'list' | 'object' | 'anything';

/** What we do with one member of a kubeconfig. */
export interface KubeconfigMember {
  readonly type: MemberType;
  /** `no effect`: kubectl's requests do not depend on it either. */
  readonly use: 'honoured' | 'honoured, with limits' | 'no effect';
  /** How, or why not. */
  readonly note: string;
}

const honoured = (type: MemberType, note: string): KubeconfigMember => ({ type, use: 'honoured', note });
const limited = (type: MemberType, note: string): KubeconfigMember => ({ type, use: 'honoured, with limits', note });
const noEffect = (type: MemberType, note: string): KubeconfigMember => ({ type, use: 'no effect', note });

const inlineOrFile = 'the `-data` form wins over the file; a relative path starts at the folder of the kubeconfig';
const extensions = noEffect('anything', 'belongs to other programs');

/**
 * All members of `kind: Config, apiVersion: v1`. One that is not here is refused by name.
 * Source: k8s.io/client-go, tools/clientcmd/api/v1.
 */
export const kubeconfigMembers: Readonly<Record<KubeconfigObject, Readonly<Record<string, KubeconfigMember>>>> = {
  config: {
    apiVersion: limited('text', '`v1`'),
    kind: limited('text', '`Config`'),
    'current-context': honoured('text', 'unless `--context` names another'),
    contexts: honoured('list', 'entries that are not used are not read'),
    clusters: honoured('list', 'entries that are not used are not read'),
    users: honoured('list', 'entries that are not used are not read'),
    preferences: noEffect('anything', 'kubectl does not read it either'),
    extensions,
  },
  context: {
    cluster: honoured('text', 'the name of an entry'),
    user: honoured('text', 'the name of an entry; without it requests are anonymous'),
    namespace: honoured('text', 'where objects without a namespace go'),
    extensions,
  },
  cluster: {
    server: limited('text', 'an http or https URL without user, query and fragment'),
    'certificate-authority': honoured('text', inlineOrFile),
    'certificate-authority-data': honoured('text', inlineOrFile),
    'tls-server-name': honoured('text', 'the name that is sent (SNI) and that the certificate must have'),
    'insecure-skip-tls-verify': limited('flag', 'refused together with a certificate authority, as kubectl does'),
    'proxy-url': limited('text', 'an http or https proxy that takes CONNECT, and an https server; socks5 is refused'),
    'disable-compression': noEffect('flag', 'compressed answers are never asked for'),
    extensions,
  },
  user: {
    'client-certificate': honoured('text', inlineOrFile),
    'client-certificate-data': honoured('text', inlineOrFile),
    'client-key': honoured('text', inlineOrFile),
    'client-key-data': honoured('text', inlineOrFile),
    token: honoured('text', 'wins over `exec` and `auth-provider`'),
    tokenFile: honoured('text', 'read before each request; wins over `token` while it can be read'),
    username: limited('text', 'basic authentication; refused together with a token'),
    password: limited('text', 'basic authentication; refused together with a token'),
    as: honoured('text', 'Impersonate-User'),
    'as-uid': limited('text', 'Impersonate-Uid; needs `as`'),
    'as-groups': limited('list of texts', 'Impersonate-Group; needs `as`'),
    'as-user-extra': limited('map of lists of texts', 'Impersonate-Extra-…; needs `as`'),
    exec: honoured('object', 'runs at most once a minute'),
    'auth-provider': limited('object', '`oidc`, `gcp` and `azure`, by @kubernetes/client-node'),
    extensions,
  },
  exec: {
    apiVersion: limited('text', '`client.authentication.k8s.io/v1` or `…/v1beta1`'),
    command: honoured('text', 'a path with a slash starts at the folder of the kubeconfig'),
    args: honoured('list of texts', ''),
    env: honoured('list', 'added to the environment of this process'),
    installHint: honoured('text', 'part of the error when the command is not found'),
    provideClusterInfo: honoured('flag', 'in KUBERNETES_EXEC_INFO'),
    interactiveMode: limited('text', '`Never` or `IfAvailable`; there is no terminal, so `Always` is refused'),
  },
  'auth-provider': {
    name: limited('text', '`oidc`, `gcp` or `azure`'),
    config: honoured('map of texts', ''),
  },
};

/** A member that cannot be used. `allowed` completes "allowed: …". */
export interface MemberProblem {
  readonly member: string;
  readonly found: unknown;
  readonly allowed: string;
}

/** The first member that is unknown or of another type. Go reads null, empty texts and empty lists as absent; so do we. */
export function memberProblem(of: KubeconfigObject, value: JsonObject): MemberProblem | undefined {
  const known = kubeconfigMembers[of];
  for (const [member, found] of Object.entries(value)) {
    if (isAbsent(found)) continue;
    const wanted = Object.hasOwn(known, member) ? known[member] : undefined;
    if (!wanted) return { member, found: describe(found), allowed: hint(member, Object.keys(known)) };
    if (!hasType[wanted.type](found)) return { member, found: describe(found), allowed: article(wanted.type) };
  }
  return undefined;
}

/** `undefined`, null, `''`, `false`, `[]` and `{}`. */
export function isAbsent(value: Json | undefined): boolean {
  if (typeof value === 'object') return value === null || Object.keys(value).length === 0;
  return value === undefined || value === '' || value === false;
}

const isText = (value: Json | undefined): boolean => typeof value === 'string';
const isTexts = (value: Json | undefined): boolean => Array.isArray(value) && (value as readonly Json[]).every(isText);

const hasType: Readonly<Record<MemberType, (value: Json | undefined) => boolean>> = {
  text: isText,
  flag: (value) => typeof value === 'boolean',
  'list of texts': isTexts,
  'map of texts': (value) => isObject(value) && Object.values(value).every(isText),
  'map of lists of texts': (value) => isObject(value) && Object.values(value).every(isTexts),
  list: (value) => Array.isArray(value),
  object: isObject,
  anything: () => true,
};

/** The value may be a credential under a wrong name or type: only its type is shown. */
function describe(value: Json | undefined): string {
  if (Array.isArray(value)) return 'a list';
  return isObject(value) ? 'an object' : `a ${typeof value === 'string' ? 'text' : typeof value}`;
}

const article = (type: MemberType): string => (type === 'anything' ? type : `${type === 'object' ? 'an' : 'a'} ${type}`);

function hint(member: string, known: readonly string[]): string {
  const near = nearest(member, known);
  return near === undefined ? `no such member; known are ${known.join(', ')}` : `no such member; did you mean ${near}?`;
}
