/** The processes of a session, found in /proc: a session is a user, and whoever detaches keeps that user. */
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterName, procFile, startTime } from './proc.js';
import type { ProcessMark } from './proc.js';
import { SessionUser } from './session-user.js';
import type { SignalOrder } from './session-user.js';

/** Whose processes: of a user of its own, or, where users are not switched, of one session of the kernel and its descendants. */
export type ProcessOwner = { readonly uid: number } | { readonly sid: number };

type Helper = Pick<SessionUser, 'mark' | 'isEnded' | 'signal'>;

interface ProcessState extends ProcessMark {
  /** Of its program, as the kernel has it: at most 15 bytes. */
  readonly name: string;
  /** One letter as ps prints it: of a thread that is not stopped, if there is one. */
  readonly state: string;
  readonly parent: number;
}

const scanPause = 25;

/**
 * Processes that can still run. The dead whom nobody has waited for yet do not count; one of which only the first thread has died does.
 * `helper`: the child that works as the same user is no process of its session.
 */
export function processesOf(owner: ProcessOwner, helper?: Helper): readonly ProcessState[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const alive = pids.map((pid) => read(Number(pid))).filter((process) => process !== undefined);
  const mine = 'uid' in owner ? alive.filter(({ uids }) => uids.includes(owner.uid)) : inSession(alive, owner.sid);
  const mark = helper?.mark;
  // By pid and start: the session may end the child, and take its pid.
  const others = mine.filter(({ pid, started }) => pid !== mark?.pid || started !== mark.started);
  return others.map((found) => ({ ...found, state: stateOfThreads(found) })).filter(({ state }) => !isDead(state));
}

interface ProcessEntry extends ProcessState {
  readonly sid: number;
  /** Real, effective, saved and file system user. */
  readonly uids: readonly number[];
}

function inSession(all: readonly ProcessEntry[], sid: number): readonly ProcessEntry[] {
  const found = new Set(all.filter((process) => process.sid === sid).map(({ pid }) => pid));
  for (let size = -1; size !== found.size;) {
    size = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return all.filter(({ pid }) => found.has(pid));
}

function read(pid: number): ProcessEntry | undefined {
  const [stat, status] = [procFile(pid, 'stat'), procFile(pid, 'status')];
  const fields = afterName(stat);
  if (fields.length === 0) return undefined;
  const uids = /^Uid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/).map(Number) ?? [];
  return {
    pid,
    name: stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')')),
    state: fields[0] ?? '',
    started: fields[19] ?? '',
    parent: Number(fields[1]),
    sid: Number(fields[3]),
    uids,
  };
}

/**
 * Whether a process still runs; zombies do not. Its threads, which may be many, are read only when its first one is over. Reads only what the
 * kernel itself keeps, so that no process can delay the look.
 */
export function isRunning({ pid, started }: ProcessMark): boolean {
  const fields = afterName(procFile(pid, 'stat'));
  const state = fields[0] ?? 'X';
  return fields[19] === started && (!isDead(state) || !isDead(stateOfThreads({ pid, state })));
}

function isDead(state: string): boolean {
  return state === 'Z' || state === 'X';
}

function isStopped({ state }: ProcessState): boolean {
  return state === 'T' || state === 't';
}

/** The kernel shows the state of the first thread: it may be dead or stopped while others run. */
function stateOfThreads({ pid, state }: Pick<ProcessState, 'pid' | 'state'>): string {
  const states = threadsOf(pid).map((thread) => afterName(procFile(pid, `task/${thread}/stat`))[0] ?? 'X');
  const alive = states.filter((one) => !isDead(one));
  return alive.find((one) => one !== 'T' && one !== 't') ?? alive[0] ?? (isDead(state) ? state : 'Z');
}

function threadsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** Users, groups and rights that a process really has. `undefined` if it is gone. */
export function privilegesOf(pid: number):
  | {
      readonly uids: string;
      readonly gids: string;
      readonly groups: string;
      readonly capabilities: string;
      readonly noNewPrivileges: string;
    }
  | undefined {
  const status = procFile(pid, 'status');
  const line = (name: string) => new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*$`, 'm').exec(status)?.[1] ?? '';
  if (status === '') return undefined;
  return {
    uids: line('Uid'),
    gids: line('Gid'),
    groups: line('Groups'),
    capabilities: line('CapEff'),
    noNewPrivileges: line('NoNewPrivs'),
  };
}

function signalAll(processes: readonly ProcessState[], signal: NodeJS.Signals): void {
  for (const { pid, started } of processes) {
    // A session can use up pids until one that ended belongs to another user.
    if (startTime(pid) !== started) continue;
    try {
      process.kill(pid, signal);
    } catch {
      // It ended a moment ago.
    }
  }
}

/** Signals all processes of a user, so that no more of them begin but what goes on after it; where users are not switched, scans have to do. */
async function signalAtOnce(
  owner: ProcessOwner,
  signal: SignalOrder['signal'],
  deadline: number,
  helper: Helper,
): Promise<boolean> {
  // All that is left: a busy machine takes long to start a child. One that a session stops goes on, and one that it ends fails at once.
  return !('uid' in owner) || helper.signal(signal, Math.max(1, deadline - Date.now()));
}

/** For one use. */
async function withHelper<T>(owner: ProcessOwner, work: (helper: Helper) => Promise<T>): Promise<T> {
  const user = new SessionUser('uid' in owner ? { uid: owner.uid, gid: owner.uid } : undefined);
  try {
    return await work(user);
  } finally {
    await user.end();
  }
}

/**
 * Ends every process of an owner; `true` = proven by two scans that found none, after a signal that no process can have escaped by a fork.
 * @default within: 10 s
 */
export function killAll(owner: ProcessOwner, within = 10_000): Promise<boolean> {
  return withHelper(owner, (helper) => killBy(helper, owner, within));
}

async function killBy(helper: Helper, owner: ProcessOwner, within: number): Promise<boolean> {
  const deadline = Date.now() + within;
  for (let [empty, sent] = [0, false]; Date.now() < deadline;) {
    sent ||= await signalAtOnce(owner, 'SIGKILL', deadline, helper);
    const found = processesOf(owner, helper);
    if (found.length === 0 && sent) {
      if (++empty === 2) return true;
    } else {
      empty = 0;
      signalAll(found, 'SIGSTOP');
      signalAll(found, 'SIGKILL');
    }
    await sleep(scanPause);
  }
  return false;
}

/** Asks every process to end, and waits. */
export async function terminate(owner: ProcessOwner, grace: number): Promise<void> {
  signalAll(processesOf(owner), 'SIGTERM');
  for (const deadline = Date.now() + grace; Date.now() < deadline && processesOf(owner).length > 0;) await sleep(scanPause);
}

/** Milliseconds, and looks in them. On a quiet machine there are more looks in that time; on a busy one they take longer. */
const [patience, fairLooks] = [8_000, 160];

/**
 * Stops every process of an owner; `true` = two scans saw the same ones, all stopped, after a signal that none can have escaped by a fork. A
 * parent in vfork cannot stop before its child has executed a program, and a stopped child never does: that child runs until then.
 *
 * Gives up after {@link patience}, or, on a machine too busy for {@link fairLooks} in that time, after them; in any case after `within`
 * milliseconds, and when `helper` is ended. `helper`: @default one for this use
 */
export function freeze(owner: ProcessOwner, within: number, helper?: Helper): Promise<boolean> {
  return helper ? freezeBy(helper, owner, within) : withHelper(owner, (own) => freezeBy(own, owner, within));
}

async function freezeBy(helper: Helper, owner: ProcessOwner, within: number): Promise<boolean> {
  const [began, deadline] = [Date.now(), Date.now() + within];
  let sent = false;
  let looks = 0;
  const mayLook = () => !helper.isEnded && Date.now() < deadline && (looks < fairLooks || Date.now() < began + patience);
  for (let last: string | undefined; mayLook(); looks++) {
    const found = processesOf(owner, helper);
    const running = found.filter((one) => !isStopped(one));
    const seen = found.map(({ pid }) => pid).join();
    if (running.length > 0) sent = false;
    else if (!sent) sent = await signalAtOnce(owner, 'SIGSTOP', deadline, helper);
    else if (seen === last) return true;
    last = running.length === 0 ? seen : undefined;
    const waiting = new Set(running.filter(({ state }) => state === 'D').map(({ pid }) => pid));
    signalAll(
      running.filter(({ parent }) => !waiting.has(parent)),
      'SIGSTOP',
    );
    signalAll(
      found.filter((one) => isStopped(one) && waiting.has(one.parent)),
      'SIGCONT',
    );
    await sleep(scanPause);
  }
  return false;
}

/**
 * A text that changes when a thread of an owner begins, may run or has run, even if it is stopped again: a timer or a descriptor may send
 * SIGCONT to its own process.
 */
export function standstillOf(owner: ProcessOwner, helper?: Helper): string {
  const threads = processesOf(owner, helper).flatMap(({ pid }) => threadsOf(pid).map((thread) => `${pid}/task/${thread}`));
  return threads.map((thread) => `${thread} ${afterName(procFile(thread, 'stat'))[0] ?? 'X'} ${switchesOf(thread)}`).join('\n');
}

/** How often the kernel gave a processor to something else than this thread. */
function switchesOf(thread: string): string {
  return [...procFile(thread, 'status').matchAll(/^\w*voluntary_ctxt_switches:\s*(\d+)$/gm)].map(([, count]) => count).join('+');
}

/** Lets stopped processes go on. */
export function thaw(owner: ProcessOwner): void {
  signalAll(processesOf(owner), 'SIGCONT');
}
