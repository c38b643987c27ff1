import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { agentKind, taskKind, validate, withDefaults } from '../../../src/api/index.js';
import type { Agent, Task, TaskStatus, WorkspaceConfig } from '../../../src/api/index.js';
import { InputError } from '../../../src/cli/files.js';
import { plan } from '../../../src/cli/plan.js';
import type { PlanResult } from '../../../src/cli/plan-result.js';
import type { ClassVerdict } from '../../../src/controller/classes.js';
import { createTaskReconciler } from '../../../src/controller/task/reconcile.js';
import { labelKeys } from '../../../src/domain/labels.js';
import { missingClass } from '../../../src/domain/missing-class.js';
import { available } from '../../../src/domain/available.js';
import { systemClock } from '../../../src/kube/clock.js';
import { classDigest, compile } from '../../../src/render/compile.js';
import { at, epoch, readyClass, worldOf } from '../../support/controlled-task.js';
import { memoryClient } from '../../support/memory-client.js';
import { agent as anAgent, poolClass, task as aTask } from '../../support/objects.js';
import { readVectors } from '../../support/vectors.js';
import type { Vector } from '../../support/vectors.js';

/** Whoever asks before, by `plan`, and whoever asks the controller, gets the same answer: every row of the admission table through both. */

interface Flags {
  readonly agentSandboxEnabled: boolean;
  readonly acpWorkspaceDispatchEnabled: boolean;
  readonly executionWorkspaceDefaultProvider: string;
  /** The vectors have none. */
  readonly forges?: readonly string[];
}
interface Row {
  readonly name: string;
  readonly task: Task;
  readonly agent: Agent;
  readonly flags: Flags;
  /** @default - a class without artifacts */
  readonly ready?: ReadyClass;
}
type ReadyClass = Extract<ClassVerdict, { readonly state: 'ready' }>;

const { vectors } = readVectors<{ vectors: Vector<{ task: Task; agent: Agent | null; flags: Flags }, object>[] }>('admission');
const on: Flags = {
  agentSandboxEnabled: true,
  acpWorkspaceDispatchEnabled: true,
  executionWorkspaceDefaultProvider: 'agent-sandbox',
};
const artifacts = {
  namespace: 'orka-publisher',
  podLabels: { 'orka.ai/network-role': 'workspace-publisher' },
  url: 'http://orka-publisher.orka-publisher.svc:8080',
  port: 8080,
};
const downloading = compile(poolClass({ network: { ...poolClass().network, artifacts } }));
const downloads: ReadyClass = { state: 'ready', name: 'codex-standard', compiled: downloading, digest: classDigest(downloading) };
const workspace = { enabled: true, provider: 'agent-sandbox', reusePolicy: 'none', cleanupPolicy: 'delete' } as const;
const model = { model: { name: 'gpt-5' } };

const gitRepo = 'https://github.com/a/b';
const listed: readonly string[] = ['github.com', 'git.example:8443'];
const workspaces: readonly (readonly [string, WorkspaceConfig, readonly string[]])[] = [
  ['read intent without a repository', { intent: 'read' }, []],
  ['write intent', { intent: 'write' }, listed],
  ['a repository where there are no forges', { gitRepo }, []],
  ['a repository of a forge that is not listed', { gitRepo }, ['git.example:8443']],
  ['a repository of a class without artifacts', { gitRepo }, listed],
  ['a branch without a repository', { branch: 'main' }, listed],
  ['a repository over ssh', { gitRepo: 'ssh://github.com/a/b' }, listed],
  ['a repository of another identity', { gitRepo, sourceRepository: { provider: 'github', id: 'github.com/a/c' } }, listed],
  ['a tag as branch', { gitRepo, branch: 'refs/tags/v1' }, listed],
  ['a reference that is not fetched', { gitRepo, ref: 'refs/notes/x' }, listed],
  ['a path out of the repository', { gitRepo, subPath: 'a/../..' }, listed],
  ['a branch to push to', { gitRepo, pushBranch: 'x' }, listed],
  ['a policy of changes', { gitRepo, rejectBinaryFiles: true }, listed],
];

