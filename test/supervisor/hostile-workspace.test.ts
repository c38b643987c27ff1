/** Sessions that attack through the file system: the supervisor never follows, never blocks, and never exceeds its bounds. */
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { WorkspaceDelta } from '../../src/harness/deltas.js';
import { instant } from '../../src/lib/instant.js';
import { sha256Hex } from '../../src/lib/sha256.js';
import { afterName, procFile } from '../../src/supervisor/proc.js';
import { freeze, killAll, processesOf, standstillOf, thaw } from '../../src/supervisor/processes.js';
import { closeSession, endProcesses } from '../../src/supervisor/session.js';
import type { Session } from '../../src/supervisor/session.js';
import { createSessionFolder, giveAway, protectSharedFolders, removeSessionFolder } from '../../src/supervisor/session-folder.js';
import { removeAs, scanAs, SessionUser } from '../../src/supervisor/session-user.js';
import { eventually, eventuallyAnswers, pause } from '../support/eventually.js';
import { deltaOrder, runPrompt, taskOrders } from '../support/harness-orders.js';
import type { TaskOrders } from '../support/harness-orders.js';
import { codexAgent, scriptedModules, startRealSupervisor } from '../support/real-supervisor.js';
import { limit } from '../support/pace.js';
import { finish, gone, refusal, textOf } from '../support/supervisor-calls.js';
import { freshUsers, scriptedSupervisor, switchesUsers } from '../support/supervisor.js';
import type { ScriptedSupervisor } from '../support/supervisor.js';

// Only root can give each session a user of its own.
const suite = switchesUsers ? describe : describe.skip;
const limits = { maxBytes: 100 * 1024 * 1024, maxEntries: 20_000 };

/** Folder of the session of a Task. */
function folderOf(it: ScriptedSupervisor, task: TaskOrders): string {
  const begin = `session-${sha256Hex(`${task.sessionUID}:1`)}`;
  return path.join(it.baseDir, it.folders().find((name) => name.startsWith(begin)) ?? 'no folder');
}

interface Attack {
  readonly task: TaskOrders;
  /** Folder and user of its session. */
  readonly folder: string;
  readonly uid: number;
  /** What it printed. */
  readonly said: string;
  /** A {@link WorkspaceDelta}, or what it was refused with. */
  readonly delta: unknown;
}

/** Runs an attack as the prompt of a new session, does something as root, and asks for the delta. */
async function attack(
  it: ScriptedSupervisor,
  name: string,
  order: string,
  meanwhile: (workspace: string, uid: number) => unknown = () => undefined,
): Promise<Attack> {
  const task = await it.session(name);
  const [folder, uid] = [folderOf(it, task), it.latestUid()];
  const events = await it.run(task, order);
  await meanwhile(path.join(folder, 'workspace'), uid);
  const operation = task.operation('workspace-delta', it.fence, { prompt: true });
  const asked = it.client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, events.at(-1)!, limits), {
    timeout: 30_000,
  });
  const delta = await asked.then(
    (answer): WorkspaceDelta => answer.delta,
    () => refusal(asked),
  );
  return { said: textOf(events) ?? '', delta, uid, task, folder };
}

const changed = { state: 'read_only_modified', noFollowVerified: true, publicationSafe: false };
const tooMuch = { status: 413, code: 'session_poisoned' };

