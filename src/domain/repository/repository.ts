import { isIPv4 } from 'node:net';
import { canonicalCidr, overlaps } from '../../lib/cidr.js';
import type { Finding } from '../../lib/errors.js';
import { isDnsSubdomain } from '../../lib/kubernetes-names.js';
import { forgeList, isListed } from './forges.js';
import type { ForgeAddress } from './forges.js';

/** A repository as every request names it. Source: repository.md §1.2, §3.1. */
export interface Repository {
  /** Always `github`, also for other forges: the contract has one form of identity. */
  readonly provider: string;
  /** Host and path without `.git`; the port stands after the host unless it is 443. */
  readonly id: string;
  /** The URL of the Task, with scheme and host in lower case. */
  readonly url: string;
}

/** Why a value of `spec.workspace` cannot be used. The caller adds the object and the field. */
export type RepositoryProblem = Omit<Finding, 'at' | 'field'>;

/** The only provider of the contract. */
const repositoryProvider = 'github';

const longestUrl = 2048;
/** What the schema of an identity holds. */
const longestId = 512;
const urlForm = 'https://<host>/<path>, without user info, query and fragment';
const pathForm =
  'a path without empty, "." and ".." segments, without "/" at its end, and with escapes only where they are needed';
const hostForm = 'a DNS name, or an IP address that is not loopback, unspecified or link-local';

/** Addresses that no forge has. Source: repository.md §1.2. */
const forbiddenRanges = ['0.0.0.0/32', '127.0.0.0/8', '169.254.0.0/16', '::/128', '::1/128', 'fe80::/10'];

/** The repository of `spec.workspace.gitRepo`, which must be on a forge of the platform. `forges` are `host` or `host:port`. */
export function repositoryOf(
  gitRepo: string,
  forges: readonly string[],
): { readonly repository: Repository } | { readonly problem: RepositoryProblem } {
  const read = readRepository(gitRepo);
  if ('problem' in read) return read;
  const problem = forgeProblem(read.forge, forges);
  return problem ? { problem } : { repository: read.repository };
}

/** The repository of a URL and the forge that has it, whether or not the platform lists that forge. */
export function readRepository(
  gitRepo: string,
): { readonly repository: Repository; readonly forge: ForgeAddress } | { readonly problem: RepositoryProblem } {
  const parsed = parseRepositoryUrl(gitRepo);
  if ('problem' in parsed) return parsed;
  const { host, port, path, url } = parsed;
  const authority = port === 443 ? host : `${host}:${port}`;
  const id = `${authority}/${host === 'github.com' ? path.toLowerCase() : path}`;
  if (id.length > longestId)
    return { problem: { foundKind: `an identity of ${id.length} characters`, allowed: `at most ${longestId} characters` } };
  return { repository: { provider: repositoryProvider, id, url }, forge: { host, port } };
}

/** Why repositories of a forge are refused; `undefined` = the operator lists it. */
export function forgeProblem({ host, port }: ForgeAddress, forges: readonly string[]): RepositoryProblem | undefined {
  if (isListed({ host, port }, forges)) return undefined;
  return {
    found: `${host}:${port}`,
    allowed: `a repository of ${forgeList(forges)}`,
    remedy: 'the operator of the platform adds the forge to publisher.forges in platform.yaml and applies it',
  };
}

/** Compares identities; github.com ignores case, since older records kept it. Source: repository.md §1.2. */
export function sameRepository(one: Identity, other: Identity): boolean {
  const id = ({ id: text }: Identity): string => (/^github\.com\//i.test(text) ? text.toLowerCase() : text);
  return one.provider === other.provider && id(one) === id(other);
}

type Identity = Pick<Repository, 'provider' | 'id'>;

interface ParsedUrl {
  readonly host: string;
  readonly port: number;
  /** Decoded, without the first `/` and without `.git`. */
  readonly path: string;
  readonly url: string;
}

/** Reads a URL by our own grammar: the URL class of the platform would repair what has to be refused. */
function parseRepositoryUrl(text: string): ParsedUrl | { readonly problem: RepositoryProblem } {
  // User info, query and fragment may hold a credential, so the URL is not shown.
  if (/[@?]|#./.test(text)) return { problem: { foundKind: 'a text with "@", "?" or "#"', allowed: urlForm } };
  if (Buffer.byteLength(text) > longestUrl)
    return { problem: { foundKind: `${Buffer.byteLength(text)} bytes`, allowed: `at most ${longestUrl} bytes` } };
  const [, authority = '', rawPath = ''] = /^https:\/\/([^/#]+)(\/[^#]*)?#?$/i.exec(text) ?? [];
  if (authority === '') return { problem: { found: text, allowed: urlForm } };
  const [, name = '', portText] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(authority) ?? [];
  const host = hostOf(name);
  if (host === undefined) return { problem: { found: text, allowed: hostForm } };
  const port = portText === undefined ? 443 : portOf(portText);
  if (port === undefined) return { problem: { found: text, allowed: 'a port from 1 to 65535, or none, which means 443' } };
  const path = pathOf(rawPath);
  if (path === undefined) return { problem: { found: text, allowed: pathForm } };
  return { host, port, path, url: `https://${authority.toLowerCase()}${rawPath}` };
}

function hostOf(name: string): string | undefined {
  const host = name.toLowerCase();
  if (host.startsWith('[')) return isAllowedAddress(`${host.slice(1, -1)}/128`) ? host : undefined;
  if (!isDnsSubdomain(host)) return undefined;
  // Resolvers read `127.1`, `0x7f.1` and `2130706433` as addresses.
  if (!/(^|\.)(\d+|0x[0-9a-f]*)$/.test(host)) return host;
  return isIPv4(host) && isAllowedAddress(`${host}/32`) ? host : undefined;
}

function isAllowedAddress(range: string): boolean {
  const address = canonicalCidr(range);
  return address !== undefined && !forbiddenRanges.some((forbidden) => overlaps(address, forbidden));
}

function portOf(text: string): number | undefined {
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? port : undefined;
}

function pathOf(raw: string): string | undefined {
  const path = decoded(raw);
  if (path === undefined || encoded(path) !== raw || controlOrBackslash.test(path)) return undefined;
  const trimmed = path.replace(/\.git$/, '').slice(1);
  const segments = trimmed.split('/');
  return segments.some((segment) => ['', '.', '..'].includes(segment)) ? undefined : trimmed;
}

const controlOrBackslash = /[\p{Cc}\\]/u;

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Escapes a path as Go does, so that both sides call the same texts canonical. */
function encoded(path: string): string {
  return encodeURIComponent(path.toWellFormed())
    .replaceAll(/%(?:24|26|2B|2C|2F|3A|3B|3D|40)/g, decodeURIComponent)
    .replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}