/** What the table of the reference has no row for. */
const ours: readonly Row[] = [
  { name: 'a Task without a workspace', task: aTask({ execution: {} }), agent: anAgent(), flags: on },
  { name: 'a model that is not named', task: aTask(), agent: anAgent({ model: {} }), flags: on },
  { name: 'a kind of agent without a class', task: aTask(), agent: anAgent({ runtime: { type: 'claude' } }), flags: on },
  { name: 'a name that leaves no room for its answer', task: named('a'.repeat(247)), agent: anAgent(), flags: on },
  { name: 'a prompt that is too long', task: aTask({ prompt: 'x'.repeat(512 * 1024 + 1) }), agent: anAgent(), flags: on },
  ...workspaces.map(([name, workspace, forges]) => ({
    name,
    task: aTask({ workspace }),
    agent: anAgent(),
    flags: { ...on, forges },
  })),
  {
    name: 'a tool that only local processes have',
    task: aTask({ agentRuntime: { allowedTools: ['code_exec'] } }),
    agent: anAgent(),
    flags: on,
  },
  {
    name: 'a provider without switches',
    task: aTask({ execution: { workspace } }),
    agent: anAgent(model),
    flags: { ...on, agentSandboxEnabled: false },
  },
  {
    name: 'a workspace without dispatch',
    task: aTask({ execution: { workspace } }),
    agent: anAgent(model),
    flags: { ...on, acpWorkspaceDispatchEnabled: false },
  },
];

function named(name: string): Task {
  const task = aTask();
  return { ...task, metadata: { ...task.metadata, name } };
}

const rows: readonly Row[] = [
  // Whatever the API server has stored has an Agent that can be named, and a UID.
  ...vectors.flatMap(({ name, input: { task, agent, flags } }) =>
    agent && task.metadata.uid !== undefined && task.metadata.uid !== '' ? [{ name, task, agent, flags }] : [],
  ),
  ...ours,
];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'admission-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function classObject({ name, digest, compiled }: ReadyClass): object {
  const spec = { ...compiled.spec, approvedDigests: [digest] };
  return { apiVersion: 'core.orka.ai/v1alpha1', kind: 'RuntimePoolClass', metadata: { name, namespace: 'orka-system' }, spec };
}

/** What `plan -o json` says; an error in place of a verdict when it cannot read the input. */
function planned({
  task,
  agent,
  flags,
  ready = readyClass,
}: Row): Pick<PlanResult, 'verdict' | 'status' | 'pool'> | 'unreadable' {
  const file = path.join(folder, 'input.json');
  writeFileSync(file, [task, agent].map((object) => JSON.stringify(object)).join('\n---\n'));
  writeFileSync(path.join(folder, 'class.json'), JSON.stringify(classObject(ready)));
  let text = '';
  const write = process.stdout.write.bind(process.stdout);
  const code = process.exitCode;
  const cwd = process.cwd();
  // A folder without a platform.yaml.
  process.chdir(folder);
  process.stdout.write = (chunk: string) => (text += chunk) !== '';
  try {
    plan({
      filename: [file],
      platform: 'platform.yaml',
      class: path.join(folder, 'class.json'),
      output: 'json',
      agentSandboxEnabled: String(flags.agentSandboxEnabled),
      acpWorkspaceDispatchEnabled: String(flags.acpWorkspaceDispatchEnabled),
      executionWorkspaceDefaultProvider: flags.executionWorkspaceDefaultProvider,
      sourceForge: flags.forges ?? [],
    });
    return JSON.parse(text) as PlanResult;
  } catch (error) {
    if (text !== '') throw error;
    if (!(error instanceof InputError)) throw error;
    return 'unreadable';
  } finally {
    process.chdir(cwd);
    process.stdout.write = write;
    process.exitCode = code;
  }
}

/** What the controller makes of the same objects, and what it wrote. */
async function controlled({ task, agent, flags, ready = readyClass }: Row) {
  const client = memoryClient();
  const ended = new AbortController();
  client.put(agent);
  const created = Date.now() - 180_000;
  const asStored = withDefaults(taskKind, task as never);
  const since = at(Math.floor(created / 1000) * 1000);
  const existing = { name: readyClass.name, providerKind: 'codex', resourceClass: 'standard' };
  // Whatever it waited for, it has waited for long enough.
  const missing = { type: 'ClassAvailable', status: 'False', reason: 'RuntimePoolClassMissing', message: 'none' };
  const waits = agent.spec.runtime?.type !== 'codex';
  client.put({
    ...asStored,
    metadata: { ...task.metadata, creationTimestamp: since },
    ...(waits ? { status: { conditions: [{ ...missing, lastTransitionTime: since }] } } : {}),
  });
  const reconciler = createTaskReconciler({
    client,
    world: worldOf(client),
    classes: {
      of: (kind) => (kind === 'codex' ? ready : { state: 'missing', says: missingClass(kind, [existing]) }),
    },
    hosting: {
      agentSandboxEnabled: flags.agentSandboxEnabled,
      workspaceDispatchEnabled: flags.acpWorkspaceDispatchEnabled,
      defaultProvider: flags.executionWorkspaceDefaultProvider,
      forges: flags.forges ?? [],
      available,
    },
    manager: 'test',
    epoch,
    ledSince: created,
    clock: systemClock,
    runtimeNamespace: 'orka-runtimes',
    endOf: () => undefined,
    record: () => undefined,
    namespaceUid: () => Promise.resolve('ns-uid'),
    credentialsOf: () => undefined,
    lookAgain: () => undefined,
    again: () => undefined,
    onError: () => undefined,
    onStep: () => undefined,
    leads: () => true,
    metrics: {
      attemptEnded: () => undefined,
      attemptPassed: () => undefined,
      sourceCalled: () => undefined,
      tokensUsed: () => undefined,
    },
    signal: ended.signal,
  });
  const { namespace = '', name } = task.metadata;
  await reconciler.reconcile(`${namespace}/${name}`, ended.signal);
  // A call of the publisher may be under way.
  ended.abort();
  const stored = [...client.stored.values()];
  return {
    task: stored.find(({ kind }) => kind === 'Task') as unknown as Task,
    kinds: stored.map(({ kind }) => kind).sort(),
    writes: client.asked.filter((one) => !one.startsWith('GET')),
    pool: stored.find(({ kind }) => kind === 'RuntimePool'),
  };
}

