// Plain JavaScript: the child process that extracts an archive loads this file as it is, before and after a build.

/**
 * Which trees may become a workspace. The publisher applies these rules to the tree that it archives, the supervisor to the archive that
 * it extracts: neither relies on the other. Source: repository.md §2.8.
 */
import { isUtf8 } from 'node:buffer';

/**
 * Why a tree is refused. `path`: of the entry, as it stands in the tree.
 *
 * @typedef {{ readonly reason: 'encoding' | 'path' | 'reserved_name' | 'unsafe_link', readonly path: string, readonly says: string }} ArchiveProblem
 */
/** @typedef {{ readonly path: string, readonly target?: string | undefined }} ArchiveEntry an entry without `target` is no link */

/** Directories count as entries. `treeBytes`: contents and link targets. `pathBytes`: of a path, and of a link target. */
export const archiveLimits = Object.freeze({
  entries: 100_000,
  fileBytes: 64 * 1024 * 1024,
  treeBytes: 96 * 1024 * 1024,
  artifactBytes: 100 * 1024 * 1024,
  pathBytes: 4096,
  linkHops: 40,
});

/** Bytes of one name: no file system of Linux takes more. */
const longestName = 255;

/** Names that no tree may have at any depth, in any case: Git would take them for its own. */
const gitNames = new Set(['.git', '.gitmodules']);

/** Names that no workspace may have at any depth, in any case. Source: dispatch.md §7.1. */
export const reservedNames = new Set([
  ...['.orka-artifacts', '.orka-credentials', '.orka-infrastructure', '.orka-publisher', '.orka-runtime-control'],
  '.orka-workspace-delta',
]);

/** Names whose entries may neither change, appear nor vanish in a workspace, at any depth, in any case. Source: repository.md §2.9. */
export const protectedNames = new Set([
  ...['.git', '.orka-metadata', '.orka-supervisor', '.codex', '.claude', '.copilot', '.config', '.credentials', '.secrets'],
  ...['.ssh', '.gnupg', '.aws', '.azure', '.docker', '.kube'],
]);

// eslint-disable-next-line no-control-regex
const controls = /[\u0000-\u001f\u007f-\u009f]/;
/** White space as Go's `strings.TrimSpace` takes it. */
const surroundingSpace = /^[\s\u0085]|[\s\u0085]$/;

/** @param {string} name */
export const isGitName = (name) => gitNames.has(name.toLowerCase());

/** @param {string} name */
export const isReservedName = (name) => reservedNames.has(name.toLowerCase());

/** @param {string} name */
export const isProtectedName = (name) => protectedNames.has(name.toLowerCase());

/** Bytes of a path that is shown. */
const longestShown = 256;
// eslint-disable-next-line no-control-regex
const unprintable = /[\\\u0000-\u001f\u007f-\u009f\u2028\u2029\p{Bidi_Control}]/gu;

/**
 * A path for a person to read, of at most 256 bytes: what is no printable text is escaped.
 *
 * @param {Uint8Array | string} path
 */
export function shownPath(path) {
  const bytes = Buffer.from(path);
  const shown = isUtf8(bytes)
    ? bytes.toString('utf8').replace(unprintable, escaped)
    : bytes.toString('latin1').replace(/[^ -[\]-~]/g, escaped);
  if (Buffer.byteLength(shown) <= longestShown) return shown;
  let size = Buffer.byteLength('…');
  let kept = '';
  for (const character of shown) {
    size += Buffer.byteLength(character);
    if (size > longestShown) break;
    kept += character;
  }
  return `${kept}…`;
}

