/** Sessions that begin with a repository: what arrives is exactly the archive, and what an agent changes is found. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { WorkspaceDelta } from '../../src/harness/deltas.js';
import { sha256Hex } from '../../src/lib/sha256.js';
import { processesOf } from '../../src/supervisor/processes.js';
import { tree } from '../support/archive.js';
import type { ArchiveEntry } from '../support/archive.js';
import { artifactServer, headOf, testCapability } from '../support/artifact-server.js';
import type { ArtifactServer } from '../support/artifact-server.js';
import { eventually, eventuallyAnswers } from '../support/eventually.js';
import { deltaOrder, runPrompt } from '../support/harness-orders.js';
import type { TaskOrders } from '../support/harness-orders.js';
import { codexAgent, scriptedModules, startRealSupervisor } from '../support/real-supervisor.js';
import { gone, refusal, textOf } from '../support/supervisor-calls.js';
import { scriptedSupervisor, switchesUsers } from '../support/supervisor.js';
import type { ScriptedSupervisor } from '../support/supervisor.js';

// Only root can give each session a user of its own.
const suite = switchesUsers ? describe : describe.skip;

const small: readonly ArchiveEntry[] = [
  { path: 'README.md', content: 'hello\n' },
  { path: 'bin/run', content: '#!/bin/sh\n', mode: 0o755 },
  { path: 'docs/link', target: '../README.md' },
  { path: 'src/main.go', content: 'package main\n' },
];

suite('a session with a repository', () => {
  let it: ScriptedSupervisor;
  let server: ArtifactServer;
  beforeAll(async () => {
    server = await artifactServer();
    it = await scriptedSupervisor({ env: { ORKA_ACP_ARTIFACT_API_URL: server.url } });
  });
  afterAll(async () => {
    await it.close();
    await server.close();
  });

  const create = (task: TaskOrders) =>
    it.client.createSession(task.operation('create-session', it.fence), task.session, { timeout: 90_000 });

  async function session(name: string, entries: readonly ArchiveEntry[], more: { readonly relativeRoot?: string } = {}) {
    const task = server.task(name, it.runtime, tree(entries), more);
    await create(task);
    return task;
  }

  function folderOf(task: TaskOrders): string {
    const begin = `session-${sha256Hex(`${task.sessionUID}:1`)}`;
    return path.join(it.baseDir, it.folders().find((name) => name.startsWith(begin)) ?? 'no folder');
  }

  /** Runs a script as the prompt of a session, and asks for the delta. */
  async function deltaAfter(task: TaskOrders, order: string): Promise<{ readonly said: string; readonly delta: unknown }> {
    const events = await it.run(task, order);
    const operation = task.operation('workspace-delta', it.fence, { prompt: true });
    const asked = it.client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, events.at(-1)!), {
      timeout: 30_000,
    });
    const delta = await asked.then(
      (answer): WorkspaceDelta => answer.delta,
      () => refusal(asked),
    );
    return { said: textOf(events) ?? '', delta };
  }

  async function remove(task: TaskOrders): Promise<void> {
    const left = (await it.status()).sessions?.find(({ runtimeSessionID }) => runtimeSessionID === task.runtimeSessionID);
    if (left?.state === 'idle') await it.client.deleteSession(task.operation('ds', it.fence), task.runtimeSessionID, 'test');
    await gone(it, task, 60_000);
  }

  test('has its files, and works with Git in them', async () => {
    const task = await session('whole', small);
    const folder = folderOf(task);
    const workspace = path.join(folder, 'workspace');
    expect(readdirSync(workspace).sort()).toEqual(['.git', 'README.md', 'bin', 'docs', 'src']);
    expect(lstatSync(path.join(workspace, 'bin/run'))).toMatchObject({ uid: it.latestUid(), nlink: 1 });
    expect(lstatSync(path.join(workspace, 'bin/run')).mode & 0o7777).toBe(0o755);
    expect(lstatSync(path.join(workspace, 'README.md')).mode & 0o7777).toBe(0o644);
    expect(lstatSync(path.join(folder, 'workspace-record'))).toMatchObject({ uid: 0 });
    expect(lstatSync(path.join(folder, 'workspace-record')).mode & 0o7777).toBe(0o600);
    const script =
      'git status --short; git log --format=%an:%ae:%aI:%s; git diff --stat; git ls-files; cat docs/link; git remote; ls .git/hooks';
    const { said, delta } = await deltaAfter(task, `sh ${script} 2>/dev/null`);
    expect(said.trim().split('\n')).toEqual([
      'Orka:workspace@orka.ai:2000-01-01T00:00:00+00:00:Workspace at 03a015a98bd10a257ef2212c9c776c5e621dabe8',
      ...['README.md', 'bin/run', 'docs/link', 'src/main.go', 'hello'],
    ]);
    expect(delta).toMatchObject({ state: 'no_change', entryCount: 0, publicationSafe: true, noFollowVerified: true });
    expect(delta).not.toHaveProperty('changedPaths');
    expect((await it.status()).sessions?.find(({ runtimeSessionID }) => runtimeSessionID === task.runtimeSessionID)?.state).toBe(
      'idle',
    );
    await remove(task);
    expect(existsSync(folder)).toBe(false);
    expect(it.log()).not.toContain(testCapability);
  });

  test('may have paths of the greatest length, which Git cannot take', async () => {
    const longest = `${'d'.repeat(200)}/`.repeat(20);
    const task = await session('longest', [...small, { path: `${longest}${'f'.repeat(4096 - longest.length)}`, content: 'x' }]);
    const { delta } = await deltaAfter(task, 'sh true');
    expect(delta).toMatchObject({ state: 'no_change' });
    await remove(task);
  });

  test('asks for its artifact once, by capability', async () => {
    const before = server.requests.length;
    const task = await session('asks', small);
    expect(server.requests.slice(before).map(({ method, headers }) => [method, headers['x-orka-artifact-capability']])).toEqual([
      ['GET', testCapability],
    ]);
    expect(server.requests.at(-1)?.headers).toMatchObject({
      'x-orka-artifact-request-digest': `sha256:${'8'.repeat(64)}`,
      'x-orka-artifact-content-length': String(tree(small).length),
      'x-orka-artifact-media-type': 'application/vnd.orka.workspace.v1+tar',
    });
    await remove(task);
  });

  test('whose agent changes files is told which', async () => {
    const task = await session('changes', small);
    const script =
      'echo bye > README.md; rm src/main.go; mkdir new; echo > "new/a b"; git add -A; git commit -qm x 2>/dev/null; ln -sfn main.go src/l';
    const { delta } = await deltaAfter(task, `sh ${script}`);
    expect(delta).toMatchObject({
      state: 'read_only_modified',
      entryCount: 4,
      changedFileCount: 2,
      deletedEntryCount: 1,
      symlinkEntryCount: 1,
      publicationSafe: false,
      changedPaths: ['README.md', 'new', 'new/a b', 'src/l', 'src/main.go'],
    });
    await remove(task);
  });

  test('whose agent undoes what it changed is unchanged', async () => {
    const task = await session('undone', small);
    const script =
      'cp -p README.md "$TMPDIR/x"; echo bye > README.md; rm -r src; git checkout -q -- . ; chmod 600 README.md; chmod 0 bin/run; chmod 711 bin/run; touch src; cat src/main.go';
    const { said, delta } = await deltaAfter(task, `sh ${script}`);
    expect(said).toContain('package main');
    expect(delta).toMatchObject({ state: 'no_change' });
    await remove(task);
  });

  test('is ended when its agent changes a protected entry, and told which', async () => {
    const task = await session('protected', [...small, { path: '.claude/settings.json', content: '{}' }]);
    const { delta } = await deltaAfter(task, 'sh echo > .claude/settings.json');
    const message = 'a protected entry was changed: .claude/settings.json';
    expect(delta).toMatchObject({ status: 422, code: 'session_poisoned', message });
    await remove(task);
  });

  test('of one folder of the repository has only that', async () => {
    const entries = [
      ...small,
      { path: 'app/a/x', content: 'x' },
      { path: 'app/up', target: 'a/x' },
      { path: 'app/README.md', content: 'app\n' },
    ];
    const task = await session('root', entries, { relativeRoot: 'app' });
    const { said, delta } = await deltaAfter(task, 'sh ls; cat up README.md; git ls-files; echo x > new');
    expect(said.trim().split('\n')).toEqual(['README.md', 'a', 'up', 'xapp', 'README.md', 'a/x', 'up']);
    expect(delta).toMatchObject({ state: 'read_only_modified', relativeRoot: 'app', changedPaths: ['new'] });
    await remove(task);
  });

  test.each([
    ['is missing', 'nothing-there', 'the repository has nothing where its root should be: nothing-there'],
    ['is a file', 'README.md', 'the repository has a file where its root should be: README.md'],
    ['is a link', 'docs/to-src', 'the repository has a link where its root should be: docs/to-src'],
    ['is behind a link', 'docs/to-src/x', 'the repository has nothing where its root should be: docs/to-src/x'],
    ['has a link that leaves it', 'docs', 'the link leads out of the repository, or to its root: link'],
  ])('is not made of a folder that %s', async (name, relativeRoot, message) => {
    const entries = [...small, { path: 'docs/to-src', target: '../src' }];
    const task = server.task(name.replaceAll(' ', '-'), it.runtime, tree(relativeRoot === 'docs' ? small : entries), {
      relativeRoot,
    });
    expect(await refusal(create(task))).toMatchObject({
      status: 422,
      code: 'session_poisoned',
      message: expect.stringContaining(message),
    });
    expect((await it.status()).lifecycle).toBe('ready');
  });

  const changedHead = (change: Record<string, string>) => (bytes: Buffer, _: IncomingMessage, response: ServerResponse) =>
    response.writeHead(200, { ...headOf(bytes), ...change }).end(bytes);
  type Fault = (bytes: Buffer, request: IncomingMessage, response: ServerResponse) => unknown;
  const faults: readonly (readonly [string, Fault, string])[] = [
    [
      'has other bytes',
      (bytes, _, response) => response.writeHead(200, headOf(bytes)).end(otherBytes(bytes)),
      'does not have the digest',
    ],
    ['breaks off', (bytes, _, response) => breakOff(bytes, response), 'the transfer broke off'],
    ['has another type', changedHead({ 'content-type': 'text/html' }), 'the answer has another content-type than the artifact'],
    ['says another digest', changedHead({ 'x-orka-artifact-digest': 'x' }), 'the answer has another x-orka-artifact-digest'],
    ['is compressed', changedHead({ 'content-encoding': 'gzip' }), 'the answer has another content-encoding'],
    ['leads elsewhere', (_, { url }, response) => response.writeHead(302, { location: url }).end(), 'answers with status 302'],
    ['is a refusal', (_, __, response) => response.writeHead(403).end(testCapability), 'answers with status 403'],
    ['is an error', (_, __, response) => response.writeHead(503).end('<html>'), 'answers with status 503'],
    ['does not come', (_, __, response) => response.destroy(), 'the artifact API does not answer'],
  ];

  test.each(faults)('is not made, may be tried again, and leaves nothing, when the answer %s', async (name, fault, says) => {
    const bytes = tree(small);
    const [folders, asked] = [it.folders(), server.requests.length];
    const task = server.task(name.replaceAll(' ', '-'), it.runtime, bytes);
    server.answer = (request, response) => void fault(bytes, request, response);
    const created = create(task);
    const refused = await refusal(created).finally(() => (server.answer = undefined));
    expect(refused).toMatchObject({
      status: 500,
      code: 'session_poisoned',
      message: expect.stringContaining(says),
    });
    await expect(created).rejects.toMatchObject({ response: { retryable: true } });
    expect(JSON.stringify(refused)).not.toContain(testCapability);
    expect(server.requests.length).toBe(asked + 1);
    expect(it.folders()).toEqual(folders);
    expect(processesOf({ uid: it.latestUid() })).toEqual([]);
    await remove(await session(`after-${name.replaceAll(' ', '-')}`, small));
    expect((await it.status()).lifecycle).toBe('ready');
  });

  test.each([
    ['no authorization', { workspaceArtifactAuthorization: undefined }, {}, 'workspaceArtifactAuthorization is missing'],
    ['another type', {}, { mediaType: 'application/x-tar' }, 'the artifact is not of the type'],
    ['too many bytes', {}, { sizeBytes: 104_857_601 }, 'the artifact has 104857601 bytes, allowed are 1 to 104857600'],
    ['another id', {}, { artifactID: 'sha256-x' }, 'the artifactID is not that of the digest'],
  ])('is refused for an order with %s', async (name, change, artifact, message) => {
    const task = server.task(name.replaceAll(' ', '-'), it.runtime, tree(small), { artifact });
    const changed = { ...task, session: { ...task.session, ...change } as TaskOrders['session'] };
    expect(await refusal(create(changed))).toMatchObject({ status: 400, message: expect.stringContaining(message) });
  });

  test('is refused for a root that leads out', async () => {
    const task = server.task('root-out', it.runtime, tree(small), { relativeRoot: '../x' });
    expect(await refusal(create(task))).toMatchObject({ status: 400, message: expect.stringContaining('relativeRoot: ') });
  });

  test('never has Git run by the supervisor, whatever its agent writes to .git', async () => {
    const task = await session('git-config', small);
    const marker = `/tmp/ran-${it.latestUid()}`;
    const program = `#!/bin/sh\nid -u >> ${marker}\n`;
    const script = [
      `printf '${program}' > "$TMPDIR/p"`,
      'chmod +x "$TMPDIR/p"',
      'for key in core.fsmonitor core.sshCommand core.editor core.pager diff.external alias.status alias.add; do git config $key "$TMPDIR/p"; done',
      'git config core.hooksPath "$TMPDIR"; cp "$TMPDIR/p" "$TMPDIR/post-index-change"',
      'git config filter.x.clean "$TMPDIR/p"; echo "* filter=x" > .git/info/attributes',
      `rm -f ${marker}; echo done`,
    ];
    const { said, delta } = await deltaAfter(task, `sh ${script.join('; ')}`);
    expect(said.trim()).toBe('done');
    expect(delta).toMatchObject({ state: 'no_change' });
    expect(existsSync(marker)).toBe(false);
    await remove(task);
    expect(existsSync(marker)).toBe(false);
  });

  test('whose agent puts a link to /etc in the place of .git is unchanged, and removed', async () => {
    const before = readdirSync('/etc').length;
    const task = await session('git-link', small);
    const { delta } = await deltaAfter(task, 'sh rm -rf .git; ln -s /etc .git');
    expect(delta).toMatchObject({ state: 'no_change' });
    await remove(task);
    expect(readdirSync('/etc').length).toBe(before);
  });

  test('has every file in its Git, whatever its attributes and ignored names are', async () => {
    const entries: readonly ArchiveEntry[] = [
      {
        path: '.gitattributes',
        content: '* text eol=crlf filter=x ident working-tree-encoding=UTF-16\n*.bin export-ignore -diff\n',
      },
      { path: '.gitignore', content: '*\n' },
      { path: 'a.txt', content: 'a\r\nb\n$Id$\n' },
      { path: 'git~1', content: 'x' },
      { path: 'x.bin', content: Buffer.from([0, 1, 2]) },
    ];
    const task = await session('attributes', entries);
    const { said, delta } = await deltaAfter(task, 'sh git ls-files; git status --short; git cat-file -s HEAD:a.txt');
    expect(said.trim().split('\n')).toEqual(['.gitattributes', '.gitignore', 'a.txt', 'git~1', 'x.bin', '10']);
    expect(delta).toMatchObject({ state: 'no_change' });
    await remove(task);
  });
});