/** Without what only the moment knows. */
function timeless(status: TaskStatus | undefined): unknown {
  const times = ['lastTransitionTime', 'lastUpdateTime', 'completionTime', 'startTime'];
  return JSON.parse(JSON.stringify(status ?? {}, (name, value: unknown) => (times.includes(name) ? undefined : value)));
}

describe('plan and controller say the same of', () => {
  const unread: string[] = [];

  test.each(rows.map((row) => ({ ...row })))('$name', async (row) => {
    const said = planned(row);
    if (said === 'unreadable') {
      unread.push(row.name);
      return;
    }
    const done = await controlled(row);
    if (said.verdict === 'refused') {
      expect(done.task.status).toMatchObject({ phase: 'Failed' });
      expect(timeless(done.task.status)).toEqual(timeless(said.status));
      expect(done.writes).toEqual([`PATCH tasks/${row.task.metadata.name}/status`]);
      expect(done.kinds).toEqual(['Agent', 'Task']);
      return;
    }
    expect(done.pool?.metadata.name).toBe(said.pool?.name);
    expect(done.task.status).toMatchObject({
      phase: 'Pending',
      execution: { state: 'Queued', runtimePoolName: said.pool?.name },
    });
    expect(done.task.status?.executionWorkspace?.reason).toBe(said.status.executionWorkspace?.reason);
  });

  test('and what plan cannot read, the API server does not take either', () => {
    expect(unread).toEqual([
      'accepted-empty-on-detach',
      'A-cleanup-unknown',
      'A-before-B-cleanup-unknown-beats-templateRef',
      '0-runtime-type-unknown',
    ]);
    for (const { task, agent } of rows.filter(({ name }) => unread.includes(name)))
      expect([...validate(taskKind, task), ...validate(agentKind, agent)]).not.toEqual([]);
  });
});

/** A Task of a listed forge and of a class that can download. */
const rowAsking = (workspace: WorkspaceConfig) => ({
  name: '',
  task: aTask({ workspace }),
  agent: anAgent(),
  flags: { ...on, forges: listed },
  ready: downloads,
});

test.each<[string, WorkspaceConfig]>([
  ['a repository', { gitRepo }],
  ['a part of a tag of a repository', { gitRepo, ref: 'refs/tags/v1', subPath: 'a' }],
  ['a repository on a port that is listed', { gitRepo: 'https://git.example:8443/a/b' }],
])('plan and controller accept %s for the same pool, which waits for the repository', async (_, asked) => {
  const row = rowAsking(asked);
  const said = planned(row);
  const done = await controlled(row);
  expect(said).toMatchObject({ verdict: 'accepted', pool: { name: expect.any(String) } });
  expect(done.task.metadata.labels?.[labelKeys.taskPool]).toBe(said === 'unreadable' ? said : said.pool?.name);
  expect(done.task.status?.agentExecutionBinding).toBeDefined();
  expect(done.task.status?.phase).not.toBe('Failed');
  expect(done.pool).toBeUndefined();
});

test('a Secret that is missing is refused by the controller as plan says that it would be', async () => {
  const asked = { gitRepo, readCredentialRef: { name: 'read' } };
  const row = rowAsking(asked);
  const said = planned(row);
  const done = await controlled(row);
  expect(said).toMatchObject({ verdict: 'accepted' });
  expect(JSON.stringify(said)).toContain('the controller refuses a missing Secret or key with InvalidWorkspace');
  expect(done.task.status).toMatchObject({ phase: 'Failed', execution: { reason: 'InvalidWorkspace' } });
  expect(done.pool).toBeUndefined();
});

test('the table is not empty', () => {
  expect(rows.length).toBeGreaterThan(60);
});
