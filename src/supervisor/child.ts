import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { programs } from './hardening.js';
import type { SessionIdentity } from './identities.js';
import type { ProcessOwner } from './processes.js';

export interface ChildOptions {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  /** The whole environment of the child. */
  readonly env: Readonly<Record<string, string>>;
  /** `undefined`: the child keeps the supervisor's user. Only for tests. */
  readonly identity: SessionIdentity | undefined;
}

export interface Child {
  readonly process: ChildProcessWithoutNullStreams;
  readonly pid: number;
  readonly owner: ProcessOwner;
  /** Resolves with how it ended; its own end, not that of what it left behind. */
  readonly exited: Promise<string>;
  /** The last 256 KiB of what it wrote to stderr. */
  readonly stderr: () => string;
}

const stderrKept = 256 * 1024;
const limits = ['--core=0:0', '--nofile=4096:4096', '--fsize=1073741824:1073741824'];

/**
 * Starts a program in a process group and session of its own, with limits in force before its first instruction; under its own user, it
 * has no supplementary groups and no rights to gain any, and dies with the supervisor. Source: dispatch.md §6.4.
 */
export async function startChild({ command, cwd, env, identity }: ChildOptions): Promise<Child> {
  const line = identity
    ? [
        programs.prlimit,
        ...limits,
        '--nproc=256:256',
        '--',
        programs.setpriv,
        ...privileges(identity),
        '--',
        ...inside(cwd),
        ...command,
      ]
    : [programs.prlimit, ...limits, '--', ...inside(cwd), ...command];
  const [program = '', ...args] = line;
  const process = spawn(program, args, { cwd: '/', env: { ...env }, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  const exited = new Promise<string>((resolve) => {
    process.once('exit', (code, signal) => {
      resolve(signal === null ? `ended with exit code ${code ?? 'unknown'}` : `ended by ${signal}`);
    });
  });
  await new Promise<void>((resolve, reject) => {
    process.once('spawn', resolve);
    process.on('error', reject);
  });
  const pid = process.pid ?? 0;
  return { process, pid, owner: identity ? { uid: identity.uid } : { sid: pid }, exited, stderr: keepTail(process) };
}

/** Only its own user may enter the folder of a session, not even root without its usual rights: the child has to go there itself. */
function inside(cwd: string): readonly string[] {
  return [programs.shell, '-c', 'cd -- "$1" && shift && exec "$@"', 'sh', cwd];
}

function privileges({ uid, gid }: SessionIdentity): readonly string[] {
  return [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--inh-caps=-all', '--no-new-privs', '--pdeathsig=KILL'];
}

/** One buffer, however small the parts are: when it is full its second half moves to the front. */
function keepTail({ stderr }: ChildProcessWithoutNullStreams): () => string {
  let buffer = Buffer.alloc(4096);
  let size = 0;
  stderr.on('data', (part: Buffer) => {
    const next = part.subarray(-stderrKept);
    if (size + next.length > buffer.length && buffer.length < 2 * stderrKept) {
      const grown = Buffer.alloc(Math.min(2 * stderrKept, Math.max(2 * buffer.length, size + next.length)));
      buffer.copy(grown, 0, 0, size);
      buffer = grown;
    }
    if (size + next.length > buffer.length) {
      const kept = Math.min(size, stderrKept);
      buffer.copyWithin(0, size - kept, size);
      size = kept;
    }
    next.copy(buffer, size);
    size += next.length;
  });
  stderr.on('error', () => undefined);
  return () => buffer.subarray(Math.max(0, size - stderrKept), size).toString();
}
