/**
 * Tasks on repositories: what they read, what they may not change, what of a repository is refused and with which words, and where nothing leads from
 * a sandbox. Source: repository.md §7.4, scenarios 1 to 3, 11 and 12.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Task } from '../../src/api/index.js';
import { cluster, eventually, kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { answerOf, applyObjects, example, isOver, readTask, taskOver } from './support/first-task.js';
import { forgePlace, forgeUrl, publisherNamespace, stopForge } from './support/forge.js';
import type { Forge } from './support/forge.js';
import { issueIdentity } from './support/identity.js';
import { leftovers } from './support/installation.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { modelRequests } from './support/model.js';
import type { ModelRequest } from './support/model.js';
import {
  app,
  applyTasks,
  deleteTasks,
  hostileTrees,
  main,
  oddTrees,
  publisherFor,
  quoted,
  readSecret,
  sourceTask,
  startTestForge,
  tokenSecret,
  wordOf,
  wrongCaHost,
} from './support/repositories.js';
import type { SourceTask } from './support/repositories.js';
import { searchPod } from './support/searched.js';

const { namespace = '' } = example.task.metadata;
const secrets = {
  wrong: 'source-wrong',
  rotated: 'source-rotated',
  otherKey: 'source-other-key',
  missing: 'source-missing',
};

let forge: Forge;
let product: Installed;
let commits: Awaited<ReturnType<Forge['seed']>> = {};
const over = new Map<string, Task>();
const answers = new Map<string, string>();
let asked: readonly ModelRequest[] = [];
let left: readonly string[] = [];

const statusOf = (name: string) => over.get(name)?.status;
const promptsOf = (name: string) => asked.filter((one) => one.asked === wordOf(name)).length;

/** Makes Tasks and waits until they are over; so many at once as the node has room for. */
async function play(tasks: readonly Task[], seconds = 240): Promise<void> {
  await applyTasks(tasks);
  for (const { metadata } of tasks) {
    const task = await taskOver(kubectl, metadata, seconds);
    over.set(metadata.name, task);
    if (task.status?.resultRef?.available) answers.set(metadata.name, await answerOf(kubectl, metadata));
  }
}

interface ReadRow extends SourceTask {
  readonly name: string;
  readonly what: string;
  /** The commit that it begins with: repository and ref. */
  readonly commit: readonly [repository: string, ref: string];
  /** What the answer holds. */
  readonly says: string;
}

/** Tasks that succeed. */
const reads: readonly ReadRow[] = [
  {
    name: 'reads-default',
    what: 'without branch and ref reads the default branch',
    command: 'cat docs/latest',
    commit: [app.name, main],
    says: quoted,
  },
  {
    name: 'reads-branch',
    what: 'with a branch reads that branch',
    branch: 'release/1.0',
    command: 'cat README.md',
    commit: [app.name, 'refs/heads/release/1.0'],
    says: 'release 1.0',
  },
  {
    name: 'reads-tag',
    what: 'with an annotated tag reads the commit of the tag',
    ref: 'v1.0.0',
    command: 'cat README.md',
    commit: [app.name, 'refs/tags/v1.0.0'],
    says: 'version 1.0.0',
  },
  {
    name: 'reads-full-ref',
    what: 'with the full name of a tag reads the tag that a branch hides',
    ref: 'refs/tags/both',
    command: 'cat README.md',
    commit: [app.name, 'refs/tags/both'],
    says: 'a tag',
  },
  {
    name: 'reads-subpath',
    what: 'with subPath sees that folder alone',
    subPath: 'services/web',
    command: 'ls && cat index.txt',
    commit: [app.name, main],
    says: 'index.txt\nthe web service',
  },
  {
    name: 'reads-other-port',
    what: 'on a listed port reads from that port',
    gitRepo: forgeUrl(app.name, 'other'),
    command: './bin/run',
    commit: [app.name, main],
    says: 'ran',
  },
  {
    name: 'reads-public',
    what: 'without a credential reads what everybody may',
    gitRepo: forgeUrl('public/docs'),
    secret: null,
    command: 'cat README.md',
    commit: ['public/docs', main],
    says: 'README.md',
  },
  {
    name: 'reads-git',
    what: 'finds a local repository of one commit without a remote',
    command:
      'git log --format=%an/%s; git status --porcelain; git remote; git rev-list --count HEAD; git clone https://example.com/a 2>&1 || echo refused',
    commit: [app.name, main],
    says: 'refused',
  },
  {
    name: 'reads-lfs',
    what: 'with LFS pointers reads the pointers',
    gitRepo: forgeUrl('acme/lfs'),
    command: 'head -n 1 assets/big.bin',
    commit: ['acme/lfs', main],
    says: 'version https://git-lfs.github.com/spec/v1',
  },
  {
    name: 'reads-odd',
    what: 'reads quoted names and names that differ only in case as they are',
    gitRepo: forgeUrl('acme/odd'),
    command: 'cat \'".github/workflows/evil.yml"\' Readme.MD',
    commit: ['acme/odd', main],
    says: 'a quoted name\nanother case',
  },
];

