// Processes by number and start time (a number alone may have gone to somebody else), and the records of those we started.

import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { put } from './files.js';
import { cgroup, inWork, logFile, marker, markerName, work } from './settings.js';

/**
 * @typedef {object} ProcessId
 * @property {number} pid
 * @property {string} startTime clock ticks since boot, as the kernel writes them
 */

/**
 * @typedef {ProcessId & { boot: string, fingerprint: string, since: string }} ProcessRecord
 * `boot`: start times of two boots cannot be compared; `since`: ISO 8601
 */

/**
 * @typedef {object} Command
 * @property {string} name
 * @property {string} program path
 * @property {readonly string[]} args
 * @property {readonly string[]} [inputs] files that the program reads once, at its start
 */

export const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

/**
 * @param {number} pid
 * @returns {{ state: string, startTime: string } | undefined} undefined when there is no such process
 */
function stat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in brackets and may hold anything, brackets too.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', startTime: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

/** @returns {ProcessId} */
export const self = () => ({ pid: process.pid, startTime: stat(process.pid)?.startTime ?? '' });

/** @param {ProcessId} id */
export function isAlive({ pid, startTime }) {
  const now = stat(pid);
  return now !== undefined && now.state !== 'Z' && now.startTime === startTime;
}

/** @returns {number[]} */
export const pids = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/**
 * @param {number} pid
 * @param {string} file below /proc/<pid>
 */
function procFile(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

/** @param {number} pid */
export const commandLine = (pid) => procFile(pid, 'cmdline').split('\0').join(' ').trim();

/**
 * Every process of this cluster: what we started (by the marker in its environment, which shims inherit) and what runs in
 * its pods (by cgroup). Needs no record, so it also finds what a lost work folder no longer knows.
 *
 * @returns {ProcessId[]}
 */
export function findOurs() {
  const ours = (/** @type {number} */ pid) =>
    procFile(pid, 'environ').split('\0').includes(marker) ||
    procFile(pid, 'cgroup')
      .split('\n')
      .some((line) => line.split(':')[2]?.startsWith(`/${cgroup}/`));
  return pids().flatMap((pid) => {
    const now = stat(pid);
    return now && now.state !== 'Z' && ours(pid) ? [{ pid, startTime: now.startTime }] : [];
  });
}

/** @returns {string | undefined} the work folder of a cluster that runs here and is not the one we were asked about */
export function otherWorkFolder() {
  const values = pids().flatMap((pid) =>
    procFile(pid, 'environ')
      .split('\0')
      .filter((entry) => entry.startsWith(`${markerName}=`)),
  );
  return values.find((entry) => entry !== marker)?.slice(markerName.length + 1);
}

/**
 * Ends processes: SIGTERM, and SIGKILL for those that are still there when the grace is over.
 *
 * @param {readonly ProcessId[]} ids
 * @param {number} grace milliseconds
 */
export async function end(ids, grace) {
  const send = (/** @type {NodeJS.Signals} */ signal) => {
    for (const id of ids) {
      if (!isAlive(id)) continue;
      try {
        process.kill(id.pid, signal);
      } catch (error) {
        if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error;
      }
    }
  };
  const gone = async (/** @type {number} */ milliseconds) => {
    for (const until = performance.now() + milliseconds; performance.now() < until;) {
      if (!ids.some(isAlive)) return true;
      await sleep(50);
    }
    return !ids.some(isAlive);
  };
  if (grace > 0) send('SIGTERM');
  if (await gone(grace)) return;
  send('SIGKILL');
  await gone(5_000);
}

/** @param {string} name */
const recordFile = (name) => inWork('run', `${name}.json`);

/**
 * The record of a component whose process is alive.
 *
 * @param {string} name
 * @returns {ProcessRecord | undefined}
 */
export function running(name) {
  try {
    const record = /** @type {ProcessRecord} */ (JSON.parse(readFileSync(recordFile(name), 'utf8')));
    return record.boot === bootId && isAlive(record) ? record : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Changes with anything that a running process would have to be restarted for.
 *
 * @param {Command} command
 */
export function fingerprint({ program, args, inputs = [] }) {
  const hash = createHash('sha256').update(JSON.stringify([program, args]));
  for (const file of inputs) hash.update(`\0${file}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

/**
 * Starts a program that outlives us, with its output in its log.
 *
 * @param {Command} command
 */
export function start(command) {
  mkdirSync(inWork('run'), { recursive: true });
  mkdirSync(inWork('log'), { recursive: true });
  const log = openSync(logFile(command.name), 'a');
  const child = spawn(command.program, command.args, {
    cwd: work,
    detached: true,
    stdio: ['ignore', log, log],
    // Nothing of the caller's environment: no proxies, no KUBECONFIG.
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: work, [markerName]: work },
  });
  closeSync(log);
  child.on('error', () => undefined);
  child.unref();
  if (child.pid === undefined) return;
  const record = {
    pid: child.pid,
    startTime: stat(child.pid)?.startTime ?? '',
    boot: bootId,
    fingerprint: fingerprint(command),
    since: new Date().toISOString(),
  };
  put(recordFile(command.name), JSON.stringify(record));
}

/** @param {string} name */
export function forget(name) {
  rmSync(recordFile(name), { force: true });
}