suite('an agent', () => {
  let it: ScriptedSupervisor;
  let bystander: TaskOrders;
  let bystanderFolder: string;
  let bystanderUid: number;
  const kept = () => path.join(bystanderFolder, 'tmp/kept.txt');

  beforeAll(async () => {
    it = await scriptedSupervisor();
    bystander = await it.session('bystander');
    [bystanderFolder, bystanderUid] = [folderOf(it, bystander), it.latestUid()];
    writeFileSync(kept(), 'kept');
    chownSync(kept(), bystanderUid, bystanderUid);
  });
  afterAll(async () => {
    await it.close();
  });

  /** The session is gone with all that it had; everybody else still works. */
  async function expectHarmless({ task, folder, uid }: Attack): Promise<void> {
    const left = (await it.status()).sessions?.find(({ runtimeSessionID }) => runtimeSessionID === task.runtimeSessionID);
    if (left?.state === 'idle') await it.client.deleteSession(task.operation('ds', it.fence), task.runtimeSessionID, 'test');
    await gone(it, task, 60_000);
    expect(existsSync(folder)).toBe(false);
    expect(processesOf({ uid })).toEqual([]);
    expect(readFileSync(kept(), 'utf8')).toBe('kept');
    expect(lstatSync(kept()).uid).toBe(bystanderUid);
    expect(lstatSync(it.baseDir).mode & 0o7777).toBe(0o711);
    expect((await it.status()).lifecycle).toBe('ready');
  }

  test('cannot replace or rename its workspace, home or temporary folder', async () => {
    const names = 'workspace home tmp xdg';
    const script = `cd ..; for f in ${names}; do mv -T $f x; rmdir $f; ln -sfT .. $f; ln -sfT /tmp $f; done; ln -sT .. x; ls -la`;
    const done = await attack(it, 'replace', `sh ${script}`);
    expect(done.said).not.toContain('->');
    expect(done.delta).toMatchObject({ state: 'no_change', noFollowVerified: true });
    await expectHarmless(done);
  });

  test('that plants symbolic links has them counted and not followed', async () => {
    const script = `ln -s / a; ln -s .. b; ln -s ${bystanderFolder} c; ln -s /proc/self/root d; ln -s e e; mkdir f; ln -s /etc f/g`;
    const done = await attack(it, 'links', `sh ${script}`);
    expect(done.delta).toMatchObject({ ...changed, entryCount: 7, symlinkEntryCount: 6, changedFileCount: 0 });
    await expectHarmless(done);
  });

  test('that links into a shared folder takes nothing of another session along', async () => {
    chmodSync(path.dirname(kept()), 0o777);
    const script = `ln -s ${path.dirname(kept())} /tmp/hostile-$$; mkdir -m 777 /dev/shm/hostile-$$; ln -s ${kept()} /dev/shm/hostile-$$/k`;
    const done = await attack(it, 'strays', `sh ${script}`);
    await expectHarmless(done);
    const strays = ['/tmp', '/dev/shm'].flatMap((folder) => readdirSync(folder).map((name) => path.join(folder, name)));
    expect(strays.filter((stray) => lstatSync(stray, { throwIfNoEntry: false })?.uid === done.uid)).toEqual([]);
    chmodSync(path.dirname(kept()), 0o700);
  });

  test('that makes hard links loses the names and nobody else the file', async () => {
    const file = mkdtempSync(path.join(tmpdir(), 'linked-'));
    chmodSync(file, 0o777);
    writeFileSync(path.join(file, 'shared'), 'shared', { mode: 0o666 });
    chmodSync(path.join(file, 'shared'), 0o666);
    const done = await attack(it, 'hard-links', `sh echo x > a; ln a b; ln ${file}/shared c; echo done`);
    expect(done.delta).toMatchObject({ ...changed, entryCount: 3, changedFileCount: 3 });
    await expectHarmless(done);
    expect(readFileSync(path.join(file, 'shared'), 'utf8')).toBe('shared');
    expect(lstatSync(path.join(file, 'shared'))).toMatchObject({ uid: 0, nlink: 1 });
    rmSync(file, { recursive: true });
  });

  test('that leaves named pipes blocks nobody', async () => {
    const done = await attack(it, 'pipes', 'sh mkfifo a b && mkdir c && mkfifo c/d && mkfifo $HOME/.pipe $TMPDIR/pipe');
    expect(done.delta).toMatchObject({ ...changed, entryCount: 4, changedFileCount: 0 });
    await expectHarmless(done);
  });

  test('that leaves sockets is not connected to', async () => {
    const script =
      "const s = require('net').createServer(() => require('fs').writeFileSync('connected', '')); s.listen('socket', () => process.exit())";
    const done = await attack(it, 'sockets', `js process.on('exit', () => {}); ${script}`);
    expect(done.delta).toMatchObject({ state: expect.stringMatching(/no_change|read_only_modified/), changedFileCount: 0 });
    await expectHarmless(done);
  });

  test('whose workspace holds devices has none of them opened', async () => {
    const done = await attack(it, 'devices', 'say x', (workspace, uid) => {
      for (const [name, kind] of [
        ['zero', ['c', '1', '5']],
        ['tty', ['c', '5', '0']],
        ['disk', ['b', '7', '99']],
      ] as const) {
        expect(spawnSync('/usr/bin/mknod', [path.join(workspace, name), ...kind]).status).toBe(0);
        chownSync(path.join(workspace, name), uid, uid);
      }
    });
    expect(done.delta).toMatchObject({ ...changed, entryCount: 3, changedFileCount: 0 });
    await expectHarmless(done);
  });

  test('with newlines, invalid UTF-8 and option-like words in its names is read and removed whole', async () => {
    const names = [
      [10],
      [0xff, 0xfe],
      [0xc3, 0x28],
      [45, 114, 102],
      [92],
      [0x1b, 91, 50, 74],
      [32],
      Array.from({ length: 255 }, () => 0xf0),
    ];
    const script = `for (const n of ${JSON.stringify(names)}) { const b = Buffer.from(n); fs.mkdirSync(b); fs.writeFileSync(Buffer.concat([b, Buffer.from('/x'), b.subarray(0, 200)]), ''); }`;
    const done = await attack(it, 'names', `js ${script}`);
    expect(done.delta).toMatchObject({ ...changed, entryCount: 2 * names.length, changedFileCount: names.length });
    await expectHarmless(done);
    for (const line of it.log().trim().split('\n')) expect(() => JSON.parse(line) as unknown).not.toThrow();
  });

  test('that leaves 100,000 files is refused at the limit and removed', async () => {
    const done = await attack(it, 'many', "js for (let i = 0; i < 100000; i++) fs.closeSync(fs.openSync('f' + i, 'w'))");
    expect(done.delta).toMatchObject(tooMuch);
    await expectHarmless(done);
  });

  test('that builds a tree deeper than a path is refused and removed', async () => {
    const done = await attack(it, 'deep', "js for (let i = 0; i < 6000; i++) { fs.mkdirSync('d'); process.chdir('d'); }");
    expect(done.delta).toMatchObject(tooMuch);
    await expectHarmless(done);
  });

  test('that builds a tree as deep as a path allows is read to its bottom', async () => {
    const done = await attack(it, 'deepest', "js for (let i = 0; i < 2000; i++) { fs.mkdirSync('d'); process.chdir('d'); }");
    expect(done.delta).toMatchObject({ ...changed, entryCount: 2000 });
    await expectHarmless(done);
  });

  test('with a sparse file of 10 GiB is refused by its size, and not read', async () => {
    const done = await attack(it, 'sparse', 'sh echo > sparse', (workspace) => {
      truncateSync(path.join(workspace, 'sparse'), 10 * 1024 ** 3);
    });
    expect(done.delta).toMatchObject(tooMuch);
    await expectHarmless(done);
  });

  test('whose files grow through a descriptor of another user is read in bounded time', async () => {
    let writer: ChildProcess | undefined;
    const done = await attack(it, 'growing', 'sh echo > grows', (workspace) => {
      const fd = openSync(path.join(workspace, 'grows'), 'a');
      writer = spawn(process.execPath, ['-e', "for (let i = 0; i < 1e6; i++) fs.writeSync(1, 'x')"], {
        stdio: ['ignore', fd, 'ignore'],
        uid: bystanderUid,
        cwd: '/',
      });
      closeSync(fd);
    });
    writer?.kill('SIGKILL');
    expect(done.delta).toMatchObject({ ...changed, entryCount: 1, changedFileCount: 1 });
    await expectHarmless(done);
  });

  test('that takes all rights off its files and folders is read and removed', async () => {
    const script = 'mkdir -p a/b/c; echo > a/b/f; chmod 000 a/b/f a/b/c a/b a; chmod 000 . $HOME $TMPDIR $XDG_CACHE_HOME';
    const done = await attack(it, 'modes', `sh ${script}`);
    expect(done.delta).toMatchObject({ ...changed, entryCount: 4, changedFileCount: 1 });
    await expectHarmless(done);
  });

  test('that takes all rights off an empty workspace has changed nothing', async () => {
    const done = await attack(it, 'closed', 'sh chmod 000 .');
    expect(done.delta).toMatchObject({ state: 'no_change' });
    await expectHarmless(done);
  });

  test('whose workspace holds files and empty folders of another user loses them', async () => {
    const done = await attack(it, 'foreign', 'sh mkdir -m 1777 a', (workspace) => {
      mkdirSync(path.join(workspace, 'a/empty'), { mode: 0o700 });
      writeFileSync(path.join(workspace, 'a/file'), '', { mode: 0o600 });
      for (const name of ['a/empty', 'a/file']) chownSync(path.join(workspace, name), bystanderUid, bystanderUid);
    });
    expect(done.delta).toMatchObject({ status: 500, code: 'session_poisoned', message: 'the workspace cannot be read' });
    await expectHarmless(done);
  });

  test('that keeps descriptors and working folders open holds nothing back', async () => {
    const hold =
      "const f = fs.openSync('held', 'w'); fs.unlinkSync('held'); fs.mkdirSync('cwd'); process.chdir('cwd'); fs.rmdirSync('../cwd')";
    const script = `(exec "$0" -e "${hold}; setInterval(() => fs.writeSync(f, 'x'), 1)" >/dev/null 2>&1 &) ; sleep 1`;
    const done = await attack(it, 'held', `sh set -- ; ${script.replace('"$0"', process.execPath)}`);
    expect(done.delta).toMatchObject({ state: 'no_change' });
    await expectHarmless(done);
  });

  test('whose process has the name of another line in /proc is found, stopped and ended', async () => {
    const script = 'n=") R 1 1 1\nUid:\t0\t0\t0"; cp /bin/sleep "$TMPDIR/$n"; ("$TMPDIR/$n" 1000 >/dev/null 2>&1 &); sleep 0.3';
    const done = await attack(it, 'proc-names', `sh ${script}`, (_, uid) => {
      expect(processesOf({ uid }).length).toBeGreaterThan(1);
    });
    expect(done.delta).toMatchObject({ state: 'no_change' });
    await expectHarmless(done);
  });

  test('that links to folders of processes reaches nothing through the supervisor', async () => {
    const script = `ln -s /proc/${process.pid}/root a; ln -s /proc/${process.pid}/cwd b; ln -s /proc/self/fd c; ls a/ b/ >/dev/null; echo done`;
    const done = await attack(it, 'proc-links', `sh ${script}`);
    expect(done.delta).toMatchObject({ ...changed, entryCount: 3, symlinkEntryCount: 3 });
    await expectHarmless(done);
  });

  test('that leaves programs with setuid and setgid bits lends its user to nobody', async () => {
    const lender = await it.session('setuid');
    const program = `/tmp/lent-${it.latestUid()}`;
    const events = await it.run(lender, `sh cp $(readlink -f $(command -v id)) ${program}; chmod 6777 ${program}`);
    expect(lstatSync(program).mode & 0o6000).toBe(0o6000);
    const borrower = await attack(it, 'setuid-borrower', `sh ${program} -u; ${program} -g`);
    expect(borrower.said).toBe(`${borrower.uid}\n${20_000 + borrower.uid - it.firstUid}`);
    await expectHarmless(borrower);
    await finish(it, lender, events);
    expect(existsSync(program)).toBe(false);
  });

  test('that uses a reserved name anywhere is refused', async () => {
    const done = await attack(it, 'reserved', 'sh mkdir -p a/b/.orka-credentials');
    expect(done.delta).toMatchObject({ status: 422, code: 'session_poisoned' });
    await expectHarmless(done);
  });
});