interface RefusedRow extends SourceTask {
  readonly name: string;
  readonly what: string;
  readonly reason: string;
  /** The message names them. */
  readonly names: readonly (string | RegExp)[];
}

/** Tasks that are refused before there is a sandbox. */
const refusals: readonly RefusedRow[] = [
  {
    name: 'no-secret',
    what: 'a Secret that is missing',
    secret: secrets.missing,
    reason: 'InvalidWorkspace',
    names: [secrets.missing],
  },
  {
    name: 'no-key',
    what: 'a Secret without the key',
    secret: secrets.otherKey,
    reason: 'InvalidWorkspace',
    names: [secrets.otherKey, 'token'],
  },
  {
    name: 'bad-token',
    what: 'a token that the forge refuses',
    secret: secrets.wrong,
    reason: 'CredentialBlocked',
    names: [secrets.wrong],
  },
  {
    name: 'no-repository',
    what: 'a repository that the forge does not have',
    gitRepo: forgeUrl('acme/nothing'),
    reason: 'InvalidWorkspace',
    names: ['spec.workspace.gitRepo'],
  },
  {
    name: 'no-branch',
    what: 'a branch that is missing',
    branch: 'nowhere',
    reason: 'InvalidWorkspace',
    names: ['spec.workspace.branch', 'nowhere'],
  },
  {
    name: 'no-ref',
    what: 'a ref that is missing',
    ref: 'v9.9.9',
    reason: 'InvalidWorkspace',
    names: ['spec.workspace.ref', 'v9.9.9'],
  },
  {
    name: 'two-refs',
    what: 'a name that is a branch and a tag',
    ref: 'both',
    reason: 'InvalidWorkspace',
    names: ['spec.workspace.ref', 'both'],
  },
  {
    name: 'tag-as-branch',
    what: 'a tag that is given as a branch',
    branch: 'refs/tags/v1.0.0',
    reason: 'InvalidWorkspace',
    names: ['spec.workspace.branch'],
  },
  {
    name: 'other-authority',
    what: 'a forge with a certificate of another authority',
    gitRepo: `https://${wrongCaHost}/${app.name}.git`,
    reason: 'WorkspaceUnsupported',
    names: [wrongCaHost, /certificate|TLS/],
  },
  {
    name: 'other-host',
    what: 'a host that is not listed',
    gitRepo: 'https://elsewhere.example/acme/app.git',
    reason: 'InvalidWorkspace',
    names: ['spec.workspace.gitRepo', 'elsewhere.example', forgePlace.host],
  },
  {
    name: 'other-port',
    what: 'a port that is not listed',
    gitRepo: forgeUrl(app.name, 'unlisted'),
    reason: 'InvalidWorkspace',
    names: ['spec.workspace.gitRepo', String(forgePlace.servers.unlisted.port)],
  },
  {
    name: 'plain-http',
    what: 'a URL without TLS',
    gitRepo: `http://${forgePlace.host}/${app.name}.git`,
    reason: 'InvalidWorkspace',
    names: ['spec.workspace.gitRepo', 'https'],
  },
];

const nameOfTree = (repository: string) => repository.replace('/', '-');

beforeAll(async () => {
  const after = stopwatch('repositories');
  forge = await startTestForge();
  const { ca: otherCa } = await issueIdentity(['elsewhere.example']);
  const all = [
    app,
    { name: 'public/docs', refs: { [main]: [{ path: 'README.md', content: 'README.md\n' }] } },
    ...Object.values(oddTrees),
    ...hostileTrees.map(({ repository }) => repository),
  ];
  for (const one of all) commits = { ...commits, ...(await forge.seed([one])) };
  after('seeded');
  product = await installed({ gates: true, publisher: publisherFor(forge, otherCa) });
  await applyObjects(kubectl, [
    example.agent,
    tokenSecret(readSecret, { token: forge.tokens.read }),
    tokenSecret(secrets.wrong, { token: 'not-the-token-of-this-forge' }),
    tokenSecret(secrets.rotated, { token: forge.tokens.read }),
    tokenSecret(secrets.otherKey, { other: forge.tokens.read }),
  ]);
  after('installed');
}, 600_000);

