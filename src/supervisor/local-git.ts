import { existsSync } from 'node:fs';
import { CodedError } from '../lib/errors.js';
import { startChild } from './child.js';
import { programs } from './hardening.js';
import type { SessionIdentity } from './identities.js';
import { killAll } from './processes.js';
import type { SessionFolder } from './session-folder.js';

/** What Git began is not gone. */
class LocalGitError extends CodedError<'git'> {}

const git = '/usr/bin/git';
/** Milliseconds. */
export const [madeWithin, removedWithin] = [25_000, 5_000];

/** Nothing in a repository may change what is stored, or say which program runs. */
const attributes = '* -text !eol !ident !filter !working-tree-encoding';

/** In force while the repository is made, and not written to it. A threshold of one byte puts all contents into one pack. */
const settings: Readonly<Record<string, string>> = {
  'user.name': 'Orka',
  'user.email': 'workspace@orka.ai',
  'core.autocrlf': 'false',
  'core.safecrlf': 'false',
  'core.hooksPath': '/dev/null',
  'core.attributesFile': '/dev/null',
  'core.excludesFile': '/dev/null',
  'core.fsmonitor': 'false',
  'core.untrackedCache': 'false',
  'core.protectNTFS': 'false',
  'core.protectHFS': 'false',
  'core.compression': '0',
  'core.fsync': 'none',
  'core.bigFileThreshold': '1',
  'commit.gpgSign': 'false',
  'gc.auto': '0',
  'maintenance.auto': 'false',
};

const script = `set -e
git init --quiet --template= --initial-branch=main
mkdir -p .git/info
printf '%s\\n' "$1" >.git/info/attributes
git add --all --force .
git commit --quiet --no-verify --allow-empty --message="$2"`;

/**
 * Makes a Git repository of one commit in the workspace, so that an agent can see what it changed. Runs as the session's user, before the agent;
 * hooks, filters and settings of the workspace have no effect. Returns why there is none: it is a help, and a repository that Git cannot take,
 * such as one with paths of the greatest length, can still be worked on. Throws LocalGitError.
 */
export async function makeRepository(
  folder: SessionFolder,
  revision: string,
  identity: SessionIdentity | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!existsSync(git)) return 'the image has no git';
  const making = [programs.shell, '-c', script, 'sh', attributes, `Workspace at ${revision}`] as const;
  const failure = await runIn(folder, making, identity, madeWithin, signal);
  if (failure === undefined) return undefined;
  const left = await runIn(folder, [programs.shell, '-c', 'rm -rf .git'], identity, removedWithin, signal);
  const says = `git ${failure}`;
  if (left === undefined && !signal.aborted) return says;
  throw new LocalGitError('git', { at: 'workspace', says: left === undefined ? says : `${says}, and .git stays: ${left}` });
}

/** `undefined`: it ended well. */
async function runIn(
  { workspace, home, tmp }: SessionFolder,
  command: readonly [string, ...string[]],
  identity: SessionIdentity | undefined,
  within: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const child = await startChild({ command, cwd: workspace, env: environment(home, tmp), identity });
  child.process.stdout.resume();
  child.process.stdin.on('error', () => undefined).end();
  const bound = AbortSignal.any([signal, AbortSignal.timeout(within)]);
  const stopped = new Promise<string>((resolve) => {
    const stop = () => resolve(signal.aborted ? 'was stopped' : `did not end within ${within} ms`);
    if (bound.aborted) stop();
    else bound.addEventListener('abort', stop, { once: true });
  });
  const end = await Promise.race([child.exited, stopped]);
  await killAll(child.owner);
  if (end === 'ended with exit code 0') return undefined;
  return `${end}: ${child.stderr().slice(-500)}`;
}

function environment(home: string, tmp: string): Record<string, string> {
  const entries = Object.entries(settings);
  return {
    HOME: home,
    TMPDIR: tmp,
    PATH: '/usr/bin:/bin',
    LC_ALL: 'C',
    TZ: 'UTC',
    // git takes and returns memory for each file, which costs more than its reading.
    MALLOC_TOP_PAD_: String(32 * 1024 * 1024),
    MALLOC_TRIM_THRESHOLD_: String(128 * 1024 * 1024),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_AUTHOR_DATE: '2000-01-01T00:00:00Z',
    GIT_COMMITTER_DATE: '2000-01-01T00:00:00Z',
    GIT_CONFIG_COUNT: String(entries.length),
    ...Object.fromEntries(
      entries.flatMap(([key, value], at) => [
        [`GIT_CONFIG_KEY_${at}`, key],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ]),
    ),
  };
}
