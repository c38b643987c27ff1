// Processes inside the sandboxes of the cluster of this machine.

import { readFileSync } from 'node:fs';

import { pids } from '../processes.js';

/** Users of sessions begin here. */
const firstSessionUser = 20_000;

/** @param {number} pid @param {string} file */
function of(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

/**
 * @param {string} podUid
 * @param {'agent' | 'supervisor'} who `agent`: all of its sessions; `supervisor`: what started them
 * @returns {readonly number[]}
 */
function processesOf(podUid, who) {
  const inPod = pids().filter((pid) => of(pid, 'cgroup').includes(podUid));
  const user = (/** @type {number} */ pid) => Number(/^Uid:\s+(\d+)/m.exec(of(pid, 'status'))?.[1] ?? 0);
  const isPause = (/** @type {number} */ pid) => of(pid, 'cmdline').startsWith('/pause');
  return inPod.filter((pid) => !isPause(pid) && (who === 'agent' ? user(pid) >= firstSessionUser : user(pid) === 0));
}

/**
 * Ends everything in a Pod, so that its containers begin again with the volumes as they are.
 *
 * @param {string} podUid
 * @returns {number} how many there were
 */
export const killAllIn = (podUid) =>
  pids()
    .filter((pid) => of(pid, 'cgroup').includes(podUid) && !of(pid, 'cmdline').startsWith('/pause'))
    .filter(kill).length;

/**
 * @param {string} podUid
 * @param {'agent' | 'supervisor'} who
 * @returns {number} how many there were; one that ended by itself meanwhile is none
 */
export const killIn = (podUid, who) => processesOf(podUid, who).filter(kill).length;

/** @param {number} pid @returns {boolean} whether it was there */
function kill(pid) {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ESRCH') return false;
    throw error;
  }
}