suite('a folder that is not what was made', () => {
  test.each([
    ['a link to an empty folder', (workspace: string) => symlinkSync('/var/empty-folder', workspace)],
    ['a link to the folder of all sessions', (workspace: string) => symlinkSync('../..', workspace)],
    ['a link to a shared folder', (workspace: string) => symlinkSync('/tmp', workspace)],
    [
      'another folder',
      (workspace: string, uid: number) => {
        mkdirSync(workspace);
        chownSync(workspace, uid, uid);
      },
    ],
    ['a file', (workspace: string) => writeFileSync(workspace, '')],
  ])('poisons the session that has %s as its workspace, and nobody else', async (_, replace) => {
    const it = await scriptedSupervisor();
    try {
      const done = await attack(it, 'replaced', 'say x', (workspace, uid) => {
        renameSync(workspace, path.join(workspace, '../home/moved'));
        replace(workspace, uid);
      });
      expect(done.delta).toMatchObject({
        status: 500,
        code: 'session_poisoned',
        message: 'the workspace is not the folder that the session was made with',
      });
      expect(lstatSync(it.baseDir).mode & 0o7777).toBe(0o711);
      expect(lstatSync('/tmp').mode & 0o7777).toBe(0o1777);
      expect(it.log()).toContain('workspace not read');
    } finally {
      await it.close();
    }
  });

  test.each([
    [
      'an immutable file',
      (workspace: string) => {
        writeFileSync(path.join(workspace, 'x'), '');
        return spawnSync('/usr/bin/chattr', ['+i', path.join(workspace, 'x')]).status;
      },
      (workspace: string) => void spawnSync('/usr/bin/chattr', ['-i', path.join(workspace, 'x')]),
    ],
    [
      'a full folder of another user',
      (workspace: string, uid: number) => {
        mkdirSync(path.join(workspace, 'theirs'), { mode: 0o700 });
        writeFileSync(path.join(workspace, 'theirs/x'), '');
        chownSync(path.join(workspace, 'theirs'), uid + 50, uid + 50);
        return 0;
      },
      () => undefined,
    ],
  ])('that cannot be emptied is reported by the instance: %s', async (_, obstruct, clear) => {
    const it = await scriptedSupervisor();
    let workspace = '';
    try {
      const done = await attack(it, 'obstructed', 'say x', (at, uid) => {
        workspace = at;
        expect(obstruct(at, uid)).toBe(0);
      });
      expect(JSON.stringify(done.delta)).toMatch(/read_only_modified|the workspace cannot be read/);
      await eventually(() => it.log().includes('instance poisoned'));
      expect((await it.client.health()).status).toBe('unhealthy');
      expect(await it.status()).toMatchObject({ lifecycle: 'unhealthy', drain: { acceptingNewSessions: false } });
      expect(it.log()).toMatch(/session cannot be removed.*1 entries, E(PERM|NOTEMPTY)/);
      expect(existsSync(workspace)).toBe(true);
    } finally {
      clear(workspace);
      await it.close();
    }
  });
});

