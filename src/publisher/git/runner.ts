import { execFile, spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';

import type { OperationFolder } from './operation-folder.js';
import { SourceError } from './source-error.js';

/** Source: repository.md §3.4. */
const hardened = [
  ...['credential.helper=', 'credential.interactive=never', 'core.askPass=', 'core.hooksPath=/dev/null'],
  ...['core.attributesFile=/dev/null', 'core.excludesFile=/dev/null', 'core.fsmonitor=false', 'core.untrackedCache=false'],
  ...['commit.gpgSign=false', 'tag.gpgSign=false', 'protocol.allow=never', 'protocol.https.allow=always'],
  ...['protocol.ssh.allow=never', 'protocol.ext.allow=never', 'submodule.recurse=false', 'fetch.recurseSubmodules=false'],
  ...['push.recurseSubmodules=no', 'filter.lfs.clean=', 'filter.lfs.smudge=', 'filter.lfs.process=', 'filter.lfs.required=false'],
  ...['fetch.fsckObjects=true', 'transfer.fsckObjects=true', 'receive.fsckObjects=true', 'gc.auto=0', 'maintenance.auto=false'],
  'http.followRedirects=false',
];

/** Keeps the memory of git small, and names trees that git protects itself from to our own rules, which tell the path. */
const bounded = [
  ...['core.packedGitLimit=64m', 'core.packedGitWindowSize=8m', 'core.deltaBaseCacheLimit=16m', 'core.bigFileThreshold=8m'],
  ...['core.protectNTFS=true', 'core.protectHFS=true', 'pack.threads=1', 'fetch.unpackLimit=1'],
  ...['hasDot', 'hasDotdot', 'hasDotgit', 'gitmodulesBlob', 'gitmodulesLarge', 'gitmodulesMissing', 'gitmodulesName'].map(
    (finding) => `fetch.fsck.${finding}=warn`,
  ),
  ...['gitmodulesParse', 'gitmodulesPath', 'gitmodulesSymlink', 'gitmodulesUpdate', 'gitmodulesUrl'].map(
    (finding) => `fetch.fsck.${finding}=warn`,
  ),
];

/** Address space of one process of git. The default memory of a publisher holds four of them, and itself. */
const memoryBytes = 384 * 1024 * 1024;
/** Time that a killed process has to let go of its pipes. */
const graceful = 2_000;
const stdoutBytes = 1024 * 1024;
const stderrBytes = 64 * 1024;
/** The first version that these options were tested with. */
const oldest = [2, 39] as const;
/** The flag is one of `orka-workspaces publisher`. */
export const unrunnableGit = {
  says: 'the program cannot be run',
  allowed: `the git of the flag --git, of version ${oldest.join('.')} or newer`,
} as const;

export interface GitCall {
  readonly args: readonly string[];
  readonly folder: OperationFolder;
  readonly signal: AbortSignal;
  /** Milliseconds. */
  readonly timeout: number;
  /** Whether the call may use the network, with the credential of the operation. */
  readonly network?: boolean;
  /** Of a call that runs to its end. */
  readonly input?: string;
}

/** A process of git did not do its work. Its words are only for {@link GitFailure.says}: they may hold texts of a forge. */
export class GitFailure extends Error {
  readonly kind: 'ended' | 'timeout' | 'aborted' | 'output' | 'not-started';
  readonly signal: NodeJS.Signals | null;
  readonly #stderr: string;

  constructor(kind: GitFailure['kind'], stderr = '', signal: NodeJS.Signals | null = null) {
    super(`git: ${kind}`);
    this.kind = kind;
    this.signal = signal;
    // Lines that the forge wrote itself could pass for those of git.
    this.#stderr = stderr
      .split(/[\r\n]/)
      .filter((line) => !line.startsWith('remote: '))
      .join('\n');
  }

  says(pattern: RegExp): boolean {
    return pattern.test(this.#stderr);
  }
}

/** A running process of git. */
export interface GitProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves when the process ended well and its output is read. */
  readonly done: Promise<void>;
  /** Kills the process and everything that it started. */
  readonly kill: () => void;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Runs git with nothing of this machine's configuration, in a process group of its own. */
export class GitRunner {
  readonly #binary: string;
  readonly #execPath: string;
  readonly #fileBytes: number;
  readonly version: string;

  private constructor(binary: string, execPath: string, version: string, fileBytes: number) {
    this.#binary = binary;
    this.#execPath = execPath;
    this.#fileBytes = fileBytes;
    this.version = version;
  }

  /** Finds git. `fileBytes`: the largest file that it may write. */
  static async find(binary: string, fileBytes: number): Promise<GitRunner> {
    try {
      const env = { PATH: searchPath, LC_ALL: 'C' };
      const [execPath, version] = await Promise.all(
        ['--exec-path', '--version'].map(async (option) =>
          (await promisify(execFile)(binary, [option], { env, timeout: 10_000 })).stdout.trim(),
        ),
      );
      const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(version ?? '') ?? [];
      if (Number(major) < oldest[0] || (Number(major) === oldest[0] && Number(minor) < oldest[1]))
        throw new SourceError('git_unavailable', {
          at: 'git',
          found: `${major}.${minor}`,
          allowed: `${oldest.join('.')} or newer`,
        });
      return new GitRunner(binary, execPath ?? '', (version ?? '').replace('git version ', ''), fileBytes);
    } catch (error) {
      if (error instanceof SourceError) throw error;
      throw new SourceError('git_unavailable', { at: 'git', found: binary, ...unrunnableGit });
    }
  }

  /** Runs git to its end. Its output is bounded. */
  async run(call: GitCall): Promise<Buffer> {
    const { stdin, stdout, done, kill } = this.start(call);
    stdin.end(call.input ?? '');
    const chunks: Buffer[] = [];
    let size = 0;
    stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > stdoutBytes) kill();
      else chunks.push(chunk);
    });
    await done.catch((error: unknown) => {
      throw size > stdoutBytes ? new GitFailure('output') : error;
    });
    return Buffer.concat(chunks);
  }

  start(call: GitCall): GitProcess {
    if (call.signal.aborted) throw new GitFailure('aborted');
    const child = this.#spawn(call);
    // The group has the id of its first process.
    const killGroup = (): void => {
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // Nothing of the group is left.
      }
    };
    // Output that is not read would keep the process from being closed.
    const kill = (): void => {
      killGroup();
      for (const stream of [child.stdout, child.stderr]) stream.destroy();
    };
    child.stdin.on('error', () => undefined);
    const done = ended(child, { kill, killGroup }, call);
    // The reader of the output may fail first; a later wait still gets the failure.
    done.catch(() => undefined);
    return { stdin: child.stdin, stdout: child.stdout, done, kill };
  }

  #spawn({ args, folder, network = false }: GitCall): Child {
    const own = network ? [`include.path=${folder.config}`] : [];
    const options = [...own, ...hardened, ...bounded].flatMap((option) => ['-c', option]);
    // Without the signal, a write beyond the bound fails with words that tell it from a broken pack.
    const bounds = `trap "" XFSZ; ulimit -c 0; ulimit -f ${Math.ceil(this.#fileBytes / 512)}; ulimit -v ${memoryBytes / 1024}; exec "$0" "$@"`;
    return spawn('/bin/sh', ['-c', bounds, this.#binary, ...options, `--git-dir=${folder.repository}`, ...args], {
      cwd: folder.root,
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        HOME: folder.home,
        XDG_CONFIG_HOME: folder.home,
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_TEMPLATE_DIR: folder.template,
        GIT_NO_REPLACE_OBJECTS: '1',
        GIT_EXEC_PATH: this.#execPath,
        GIT_TERMINAL_PROMPT: '0',
        GIT_ASKPASS: '/bin/false',
        SSH_ASKPASS: '/bin/false',
        // Without the proxy there is no way out, also for objects that git misses and would fetch by itself.
        GIT_ALLOW_PROTOCOL: network ? 'https' : '',
        GIT_PROTOCOL_FROM_USER: '0',
        GIT_OPTIONAL_LOCKS: '0',
        LC_ALL: 'C',
        LANG: 'C',
        TZ: 'UTC',
        PATH: searchPath,
      },
    });
  }
}