/** @param {string} character */
function escaped(character) {
  const code = character.charCodeAt(0);
  if (character === '\\') return '\\\\';
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/**
 * Why a path may not stand in an archive; `undefined` = it may. It is relative to the root, with `/` between names and none at its end.
 *
 * @param {Uint8Array} bytes
 * @returns {ArchiveProblem | undefined}
 */
export function checkArchivePath(bytes) {
  const path = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  /** @param {ArchiveProblem['reason']} reason @param {string} says */
  const problem = (reason, says) => ({ reason, path, says });
  if (bytes.length === 0) return problem('path', 'the path is empty');
  if (bytes.length > archiveLimits.pathBytes) return problem('path', `the path has more than ${archiveLimits.pathBytes} bytes`);
  if (!isUtf8(bytes)) return problem('encoding', 'the path is not UTF-8');
  if (controls.test(path)) return problem('path', 'the path has a control character');
  if (path.includes('\\')) return problem('path', 'the path has a backslash');
  if (surroundingSpace.test(path)) return problem('path', 'the path begins or ends with a space');
  if (path.startsWith('/')) return problem('path', 'the path is absolute');
  const names = path.split('/');
  if (names.some((name) => name === '' || name === '.' || name === '..'))
    return problem('path', 'the path has an empty name, `.` or `..`');
  if (names.some((name) => Buffer.byteLength(name) > longestName))
    return problem('path', `a name of the path has more than ${longestName} bytes`);
  const taken = names.find((name) => isGitName(name) || isReservedName(name));
  return taken === undefined ? undefined : problem('reserved_name', `the name ${taken} is reserved`);
}

/**
 * Where a link leads by its text alone, from the root; `undefined` = outside, or to the root.
 *
 * @param {string} path @param {string} target
 */
function lexicalTarget(path, target) {
  const names = path.split('/').slice(0, -1);
  for (const name of target.split('/')) {
    if (name === '' || name === '.') continue;
    if (name !== '..') names.push(name);
    else if (names.pop() === undefined) return undefined;
  }
  return names.length === 0 ? undefined : names.join('/');
}

/**
 * Why a link may not stand in an archive; `undefined` = it may. It may lead nowhere, but not out of the root, to the root, to itself, to a
 * folder that it is in, or into `.git`.
 *
 * @param {string} path of the link, which itself is allowed
 * @param {Uint8Array | string} target
 * @returns {ArchiveProblem | undefined}
 */
export function checkLinkTarget(path, target) {
  const bytes = typeof target === 'string' ? Buffer.from(target) : target;
  /** @param {string} says @returns {ArchiveProblem} */
  const unsafe = (says) => ({ reason: 'unsafe_link', path, says });
  if (bytes.length === 0) return unsafe('the link has no target');
  if (bytes.length > archiveLimits.pathBytes)
    return unsafe(`the target of the link has more than ${archiveLimits.pathBytes} bytes`);
  if (!isUtf8(bytes)) return { reason: 'encoding', path, says: 'the target of the link is not UTF-8' };
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  if (controls.test(text) || text.includes('\\')) return unsafe('the target of the link has a control character or a backslash');
  if (text.startsWith('/')) return unsafe('the target of the link is absolute');
  if (text.split('/').some(isGitName)) return unsafe('the link leads to Git metadata');
  const resolved = lexicalTarget(path, text);
  if (resolved === undefined) return unsafe('the link leads out of the repository, or to its root');
  return resolved === path || path.startsWith(`${resolved}/`)
    ? unsafe('the link leads to itself, or to a folder that it is in')
    : undefined;
}

/** @typedef {{ readonly parent: Node | undefined, readonly below: Map<string, Node>, link?: Link }} Node */
/** `end`: its folder before it is followed. @typedef {{ readonly path: string, readonly target: string, state: 'new' | 'open' | 'done', end: Place, hops: number }} Link */
/** `deeper`: names below the node that no link is at or under. @typedef {{ readonly node: Node, readonly deeper: number }} Place */

/** @param {Node | undefined} parent @returns {Node} */
const newNode = (parent) => ({ parent, below: new Map() });

/**
 * Why the links of a tree cannot stand together; `undefined` = they can. Each leads to its end as the kernel follows it, within 40 hops
 * and never above the root, and nothing is below a link. The time is linear in the bytes of paths and targets.
 *
 * @param {readonly ArchiveEntry[]} entries whose paths and targets are allowed
 * @returns {ArchiveProblem | undefined}
 */
export function checkLinkGraph(entries) {
  const root = newNode(undefined);
  const links = entries.flatMap(({ path, target }) => (target === undefined ? [] : [plant(root, path, target)]));
  if (links.length === 0) return undefined;
  for (const { path } of entries) {
    const above = linkAbove(root, path);
    if (above !== undefined) return { reason: 'unsafe_link', path, says: `the entry is below the link ${above}` };
  }
  for (const link of links) {
    const says = follow(link, root);
    if (says !== undefined) return { reason: 'unsafe_link', path: link.path, says };
  }
  return undefined;
}

/** @param {Node} root @param {string} path @param {string} target @returns {Link} */
function plant(root, path, target) {
  let [node, folder] = [root, root];
  for (const name of path.split('/')) {
    folder = node;
    node = folder.below.get(name) ?? newNode(folder);
    folder.below.set(name, node);
  }
  node.link = { path, target, state: 'new', end: { node: folder, deeper: 0 }, hops: 1 };
  return node.link;
}

/** @param {Node} root @param {string} path @returns {string | undefined} */
function linkAbove(root, path) {
  const names = path.split('/');
  /** @type {Node | undefined} */
  let node = root;
  for (const name of names.slice(0, -1)) {
    node = node.below.get(name);
    if (!node) return undefined;
    if (node.link) return node.link.path;
  }
  return undefined;
}

const tooFar = `the links that it leads through form a cycle, or are more than ${archiveLimits.linkHops}`;

/**
 * Finds the end of a link, once. Returns what is wrong.
 *
 * @param {Link} link @param {Node} root @param {number} [depth] @returns {string | undefined}
 */
function follow(link, root, depth = 1) {
  if (link.state === 'done') return undefined;
  if (link.state === 'open' || depth > archiveLimits.linkHops) return tooFar;
  link.state = 'open';
  let { node, deeper } = link.end;
  for (const name of link.target.split('/')) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      if (deeper > 0) deeper--;
      else if (node.parent) node = node.parent;
      else return 'the link leads out of the repository through another link';
      continue;
    }
    const next = deeper > 0 ? undefined : node.below.get(name);
    if (!next) deeper++;
    else if (!next.link) node = next;
    else {
      const says = follow(next.link, root, depth + 1);
      if (says !== undefined) return says;
      link.hops += next.link.hops;
      if (link.hops > archiveLimits.linkHops) return tooFar;
      ({ node, deeper } = next.link.end);
    }
  }
  link.end = { node, deeper };
  link.state = 'done';
  return undefined;
}

/**
 * Order of the UTF-8 bytes of two paths, without making them: 100,000 paths are sorted. With 0 for `slash`, the entries of a folder follow it, as
 * in a walk.
 *
 * @param {string} a
 * @param {string} b
 * @param {number} slash the rank of `/`
 */
export function comparePaths(a, b, slash = 0x2f) {
  const length = Math.min(a.length, b.length);
  let at = 0;
  while (at < length && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  return at === length ? a.length - b.length : rankOf(a.charCodeAt(at), slash) - rankOf(b.charCodeAt(at), slash);
}

/** Surrogates stand for code points above all others. @param {number} unit @param {number} slash */
function rankOf(unit, slash) {
  if (unit === 0x2f) return slash;
  return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
