// The machine before and after: what a run must not leave behind.

import { existsSync, readFileSync, readlinkSync } from 'node:fs';

import { Failure } from './failure.js';
import { cgroupFolders, readSysctl, sysctls } from './host.js';
import { commandLine, findOurs, pids } from './processes.js';
import { attempt } from './run.js';

/** @typedef {Readonly<Record<string, readonly string[]>>} Snapshot lines by subject */

/** @param {string} program @param {readonly string[]} args */
async function lines(program, args) {
  const { stdout } = await attempt(program, args);
  return stdout.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
}

/** The first network namespace with a name mounts the folder of the names on itself, for good. */
const ofNames = '/run/netns';

/** Each network namespace that a process is in or that a mount holds. */
function networkNamespaces() {
  const found = new Set();
  for (const pid of pids()) {
    try {
      found.add(readlinkSync(`/proc/${pid}/ns/net`));
    } catch {
      // Ended meanwhile.
    }
  }
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [, inode] = / (net:\[\d+\]) .* - nsfs /.exec(line) ?? [];
    if (inode) found.add(inode);
  }
  return [...found].sort();
}

/** @param {string} save */
async function iptables(save) {
  // The counters in brackets grow with traffic.
  return (await lines(save, [])).map((line) => line.replace(/ \[\d+:\d+\]$/, ''));
}

/** @returns {Promise<Snapshot>} everything that a cluster touches on the machine, whoever made it */
export async function snapshot() {
  const links = await lines('ip', ['-o', 'link', 'show']);
  return {
    'processes of the cluster': findOurs().map(({ pid }) => commandLine(pid)),
    mounts: readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[4] ?? '')
      .filter((point) => point !== '' && point !== ofNames),
    'network namespaces': networkNamespaces(),
    links: links.map((line) => /^\d+: ([^:]+)/.exec(line)?.[1] ?? line),
    routes: (await lines('ip', ['route', 'show', 'table', 'all'])).filter((line) => !line.includes('expires')),
    'address rules': await lines('ip', ['rule', 'show']),
    'nft rules': await lines('nft', ['-s', 'list', 'ruleset']),
    'iptables rules': await iptables('iptables-legacy-save'),
    'ip6tables rules': await iptables('ip6tables-legacy-save'),
    'ip sets': await lines('ipset', ['list', '-n']),
    cgroups: cgroupFolders().filter((folder) => existsSync(folder)),
    'kernel settings': sysctls.map((name) => `${name} = ${readSysctl(name) ?? 'absent'}`),
  };
}

/** @param {string} file written by `leftovers --save` @returns {Snapshot} */
export function readSnapshot(file) {
  const isSnapshot = (/** @type {unknown} */ value) => {
    if (typeof value !== 'object' || value === null) return false;
    const subjects = Object.entries(value);
    return 'nft rules' in value && subjects.every(([, found]) => Array.isArray(found));
  };
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new Failure(`${file} cannot be read (${/** @type {NodeJS.ErrnoException} */ (error).code}).`, { cause: error });
  }
  try {
    const value = /** @type {unknown} */ (JSON.parse(text));
    if (isSnapshot(value)) return /** @type {Snapshot} */ (value);
  } catch {
    // Said below.
  }
  throw new Failure(`${file} was not written by leftovers --save.`);
}

/**
 * What differs, as lines to print: `+` came, `-` went.
 *
 * @param {Snapshot} before
 * @param {Snapshot} after
 * @returns {string[]}
 */
export function differences(before, after) {
  return Object.keys(after).flatMap((subject) => {
    const [old, now] = [[...(before[subject] ?? [])], [...(after[subject] ?? [])]];
    const came = now.filter((line) => !take(old, line));
    return [...came.map((line) => `+ ${subject}: ${line}`), ...old.map((line) => `- ${subject}: ${line}`)];
  });
}

/**
 * Removes one occurrence.
 *
 * @param {string[]} from
 * @param {string} line
 */
function take(from, line) {
  const at = from.indexOf(line);
  if (at >= 0) from.splice(at, 1);
  return at >= 0;
}