suite('a supervisor with the rights that it has in a Pod', () => {
  test('fills a workspace, finds a change in what its agent closed, and removes all of it', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'rights-'));
    chmodSync(folder, 0o755);
    const sessions = path.join(folder, 'sessions');
    mkdirSync(sessions);
    const server = await artifactServer();
    const env = { ORKA_ACP_ARTIFACT_API_URL: server.url };
    const real = await startRealSupervisor(codexAgent(scriptedModules(folder)), { sessions, env });
    try {
      await real.client.bootstrap(real.delivery);
      const { runtimeProfileDigest } = await eventuallyAnswers(() => real.client.capabilities());
      const { fence } = await real.client.status({ runtimeProfileDigest });
      const task = server.task('closed', real.runtime, tree(small));
      await real.client.createSession(task.operation('create-session', fence), task.session, { timeout: 60_000 });
      const script = 'git log --format=%s; echo x >> src/main.go; chmod 000 src/main.go src bin/run . .git';
      const events = await runPrompt(real.client, fence, task, `sh ${script}`);
      expect(textOf(events)).toContain('Workspace at 03a015a9');
      const operation = task.operation('workspace-delta', fence, { prompt: true });
      const { delta } = await real.client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, events.at(-1)!));
      expect(delta).toMatchObject({ state: 'read_only_modified', changedPaths: ['bin/run', 'src/main.go'] });
      await eventually(() => readdirSync(sessions).every((name) => !name.startsWith('session-')));
      expect(await real.client.status({ runtimeProfileDigest })).toMatchObject({ lifecycle: 'ready', sessions: [] });
    } finally {
      await real.close();
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

suite('a supervisor that ends', () => {
  test('while an archive arrives slowly leaves nothing, and does not wait for it', async () => {
    const server = await artifactServer();
    const it = await scriptedSupervisor({ env: { ORKA_ACP_ARTIFACT_API_URL: server.url } });
    const bytes = tree([...small, { path: 'z', content: 'x'.repeat(100_000) }]);
    const task = server.task('slow', it.runtime, bytes);
    server.answer = (_, response) => {
      response.writeHead(200, headOf(bytes)).write(bytes.subarray(0, 4000));
    };
    const created = refusal(
      it.client.createSession(task.operation('create-session', it.fence), task.session, { timeout: 60_000 }),
    );
    created.catch(() => undefined);
    await eventually(() => processesOf({ uid: it.firstUid }).length > 0);
    expect(await it.supervisor.stop()).toBe(true);
    expect(processesOf({ uid: it.firstUid })).toEqual([]);
    expect(it.folders()).toEqual([]);
    await it.close();
    await server.close();
  });
});

function otherBytes(bytes: Buffer): Buffer {
  const other = Buffer.from(bytes);
  other[other.indexOf('hello')] = 0x48;
  return other;
}

function breakOff(bytes: Buffer, response: ServerResponse): void {
  response.writeHead(200, headOf(bytes)).write(bytes.subarray(0, 3000), () => response.destroy());
}
