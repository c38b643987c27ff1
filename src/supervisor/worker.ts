/**
 * The worker of an agent: a long-lived process below the agent's own that it cannot work without. Some agents wait for ever for an answer
 * of a worker that is gone, so the supervisor watches it.
 */
import { readFileSync } from 'node:fs';
import type { JsonObject } from '../lib/json.js';
import { isRunning, processesOf } from './processes.js';
import type { ProcessOwner } from './processes.js';
import type { ProcessMark } from './proc.js';

/** Method of the notification with which `child-reporter.js` tells how a child ended. */
export const childEnded = '_orka/child_ended';

/** The module that a Node agent has to load for these reports, as a URL that needs no file: the session's user may not read ours. */
export const childReporter = `data:text/javascript;base64,${readFileSync(new URL('./child-reporter.js', import.meta.url), 'base64')}`;

/** Milliseconds between two looks, and in which a report of the end may follow. */
const [lookEvery, reportWithin] = [250, 500];

/** Watches one worker. The kernel decides whether it is gone; what the agent reports decides only what the message says of how. */
export class WorkerWatch {
  readonly #owner: ProcessOwner;
  readonly #agentPid: number;
  readonly #name: string;
  readonly #lost: (how: string) => void;
  #chain: readonly ProcessMark[] = [];
  #how: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `name`: of the worker's program as the kernel has it, 15 bytes at most. `lost`: called once. */
  constructor({ owner, pid }: { readonly owner: ProcessOwner; readonly pid: number }, name: string, lost: (how: string) => void) {
    this.#owner = owner;
    this.#agentPid = pid;
    this.#name = name;
    this.#lost = lost;
  }

  /** Finds the worker and watches it from now on; `false` = there is none. To be called before the agent runs a tool. */
  begin(): boolean {
    this.#chain = findChain(this.#owner, this.#agentPid, this.#name);
    if (this.#chain.length === 0) return false;
    this.#timer = setInterval(() => {
      this.#look();
    }, lookEvery).unref();
    return true;
  }

  /** Takes a report of the agent. Reports about other processes are ignored. */
  reported({ pid, code, signal }: JsonObject): void {
    if (!this.#chain.some((process) => process.pid === pid)) return;
    if (typeof signal === 'string' && /^SIG[A-Z0-9]{1,10}$/.test(signal)) this.#how ??= `was ended by ${signal}`;
    else if (typeof code === 'number' && Number.isInteger(code)) this.#how ??= `ended with exit code ${code & 255}`;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    if (this.#chain.every(isRunning)) return;
    this.stop();
    const tell = () => {
      this.#lost(`its process ${this.#name} ${this.#how ?? 'has ended'}`);
    };
    if (this.#how === undefined) setTimeout(tell, reportWithin).unref();
    else tell();
  }
}

/** The processes from below the agent's own to its nearest descendant of this name: the loss of any of them cuts the agent off. */
function findChain(owner: ProcessOwner, agentPid: number, name: string): readonly ProcessMark[] {
  const all = new Map(processesOf(owner).map((process) => [process.pid, process]));
  const chains = [...all.values()].filter((process) => process.name === name).map((worker) => chainTo(worker.pid));
  return chains.filter((chain) => chain.length > 0).sort((a, b) => a.length - b.length)[0] ?? [];

  /** Empty = the process does not descend from the agent. */
  function chainTo(pid: number): readonly ProcessMark[] {
    const chain: ProcessMark[] = [];
    for (let next = all.get(pid); next && next.pid !== agentPid; next = all.get(next.parent)) {
      if (chain.length > all.size) return [];
      chain.push({ pid: next.pid, started: next.started });
      if (next.parent === agentPid) return chain;
    }
    return [];
  }
}