suite('a session whose processes resist being stopped', () => {
  let it: ScriptedSupervisor;
  beforeAll(async () => {
    it = await scriptedSupervisor();
  });
  afterAll(async () => {
    await it.close();
  });

  const compiler = ['/usr/bin/cc', '/usr/bin/gcc'].find((file) => existsSync(file));
  const withCompiler = compiler === undefined ? test.skip : test;
  function compiled(text: string): string {
    const folder = mkdtempSync(path.join(tmpdir(), 'program-'));
    chmodSync(folder, 0o755);
    const [source, file] = [path.join(folder, 'a.c'), path.join(folder, 'program')];
    writeFileSync(source, text);
    expect(spawnSync(compiler ?? '', ['-o', file, source]).status).toBe(0);
    chmodSync(file, 0o755);
    return file;
  }

  /** A program that vforks again and again; its child executes another one after so many microseconds. */
  const vforker = (microseconds: number) =>
    compiled(`#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  for (;;) {
    pid_t pid = vfork();
    if (!pid) { usleep(${microseconds}); execl("/bin/true", "true", (char *)0); _exit(1); }
    waitpid(pid, 0, 0);
  }
}
`);

  /** A parent waits for the child of its vfork. */
  const waits = (_: string, uid: number) => eventually(() => processesOf({ uid }).some(({ state }) => state === 'D'));

  withCompiler('is stopped once the child of a vfork, which takes three seconds, executes its program', async () => {
    const done = await attack(it, 'vfork', `program ${vforker(3_000_000)}`, waits);
    expect(done.delta).toMatchObject({ state: 'no_change' });
    expect((await it.status()).lifecycle).toBe('ready');
  });

  test('is stopped in the middle of a shell loop that starts programs', async () => {
    const done = await attack(it, 'loop', 'sh (while :; do /bin/true; done) >/dev/null 2>&1 & sleep 0.2');
    expect(done.delta).toMatchObject({ state: 'no_change' });
    expect((await it.status()).lifecycle).toBe('ready');
  });

  withCompiler('and cannot be stopped is poisoned and ended, and costs nobody else', async () => {
    const other = await it.session('beside-unstoppable');
    const done = await attack(it, 'unstoppable', `program ${vforker(900_000_000)}`, waits);
    expect(done.delta).toMatchObject({
      status: 500,
      code: 'session_poisoned',
      message: 'processes of the session cannot be stopped',
    });
    await gone(it, done.task);
    expect(processesOf({ uid: done.uid })).toEqual([]);
    expect((await it.status()).lifecycle).toBe('ready');
    await finish(it, other, await it.run(other, 'say still here'));
  });

  withCompiler('and is continued by a descriptor from outside is poisoned and ended, and costs nobody else', async () => {
    const pipe = path.join(mkdtempSync(path.join(tmpdir(), 'pipe-')), 'pipe');
    chmodSync(path.dirname(pipe), 0o755);
    expect(spawnSync('mkfifo', ['-m', '0666', pipe]).status).toBe(0);
    const file = compiled(`#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
static int fd;
static void go_on(int signal) { char all[4096]; (void)signal; while (read(fd, all, sizeof all) > 0); }
int main(void) {
  fd = open("${pipe}", O_RDWR | O_NONBLOCK);
  fcntl(fd, F_SETOWN, getpid());
  fcntl(fd, F_SETSIG, SIGCONT);
  fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
  signal(SIGCONT, go_on);
  for (;;) pause();
}
`);
    const writer = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
    const writes = setInterval(() => writeSync(writer, '.'), 2);
    try {
      const done = await attack(it, 'continued', `program ${file}`, (_, uid) =>
        eventually(() => processesOf({ uid }).some(({ pid }) => catchesSigcont(pid))),
      );
      expect(done.delta).toMatchObject({
        status: 500,
        code: 'session_poisoned',
        message: 'processes of the session cannot be stopped',
      });
      await gone(it, done.task);
      expect(processesOf({ uid: done.uid })).toEqual([]);
      expect((await it.status()).lifecycle).toBe('ready');
    } finally {
      clearInterval(writes);
      closeSync(writer);
    }
  });

  test('is seen to have run since it was stopped', async () => {
    const uid = freshUsers();
    const child = spawn('sleep', ['1000'], { uid, gid: uid, cwd: '/', stdio: 'ignore' });
    try {
      await eventually(() => processesOf({ uid }).length === 1);
      expect(await freeze({ uid }, 20_000)).toBe(true);
      const standstill = standstillOf({ uid });
      expect(standstillOf({ uid })).toBe(standstill);
      child.kill('SIGCONT');
      await eventually(() => standstillOf({ uid }) !== standstill);
      expect(await freeze({ uid }, 20_000)).toBe(true);
      expect(standstillOf({ uid })).not.toBe(standstill);
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('is stopped also when a busy machine takes long for the signal, and is not when no signal comes through in time', async () => {
    const uid = freshUsers();
    const child = spawn('sleep', ['1000'], { uid, gid: uid, cwd: '/', stdio: 'ignore' });
    const realNow = Date.now;
    let passed = 0;
    const now = jest.spyOn(Date, 'now').mockImplementation(() => realNow() + passed);
    /** Sends the signal, or fails to, as if that took so long. */
    const taking = (milliseconds: number, sent: boolean) => ({
      mark: undefined,
      isEnded: false,
      signal: () => {
        passed += milliseconds;
        return Promise.resolve(sent);
      },
    });
    try {
      await eventually(() => processesOf({ uid }).length === 1);
      expect(await freeze({ uid }, 25_000, taking(12_000, true))).toBe(true);
      expect(await freeze({ uid }, 25_000, taking(12_000, false))).toBe(false);
    } finally {
      now.mockRestore();
      child.kill('SIGKILL');
    }
  });

  test('is validated once for a request that is repeated meanwhile', async () => {
    const task = await it.session('repeated');
    const end = (await it.run(task, 'say done')).at(-1)!;
    const operation = task.operation('workspace-delta', it.fence, { prompt: true });
    const asked = deltaOrder(task, end, { maxBytes: 1_000_000, maxEntries: 1000 });
    const [first, second] = await Promise.all(
      [1, 2].map(() => it.client.workspaceDelta(operation, task.runtimeSessionID, asked)),
    );
    expect([first, second].map((answer) => answer?.classification.class).sort()).toEqual(['duplicate', 'fresh']);
    expect(second?.delta).toEqual(first?.delta);
  });

  /** The last thing that the program does before it waits. */
  function catchesSigcont(pid: number): boolean {
    const status = existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, 'utf8') : '';
    const caught = BigInt(`0x${/^SigCgt:\s*(\w+)$/m.exec(status)?.[1] ?? '0'}`);
    return ((caught >> 17n) & 1n) === 1n;
  }

  /** A user whose one process forks and ends, again and again, for a minute at most; its parent waits for all of them, as an init does. */
  function startChain(each = ''): { readonly uid: number; readonly over: () => boolean } {
    const uid = freshUsers();
    const file = compiled(`#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  time_t end = time(0) + 60;
  pid_t reaper = getpid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (fork() == 0) {
    if (setgid(${uid}) || setuid(${uid})) _exit(1);
    while (time(0) < end) {
      if (fork() > 0) _exit(0);
      ${each}
    }
    _exit(0);
  }
  while (wait(0) > 0);
}
`);
    const reaper = spawn(file, { stdio: 'ignore' });
    let over = false;
    reaper.once('exit', () => {
      over = true;
    });
    return { uid, over: () => over };
  }

  withCompiler('and forks faster than /proc can be read is ended before that is said to be proven', async () => {
    const { uid, over } = startChain();
    expect(await killAll({ uid })).toBe(true);
    await eventually(over);
  });

  withCompiler('and forks faster than /proc can be read is stopped before that is said', async () => {
    const { uid, over } = startChain();
    expect(await freeze({ uid }, 20_000)).toBe(true);
    expect(new Set(processesOf({ uid }).map(({ state }) => state))).toEqual(new Set(['T']));
    expect(over()).toBe(false);
    expect(await killAll({ uid })).toBe(true);
    await eventually(over);
  });

  /** The parent is gone first, so that none of these processes stays. */
  const attacks = (signal: string) => `while (getppid() != reaper); for (int i = 0; i < 20; i++) kill(-1, ${signal});`;

  if (compiler !== undefined)
    test.each(['SIGSTOP', 'SIGKILL'])('and sends %s to all others of its user is stopped, and ended', async (signal) => {
      const { uid, over } = startChain(attacks(signal));
      await eventually(() => processesOf({ uid }).length > 0);
      expect(await freeze({ uid }, 20_000)).toBe(true);
      expect(new Set(processesOf({ uid }).map(({ state }) => state))).toEqual(new Set(['T']));
      thaw({ uid });
      expect(await killAll({ uid })).toBe(true);
      await eventually(over);
    });

  withCompiler('and cannot be stopped is ended at once when nobody waits for its delta any more', async () => {
    const task = await it.session('given-up');
    const uid = it.latestUid();
    const end = (await it.run(task, `program ${vforker(900_000_000)}`)).at(-1)!;
    await waits('', uid);
    const asked = deltaOrder(task, end, limits);
    const ask = (name: string) =>
      refusal(it.client.workspaceDelta(task.operation(name, it.fence, { prompt: true }), task.runtimeSessionID, asked));
    const delta = ask('workspace-delta');
    await eventually(() => processesOf({ uid }).some(({ state }) => state === 'T'));
    expect(await ask('another-delta')).toMatchObject({ status: 409, code: 'already_accepted' });
    const lost = { reason: 'stream_disconnected', settlementDeadline: instant(Date.now() + 20_000) } as const;
    await it.client.cancel(task.operation('cancel-lost', it.fence, { prompt: true }), task.runtimeSessionID, lost);
    // Agents have kernel sessions of their own; a child of the supervisor, which removes the files, has that of the supervisor.
    const kernelSession = (pid: number) => afterName(procFile(pid, 'stat'))[3];
    expect(processesOf({ uid }).filter(({ pid }) => kernelSession(pid) !== kernelSession(process.pid))).toEqual([]);
    expect(await delta).toMatchObject({
      status: 409,
      message: expect.stringMatching(/^the session is \w+ and awaits no delta$/),
    });
    await gone(it, task);
    expect((await it.status()).lifecycle).toBe('ready');
  });

  test('a session whose processes are ended again while its files are removed is removed', async () => {
    const uid = freshUsers();
    const base = mkdtempSync(path.join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'ended-twice-'));
    chmodSync(base, 0o711);
    const folder = createSessionFolder(base, 'twice', 1);
    for (let i = 0; i < 20_000; i++) writeFileSync(path.join(folder.workspace, String(i)), '');
    giveAway(folder.root, { uid, gid: uid });
    const session = { owner: { uid }, folder } as unknown as Session;
    const removed = closeSession(session);
    while (existsSync(folder.root)) {
      expect(await endProcesses(session)).toBe(true);
      await pause(5);
    }
    expect(await removed).toBe(true);
    rmSync(base, { recursive: true });
  });

  test('is not stopped before each of its threads is', async () => {
    const uid = freshUsers();
    const child = spawn(process.execPath, ['-e', "new (require('worker_threads').Worker)('for (;;);', { eval: true })"], {
      uid,
      gid: uid,
      cwd: '/',
      stdio: 'ignore',
    });
    const threads = () =>
      readdirSync(`/proc/${child.pid}/task`).map(
        (thread) => readFileSync(`/proc/${child.pid}/task/${thread}/stat`, 'utf8').split(') ')[1]?.[0],
      );
    // The state of the process is that of its first thread, which soon sleeps; the worker never does.
    const runs = () => processesOf({ uid }).length > 0 && threads().includes('R');
    try {
      await eventually(runs);
      expect(await freeze({ uid }, 20_000)).toBe(true);
      expect(new Set(threads())).toEqual(new Set(['T']));
      thaw({ uid });
      await eventually(runs);
    } finally {
      child.kill('SIGKILL');
    }
  });
});

suite('a supervisor with the rights that it has in a Pod', () => {
  test('reads and removes what a session closed to everybody, and follows nothing', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'rights-'));
    chmodSync(folder, 0o755);
    const sessions = path.join(folder, 'sessions');
    mkdirSync(sessions);
    const real = await startRealSupervisor(codexAgent(scriptedModules(folder)), { sessions });
    try {
      await real.client.bootstrap(real.delivery);
      const { runtimeProfileDigest, limits: most } = await eventuallyAnswers(() => real.client.capabilities());
      const { fence } = await real.client.status({ runtimeProfileDigest });
      const task = taskOrders('closed', real.runtime);
      await real.client.createSession(task.operation('create-session', fence), task.session);
      const script =
        'mv ../workspace ../x; mkdir -p a/b $HOME/c; ln -s / a/l; echo > a/b/f; chmod 000 a/b/f a/b a . $HOME/c $HOME';
      const events = await runPrompt(real.client, fence, task, `sh ${script}`);
      const operation = task.operation('workspace-delta', fence, { prompt: true });
      const order = deltaOrder(task, events.at(-1)!, { maxBytes: most.maxWorkspaceDeltaBytes, maxEntries: 100_000 });
      const { delta } = await real.client.workspaceDelta(operation, task.runtimeSessionID, order);
      expect(delta).toMatchObject({ ...changed, entryCount: 4, changedFileCount: 1, symlinkEntryCount: 1 });
      await eventually(() => readdirSync(sessions).every((name) => !name.startsWith('session-')));
      expect(await real.client.status({ runtimeProfileDigest })).toMatchObject({ lifecycle: 'ready', sessions: [] });
    } finally {
      await real.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

suite('work as the user of a session', () => {
  let folder: string;
  let identity: { readonly uid: number; readonly gid: number };
  const order = { excluded: [], reserved: [], maxEntries: 1000, maxBytes: 1000 };
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'hostile-'));
    chmodSync(folder, 0o711);
    const uid = freshUsers();
    identity = { uid, gid: uid };
  });
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  /** A folder of the session, with a folder `a` in it. */
  function made(name: string): string {
    const at = path.join(folder, name);
    for (const one of [at, path.join(at, 'a')]) {
      mkdirSync(one);
      chownSync(one, identity.uid, identity.gid);
    }
    return at;
  }

  test('stays inside while another process swaps folders for links', async () => {
    const at = made('swapped');
    const script = `process.chdir(${JSON.stringify(at)}); fs.symlinkSync('/usr', 'l'); console.log('swapping');
      for (;;) { fs.renameSync('a', 'b'); fs.renameSync('l', 'a'); fs.renameSync('a', 'l'); fs.renameSync('b', 'a'); }`;
    const swapper = spawn(process.execPath, ['-e', script], { ...identity, stdio: ['ignore', 'pipe', 'ignore'] });
    try {
      await new Promise((resolve) => swapper.stdout.once('data', resolve));
      for (let i = 0; i < 10; i++) {
        const found = await scanAs(identity, { ...order, folder: at }).catch((error: unknown) => error);
        // Nothing below /usr is ever seen: at most both entries under both of their names.
        if (found instanceof Error)
          expect(found).toMatchObject({ code: 'failed', finding: { found: expect.stringMatching(/^E/) } });
        else expect((found as { entries: number }).entries).toBeLessThanOrEqual(4);
      }
    } finally {
      swapper.kill('SIGKILL');
    }
  });

  test('ends when its time is over', async () => {
    const scan = scanAs(identity, { ...order, folder: made('late') }, 1);
    await expect(scan).rejects.toMatchObject({ code: 'time' });
    await eventually(() => processesOf(identity).length === 0);
  });

  test('is done by one child for all orders, which goes on after it was stopped, and by another one after it was ended', async () => {
    const user = new SessionUser(identity);
    const scan = async () => (await user.scan({ ...order, folder: path.join(folder, 'kept') }, limit(15_000))).entries;
    made('kept');
    try {
      expect(await user.signal('SIGSTOP', limit(15_000))).toBe(true);
      const first = user.mark?.pid ?? 0;
      expect([await scan(), user.mark?.pid]).toEqual([1, first]);
      expect(processesOf(identity).map(({ pid }) => pid)).toEqual([first]);
      expect(processesOf(identity, user)).toEqual([]);
      const other = { mark: { pid: first, started: '1' }, isEnded: false, signal: () => Promise.resolve(false) };
      expect(processesOf(identity, other).map(({ pid }) => pid)).toEqual([first]);
      process.kill(first, 'SIGSTOP');
      expect([await scan(), user.mark?.pid]).toEqual([1, first]);
      process.kill(user.mark?.pid ?? 0, 'SIGKILL');
      await eventually(() => user.mark === undefined);
      expect(await scan()).toBe(1);
      expect(user.mark?.pid).not.toBe(first);
      await user.end();
      expect([await user.signal('SIGSTOP', limit(15_000)), user.mark]).toEqual([false, undefined]);
    } finally {
      await user.end();
    }
    await eventually(() => processesOf(identity).length === 0);
  });

  test('reads no folder through a link, and enters no folder of another user', async () => {
    const at = made('links');
    symlinkSync(at, path.join(folder, 'link'));
    await expect(scanAs(identity, { ...order, folder: path.join(folder, 'link') })).rejects.toMatchObject({ code: 'failed' });
    mkdirSync(path.join(at, 'a/private'), { mode: 0o700 });
    const scan = scanAs(identity, { ...order, folder: at });
    await expect(scan).rejects.toMatchObject({ code: 'failed', finding: { found: 'EACCES' } });
  });

  test('cannot be opened, traced or debugged by other processes of that user', async () => {
    const at = made('watched');
    const script = `process.chdir(${JSON.stringify(at)}); for (let i = 0; i < 20000; i++) fs.mkdirSync('d' + i);
      process.on('message', () => process.exit()); const tried = new Set();
      setInterval(() => {
        for (const pid of fs.readdirSync('/proc').filter(Number)) {
          let status = ''; if (Number(pid) !== process.pid) try { status = fs.readFileSync('/proc/' + pid + '/status', 'utf8'); } catch {}
          if (!status.includes('Uid:\\t' + process.getuid() + '\\t')) continue;
          if (!tried.size) try { process.kill(pid, 'SIGUSR1'); } catch {}
          for (const [file, how] of [['mem', 'r+'], ['fd/1', 'w'], ['environ', 'r'], ['cwd', 'r']])
            try { fs.openSync('/proc/' + pid + '/' + file, how); tried.add(file + ' ok'); } catch (e) { tried.add(file + ' ' + e.code); }
          const socket = require('net').connect(9229, '127.0.0.1', () => process.send('debugger'));
          socket.on('error', () => {});
        }
        if (tried.size > 0) process.send([...tried].join());
      }, 1); process.send('ready');`;
    const watcher = spawn(process.execPath, ['-e', script], { ...identity, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const seen = new Set<unknown>();
    try {
      watcher.on('message', (message) => seen.add(message));
      await eventually(() => seen.has('ready'));
      const found = await scanAs(identity, { ...order, folder: at, maxEntries: 100_000 }, limit(15_000));
      expect(found.entries).toBe(20_001);
      await eventually(() => seen.size > 1);
      expect([...seen]).toEqual(['ready', 'mem EACCES,fd/1 EACCES,environ EACCES,cwd EACCES']);
    } finally {
      watcher.kill('SIGKILL');
    }
  });

  test('removes what is its own from a shared folder, and nothing else', async () => {
    const shared = path.join(folder, 'shared');
    mkdirSync(shared);
    chmodSync(shared, 0o1777);
    for (const [name, owner] of [
      ['mine', identity.uid],
      ['theirs', identity.uid + 1],
    ] as const) {
      mkdirSync(path.join(shared, name), { mode: 0o777 });
      writeFileSync(path.join(shared, name, 'file'), '');
      for (const one of [name, `${name}/file`]) chownSync(path.join(shared, one), owner, owner);
    }
    expect(await removeAs(identity, { folders: [], shared: [shared] })).toEqual({ left: 0, code: '' });
    expect(readdirSync(shared)).toEqual(['theirs']);
    expect(readdirSync(path.join(shared, 'theirs'))).toEqual(['file']);
  });

  test.each([
    ['that was never given away', () => undefined],
    ['of which a part was given away', (root: string) => chownSync(path.join(root, 'home'), identity.uid, identity.gid)],
    ['that was given away', (root: string) => giveAway(root, identity)],
    [
      'of which a part was removed',
      (root: string) => {
        giveAway(root, identity);
        rmSync(path.join(root, 'home'), { recursive: true });
      },
    ],
  ])('removes a session folder %s', async (_, prepare) => {
    const { root, home } = createSessionFolder(folder, 'uid', 1);
    writeFileSync(path.join(home, 'file'), '');
    prepare(root);
    await removeSessionFolder(root);
    expect(existsSync(root)).toBe(false);
  });

  test('shared folders of a volume become sticky, and the unused home is closed', () => {
    const [shared, closed] = [path.join(folder, 'volume-tmp'), path.join(folder, 'volume-home')];
    for (const one of [shared, closed]) {
      mkdirSync(one);
      chmodSync(one, 0o777);
    }
    protectSharedFolders([shared, path.join(folder, 'absent')], [closed]);
    expect([shared, closed].map((one) => lstatSync(one).mode & 0o7777)).toEqual([0o1777, 0o755]);
  });
});