const searchPath = '/usr/local/bin:/usr/bin:/bin';

function ended(
  child: Child,
  { kill, killGroup }: { readonly kill: () => void; readonly killGroup: () => void },
  { signal, timeout }: GitCall,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let stderr = '';
    let stopped: 'timeout' | 'aborted' | undefined;
    let grace: NodeJS.Timeout | undefined;
    const stop = (reason: 'timeout' | 'aborted'): void => {
      stopped ??= reason;
      kill();
    };
    const clock = setTimeout(() => stop('timeout'), timeout);
    const abort = (): void => stop('aborted');
    signal.addEventListener('abort', abort, { once: true });
    const settle = (failure: GitFailure | undefined): void => {
      clearTimeout(clock);
      clearTimeout(grace);
      signal.removeEventListener('abort', abort);
      if (failure) reject(failure);
      else resolve();
    };
    child.stderr.on('data', (chunk: Buffer) => {
      stderr = `${stderr}${chunk.toString('latin1')}`.slice(-stderrBytes);
    });
    child.on('error', () => settle(new GitFailure('not-started')));
    child.on('exit', (_, by) => {
      // Helpers of git may have outlived it.
      killGroup();
      if (stopped) grace = setTimeout(() => settle(new GitFailure(stopped ?? 'aborted', stderr, by)), graceful);
    });
    child.on('close', (code, by) => settle(code === 0 && !stopped ? undefined : new GitFailure(stopped ?? 'ended', stderr, by)));
  });
}
