/** Controllers in processes of their own, which can be ended at an exact step. */
import { fork } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { PoolEffectName } from '../../../src/controller/pool/decision.js';
import type { ControllerHooks } from '../../../src/controller/manager.js';
import type { AttemptStep } from '../../../src/controller/task/attempt-port.js';
import type { SourceStep } from '../../../src/controller/task/source-run.js';
import type { ControllerSettings } from '../../../src/controller/settings.js';

/** Where a process ends: at the first time that this effect begins, or has been performed, once it was told so. */
export interface Point {
  readonly effect: PoolEffectName;
  readonly phase: Parameters<NonNullable<ControllerHooks['onEffect']>>[1];
}

/** What an attempt asks of a supervisor, in the order in which it does. */
export type AttemptRequest = 'session' | 'prompt' | 'cancel' | 'delta' | 'deletion';

/** A moment of an attempt: a request leaves, or the head of its answer is there. One on a connection of before has left already. */
export interface Step {
  readonly taskUID: string;
  readonly step: AttemptRequest;
  readonly phase: 'begins' | 'answered';
}

/** A step of an attempt or of its source, as the controller itself tells it. */
export interface TakenStep {
  readonly taken: AttemptStep | SourceStep;
  readonly phase: Point['phase'];
}

export interface Order {
  readonly settings: ControllerSettings;
  readonly access: { readonly server: string; readonly ca: string; readonly token: string };
  readonly dies?: Point;
  /** The first time that the attempt of a Task comes to it, the process ends, or stands still with all its connections. */
  readonly interrupted?: Step & { readonly by: 'SIGKILL' | 'SIGSTOP' };
  /** The same for a step, of whatever Task. */
  readonly halts?: TakenStep & { readonly by: 'SIGKILL' | 'SIGSTOP' };
  /** Addresses of Services that this machine cannot resolve. */
  readonly hosts?: Readonly<Record<string, string>>;
}

interface Delivery {
  /** Address of the Pod. */
  readonly to: string;
  /** Tells one material from another. */
  readonly nonce: string;
}

/** What a process did, in its order. */
export type Trace =
  Point | Step | TakenStep | { readonly sent: Delivery } | { readonly answered: Delivery & { readonly status: number } };

export interface Doomed {
  readonly epoch: number;
  readonly trace: readonly Trace[];
  /** From now on it ends there. */
  readonly dies: (at: Point) => Promise<void>;
  /** From now on it is interrupted there, once. */
  readonly interrupted: (at: NonNullable<Order['interrupted']>) => Promise<void>;
  /** From now on it is halted there, once. */
  readonly halts: (at: NonNullable<Order['halts']>) => Promise<void>;
  /** Stands still, or goes on after it did. */
  readonly signal: (name: 'SIGSTOP' | 'SIGCONT') => void;
  /** How it ended: by what signal, or with what code. */
  readonly ended: Promise<string>;
  readonly hasEnded: () => boolean;
  /** Ends it now. */
  readonly kill: () => Promise<void>;
  /** The end of its log. */
  readonly log: () => string;
}

const program = new URL('doomed-controller.js', import.meta.url).pathname;
const leadsWithin = 60_000;

/**
 * Resolves once the controller leads. One that does not come so far is ended.
 *
 * @param group of the process, by which the packets that it sends are known
 */
export async function startDoomed(order: Order, group = 0): Promise<Doomed> {
  const child = fork(program, { stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'ipc'], execArgv: [], gid: group });
  const trace: Trace[] = [];
  const lines: string[] = [];
  const ended = new Promise<string>((resolve) => {
    // All that it said is there by then.
    child.once('close', (code, signal) => resolve(signal ?? `code ${code}`));
  });
  const onExit = () => child.kill('SIGKILL');
  process.once('exit', onExit);
  void ended.then(() => process.off('exit', onExit));
  createInterface({ input: child.stdio[3] as Readable }).on('line', (line) => trace.push(JSON.parse(line) as Trace));
  const log = () => lines.slice(-40).join('\n');
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  const leading = new Promise<number>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the controller does not lead\n${log()}`)), leadsWithin);
    for (const output of [child.stdout, child.stderr])
      createInterface({ input: output! }).on('line', (line) => {
        lines.push(line);
        if (!line.includes('"event":"leads"')) return;
        clearTimeout(timer);
        resolve((JSON.parse(line) as { readonly epoch: number }).epoch);
      });
    void ended.then((how) => {
      clearTimeout(timer);
      reject(new Error(`the controller ended by ${how} before it led\n${log()}`));
    });
  });
  const send = (message: Order) =>
    new Promise<void>((resolve, reject) => child.send(message, (error) => (error ? reject(error) : resolve())));
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const dies = (at: Point) => send({ ...order, dies: at });
  const interrupted: Doomed['interrupted'] = (at) => send({ ...order, interrupted: at });
  const halts: Doomed['halts'] = (at) => send({ ...order, halts: at });
  const signal: Doomed['signal'] = (name) => void child.kill(name);
  try {
    await send(order);
    const epoch = await leading;
    return { epoch, trace, ended, hasEnded, kill, log, dies, interrupted, halts, signal };
  } catch (error) {
    await kill();
    throw error;
  }
}