afterAll(async () => {
  await kubectl(['delete', 'tasks.core.orka.ai', '--all', '-n', namespace, '--timeout=120s']).catch(() => undefined);
  await kubectl(['delete', 'secrets', readSecret, ...Object.values(secrets), '-n', namespace, '--ignore-not-found']);
  await product.remove();
  await stopForge(kubectl);
}, 600_000);

describe('a Task that may not have what it asks for is refused, and nothing is made for it:', () => {
  beforeAll(async () => {
    const after = stopwatch('refusals');
    await explained(product, () => play(refusals.map(({ name, ...row }) => sourceTask(name, asTask(row)))));
    after('over');
    const pools = await kubectl(['get', 'runtimepools.core.orka.ai', '-n', namespace, '-o', 'name']);
    const inRuntime = (await leftovers(kubectl, product)).filter(({ metadata }) => metadata.namespace !== namespace);
    left = [...pools.split('\n').filter(Boolean), ...inRuntime.map(({ kind }) => kind)];
    await deleteTasks(refusals.map(({ name }) => name));
  }, 400_000);

  test.each(refusals)('$what', ({ name, reason, names }) => {
    const { phase, execution, message = '' } = statusOf(name) ?? {};
    expect({ phase, state: execution?.state, reason: execution?.reason }).toEqual({ phase: 'Failed', state: 'Failed', reason });
    for (const one of names) expect(message).toMatch(one);
    expect(execution?.runtimePoolUID).toBeUndefined();
  });

  test('no pool, no sandbox', () => {
    expect(left).toEqual([]);
  });

  test('no request reaches a port that is not listed', async () => {
    expect(await forge.requests('unlisted')).toEqual([]);
  });
});

const asTask = ({ ...row }: Partial<ReadRow & RefusedRow>): SourceTask => {
  const { what: _what, names: _names, reason: _reason, commit: _commit, says: _says, ...task } = row;
  return task;
};

