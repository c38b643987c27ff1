/** Sessions that begin with a repository: what arrives is exactly the archive, and what an agent changes is found. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { existsSync, lstatSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { WorkspaceDelta } from '../../src/harness/deltas.js';
import { sha256Hex } from '../../src/lib/sha256.js';
import { tree } from '../support/archive.js';
import type { ArchiveEntry } from '../support/archive.js';
import { artifactServer, testCapability } from '../support/artifact-server.js';
import type { ArtifactServer } from '../support/artifact-server.js';
import { deltaOrder } from '../support/harness-orders.js';
import type { TaskOrders } from '../support/harness-orders.js';
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
});