describe('a Task that reads', () => {
  beforeAll(async () => {
    const after = stopwatch('reads');
    for (let at = 0; at < reads.length; at += 4) {
      const some = reads.slice(at, at + 4);
      await explained(product, () => play(some.map(({ name, ...row }) => sourceTask(name, asTask(row)))));
      after(some.map(({ name }) => `${name} ${statusOf(name)?.phase ?? ''}`).join(', '));
      await deleteTasks(some.map(({ name }) => name));
    }
  }, 900_000);

  test.each(reads)('$what', ({ name, commit: [repository, ref], says }) => {
    expect(statusOf(name)).toMatchObject({
      phase: 'Succeeded',
      delivery: { state: 'ReadValidated', startingSHA: commits[repository]?.[ref] },
    });
    expect(answers.get(name)).toContain(says);
  });

  test('says how many LFS pointers it has, on record and in an event', async () => {
    const prepared = statusOf('reads-lfs')?.execution?.effects?.find(({ kind }) => kind === 'workspace.prepare');
    expect(prepared?.response?.notes).toEqual([expect.objectContaining({ code: 'lfs_pointers', count: 2 })]);
    const events = ['events', '-n', namespace, '--field-selector', 'involvedObject.name=reads-lfs,reason=RepositoryNote'];
    expect(await kubectl(['get', ...events, '-o', 'jsonpath={.items[*].message}'])).toContain('2 files of Git LFS');
  });

  test('has a clean working copy, one commit of its own and no remote', () => {
    const lines = (answers.get('reads-git') ?? '').split('\n').filter((line) => !line.includes('setlocale'));
    expect(lines.slice(0, 2)).toEqual([expect.stringMatching(/^Orka\//), '1']);
  });
});

describe('a tree that is refused', () => {
  beforeAll(async () => {
    const after = stopwatch('hostile trees');
    const tasks = hostileTrees.map(({ repository: { name } }) => sourceTask(nameOfTree(name), { gitRepo: forgeUrl(name) }));
    for (let at = 0; at < tasks.length; at += 4) {
      const some = tasks.slice(at, at + 4);
      await explained(product, () => play(some));
      after(some.map(({ metadata }) => `${metadata.name} ${statusOf(metadata.name)?.execution?.reason ?? ''}`).join(', '));
      await deleteTasks(some.map(({ metadata }) => metadata.name));
    }
    asked = await modelRequests(kubectl, product.poolClass);
  }, 900_000);

  test.each(hostileTrees)('has $what, and the message says so', ({ repository, names }) => {
    const { phase, execution, message = '' } = statusOf(nameOfTree(repository.name)) ?? {};
    expect({ phase, reason: execution?.reason }).toEqual({ phase: 'Failed', reason: 'InvalidWorkspace' });
    for (const one of names) expect(message).toMatch(one);
  });

  test('is not sent to the model', () => {
    expect(hostileTrees.filter(({ repository: { name } }) => promptsOf(nameOfTree(name)) > 0)).toEqual([]);
  });
});

describe('an agent under read intent', () => {
  const changes = [
    { name: 'changes-file', command: 'echo more >> README.md', state: 'ReadOnlyWorkspaceModified', says: 'README.md' },
    {
      name: 'adds-files',
      command: 'for n in $(seq 1 30); do touch new-$n; done',
      state: 'ReadOnlyWorkspaceModified',
      says: 'new-',
    },
    {
      name: 'commits',
      command: 'git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m more && git branch other',
      state: 'ReadValidated',
      says: '',
    },
    { name: 'makes-fifo', command: 'mkfifo pipe', state: 'DeliveryConflict', says: 'pipe' },
  ] as const;

  beforeAll(async () => {
    await explained(product, () => play(changes.map(({ name, command }) => sourceTask(name, { command }))));
    await deleteTasks(changes.map(({ name }) => name));
  }, 400_000);

  test.each(changes)('that runs `$command` ends as $state', ({ name, state, says }) => {
    const { delivery, message = '' } = statusOf(name) ?? {};
    expect(delivery?.state).toBe(state);
    expect(message).toContain(says);
  });

  test('that adds thirty files is told twenty of them and how many more there are', () => {
    const named = (statusOf('adds-files')?.message ?? '').match(/new-\d+/g) ?? [];
    expect(named.length).toBeLessThanOrEqual(20);
    expect(statusOf('adds-files')?.message).toContain('30 files');
  });
});

/** Where a connection is tried, and what becomes of it. */
interface Place {
  readonly what: string;
  readonly host: () => string;
  readonly port: number;
  readonly outcome: string;
}

describe('a sandbox', () => {
  const [name, tried] = ['inside', 4];
  const places: readonly Place[] = [
    { what: 'the forge, by its name', host: () => forgePlace.host, port: 443, outcome: 'closed' },
    { what: 'the forge, by its address', host: () => addresses.forge, port: 443, outcome: 'closed' },
    { what: 'the operations of the publisher', host: () => addresses.publisher, port: 8443, outcome: 'closed' },
    { what: 'the probes of the publisher', host: () => addresses.publisher, port: 8081, outcome: 'closed' },
    { what: 'the archives of the publisher', host: () => addresses.publisher, port: 8080, outcome: 'open' },
    { what: 'the API server, by its Service', host: () => '10.96.0.1', port: 443, outcome: 'closed' },
    ...(cluster.node
      ? [{ what: 'the API server, by its address', host: () => cluster.node!.ip, port: 6443, outcome: 'closed' }]
      : []),
  ];
  const addresses = { forge: '', publisher: '' };

  beforeAll(async () => {
    const address = (inNamespace: string, label: string) =>
      kubectl(['get', 'pods', '-n', inNamespace, '-l', label, '-o', 'jsonpath={.items[0].status.podIP}']);
    addresses.forge = await address(forgePlace.namespace, 'app=forge');
    addresses.publisher = await address(publisherNamespace, 'orka.ai/network-role=workspace-publisher');
    const attempts = places.map(
      ({ host, port }, index) =>
        `(nc -w ${tried} ${host()} ${port} </dev/null >/dev/null 2>&1 && echo ${index} open || echo ${index} closed)`,
    );
    const command = `${attempts.join(' & ')} & wait; env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\000' ' '`;
    await explained(product, () => play([sourceTask(name, { command })]));
    await deleteTasks([name]);
  }, 300_000);

  test.each(places.map((place, index) => ({ ...place, index })))('finds $what $outcome', ({ index, outcome }) => {
    expect(answers.get(name)).toContain(`${index} ${outcome}`);
  });

  test('shows its agent neither a token nor the address of the repository', () => {
    const seen = answers.get(name) ?? '';
    expect(seen).toContain('ORKA_WORKSPACE');
    expect(seen).not.toContain(forge.tokens.read);
    expect(seen).not.toContain(forgeUrl(app.name));
  });
});

describe('the publisher', () => {
  const places: readonly Place[] = [
    { what: 'the forge on a listed port', host: () => forgePlace.host, port: 443, outcome: 'open' },
    { what: 'the forge on another listed port', host: () => forgePlace.host, port: 8443, outcome: 'open' },
    { what: 'the forge on a port that is not listed', host: () => forgePlace.host, port: 9443, outcome: 'closed' },
    { what: 'the API server, by its Service', host: () => '10.96.0.1', port: 443, outcome: 'closed' },
    {
      what: 'the provider proxy',
      host: () => new URL(product.poolClass.providerProxy.url).hostname,
      port: 1337,
      outcome: 'closed',
    },
  ];

  test.each(places)('finds $what $outcome', async ({ host, port, outcome }) => {
    const script = `const s=require('net').connect(${port},'${host()}');const end=(t)=>{console.log(t);process.exit()};s.on('connect',()=>end('open'));s.on('error',()=>end('closed'));setTimeout(()=>end('closed'),4000)`;
    const exec = ['exec', '-n', publisherNamespace, await publisherPod(), '--', '/usr/local/bin/node', '-e', script];
    expect((await kubectl(exec)).trim()).toBe(outcome);
  });
});

const publisherPod = (): Promise<string> => {
  const label = 'orka.ai/network-role=workspace-publisher';
  return kubectl(['get', 'pods', '-n', publisherNamespace, '-l', label, '-o', 'jsonpath={.items[0].metadata.name}']);
};

describe('a forge that does not answer as it should', () => {
  const running = async (name: string, holds: (task: Task) => boolean, seconds = 60): Promise<Task> =>
    eventually(
      `Task ${name}`,
      async () => {
        const task = await readTask(kubectl, { name, namespace });
        if (task && isOver(task) && !holds(task)) throw new Error(`Task ${name} is over: ${task.status?.message ?? ''}`);
        return task && holds(task) ? task : undefined;
      },
      seconds,
    );

  afterAll(() => forge.set({ mode: 'ok' }));

  test('and redirects to a private address is refused, and the address is not asked', async () => {
    const before = await forge.requests('unlisted');
    await forge.set({ mode: 'redirect', to: forgeUrl(app.name, 'unlisted') });
    await play([sourceTask('redirected')]);
    await forge.set({ mode: 'ok' });
    expect(statusOf('redirected')).toMatchObject({ phase: 'Failed', message: expect.stringMatching(/redirect/i) });
    expect(await forge.requests('unlisted')).toEqual(before);
    await deleteTasks(['redirected']);
  }, 200_000);

  test.each(['drop', 'garbage'] as const)(
    'and answers with "%s" is asked again, and the Task says why it waits',
    async (mode) => {
      const name = `forge-${mode}`;
      await forge.set({ mode });
      await applyTasks([sourceTask(name)]);
      const waits = await running(name, ({ status }) => /forge|publisher|repository/i.test(status?.message ?? ''));
      expect(waits.status?.phase).toBe('Pending');
      await forge.set({ mode: 'ok' });
      const task = await taskOver(kubectl, { name, namespace }, 120);
      expect(task.status).toMatchObject({ phase: 'Succeeded', delivery: { state: 'ReadValidated' } });
      await deleteTasks([name]);
    },
    300_000,
  );

  test('and is slow while the Secret is rotated leads to CredentialBlocked without a prompt', async () => {
    const name = 'rotated';
    await forge.set({ mode: 'slow' });
    const before = (await forge.requests()).length;
    await applyTasks([sourceTask(name, { secret: secrets.rotated })]);
    await eventually('a request that hangs', async () => ((await forge.requests()).length > before ? true : undefined), 60);
    const processes = { namespace: publisherNamespace, pod: await publisherPod(), folders: [] };
    expect(await searchPod(processes, new Map([['read token', forge.tokens.read]]))).toMatchObject({ found: [] });
    await applyObjects(kubectl, [tokenSecret(secrets.rotated, { token: 'another-token-of-the-same-secret' })]);
    await forge.set({ mode: 'ok' });
    const task = await taskOver(kubectl, { name, namespace }, 240);
    expect(task.status).toMatchObject({
      phase: 'Failed',
      execution: { state: 'Failed', reason: 'CredentialBlocked' },
      message: expect.stringContaining(secrets.rotated),
    });
    asked = await modelRequests(kubectl, product.poolClass);
    expect(promptsOf(name)).toBe(0);
    await deleteTasks([name]);
  }, 400_000);
});
