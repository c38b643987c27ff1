import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { PlanResult } from '../../src/cli/plan-result.js';
import type { RuntimePoolClass } from '../../src/api/index.js';
import { readYaml } from '../../src/render/yaml-read.js';
import { cli } from '../support/cli.js';

const smoke = readFileSync('examples/smoke.yaml', 'utf8');
/** What the installed controller would say today. */
const today = (input: string, ...args: string[]) => cli(['plan', '-f', '-', ...args], { input });
/** What it would say with everything switched on. */
const planned = (input: string, ...args: string[]) => today(input, '--assume-enabled', ...args);
const json = (input: string, ...args: string[]): PlanResult =>
  JSON.parse(planned(input, '-o', 'json', ...args).stdout) as PlanResult;
const live = smoke
  .replace('name: sandbox-codex-agent, namespace', 'name: sandbox-codex-agent, uid: agent-1, generation: 4, namespace')
  .replace('name: orka-live-sandbox-smoke, namespace', 'name: orka-live-sandbox-smoke, uid: task-1, generation: 1, namespace');

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'orka-plan-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string | Buffer): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

describe('the Task and Agent of the deploy guide', () => {
  test('are accepted as they are', () => {
    const { code, stdout } = planned(smoke);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^Task demo-magic\/orka-live-sandbox-smoke: accepted\n {2}pool {6}acp-ws-codex-[0-9a-f]{16} \(workspace\)\n/,
    );
  });

  test('are accepted without their workspace too, for a pool that a Deployment keeps and that has nothing of a provider', () => {
    const { pool, objects, verdict } = json(smoke.replace(/ {2}execution:\n.*\n/, ''));
    expect([verdict, pool?.family, pool?.name]).toEqual(['accepted', 'plain', expect.stringMatching(/^acp-codex-[0-9a-f]{16}$/)]);
    const kinds = objects.map(({ kind }) => kind);
    expect(kinds).toContain('Deployment');
    expect(kinds.filter((kind) => kind.startsWith('Sandbox'))).toEqual([]);
  });

  test('give the stable JSON shape, the RuntimePool first', () => {
    const result = json(smoke);
    expect(Object.keys(result)).toEqual([
      'verdict',
      'status',
      'pool',
      'source',
      'poolClass',
      'facts',
      'objects',
      'secrets',
      'notes',
    ]);
    expect(Object.keys(result.pool ?? {})).toEqual([
      'name',
      'family',
      'profileDigest',
      'workspaceBindingDigest',
      'runtimeImage',
      'labels',
    ]);
    expect(result.objects.map(({ kind }) => kind)).toEqual([
      'RuntimePool',
      'Service',
      ...Array<string>(5).fill('NetworkPolicy'),
      'PodDisruptionBudget',
      'SandboxTemplate',
      'SandboxWarmPool',
      'SandboxClaim',
    ]);
    expect(result.status).toMatchObject({
      phase: 'Pending',
      executionWorkspace: { phase: 'Pending', reason: 'WorkspacePending', reused: false },
    });
    expect(result.poolClass?.approved).toBe(true);
  });

  test('are told of every field that is not used, in every form of output', () => {
    const ofAgent =
      '  session: { enabled: true }\n  ttlAfterLastTask: 1h\n  coordination: { enabled: true }\n  secretRef: { name: key }\n';
    const ofTask = '  webhookURL: https://x.test\n  requestedBy: { username: me }\n  ai: { model: x }\n  timeZone: UTC\n';
    const unused = smoke.replace('  model:', `${ofAgent}  model:`).replace('  timeout:', `${ofTask}  timeout:`);
    const fields = ['session', 'ttlAfterLastTask', 'coordination', 'secretRef', 'webhookURL', 'requestedBy', 'ai', 'timeZone'];
    for (const form of ['summary', 'json', 'yaml']) {
      const { code, stdout } = planned(unused, '-o', form);
      expect(code).toBe(0);
      for (const field of fields) expect(stdout).toContain(`: spec.${field} is not used: `);
    }
  });

  test('are told of what the committed platform would say today, in every form of output', () => {
    for (const form of ['summary', 'json', 'yaml']) {
      const { stdout } = planned(smoke, '-o', form);
      expect(stdout).toMatch(
        /with the switches of platform.yaml the Task would be refused today: .*controller\.gates\.agentSandbox: true/,
      );
    }
    expect(json(smoke).notes).toHaveLength(1);
    expect(planned(smoke, '-o', 'yaml').stdout).toMatch(/^# note: .*\napiVersion: /);
  });

  test('are told of a selector of the class that selects nothing', () => {
    const hostDns = join(folder, 'host-dns.yaml');
    const settings = 'dns: {podLabels: {k8s-app: node-local-dns}, addresses: [169.254.20.10/32]}';
    writeFileSync(hostDns, `${readFileSync('platform.yaml', 'utf8')}${settings}\n`);
    expect(json(smoke, '--platform', hostDns).notes).toContainEqual(
      expect.stringContaining('class codex-standard: network.dns.podLabels: k8s-app: node-local-dns selects nothing'),
    );
  });

  test('are told when the controller would not see the Task, or has already', () => {
    const elsewhere = smoke.replaceAll('namespace: demo-magic', 'namespace: elsewhere');
    expect(planned(elsewhere).stdout).toContain('does not list the namespace elsewhere under namespaces.tasks');
    expect(planned(`${smoke.trimEnd()}\nstatus: { phase: Running }\n`).stdout).toContain('the Task is already Running');
  });

  test('name nothing of the provider in the status', () => {
    const { status, objects } = json(smoke);
    const names = objects.filter(({ apiVersion }) => apiVersion.includes('agents.x-k8s.io')).map(({ metadata }) => metadata.name);
    for (const name of names) expect(JSON.stringify(status)).not.toContain(name);
  });
});

describe('a repository', () => {
  const example = readFileSync('examples/repository.yaml', 'utf8');
  const artifacts = {
    namespace: 'orka-publisher',
    podLabels: { 'orka.ai/network-role': 'workspace-publisher' },
    url: 'http://orka-publisher.orka-publisher.svc:8080',
    port: 8080,
  };
  /** The class of the committed platform, with a place to download repositories from. */
  const withArtifacts = (): string => {
    const [document] = readYaml(readFileSync('dist/apply/0002-classes.k8s.yaml', 'utf8'), 'classes');
    const value = document?.value as unknown as RuntimePoolClass;
    const { spec } = value;
    return file('class.json', JSON.stringify({ ...value, spec: { ...spec, network: { ...spec.network, artifacts } } }));
  };

  test('of the example is what would be fetched, in every form of output', () => {
    const args = ['--class', withArtifacts()];
    const { source, notes, verdict } = json(example, ...args);
    expect(verdict).toBe('accepted');
    expect(source).toEqual({
      repository: 'github.com/acme/app',
      url: 'https://github.com/acme/app.git',
      ref: 'refs/heads/main',
      subPath: 'services/api',
      credential: { secret: 'app-read', key: 'token' },
    });
    const unseen =
      'Secret demo-magic/app-read with the key token was not looked at; the controller refuses a missing Secret or key with InvalidWorkspace';
    expect(notes).toContain(unseen);
    const lines = [
      ['source', 'github.com/acme/app (https://github.com/acme/app.git)'],
      ['ref', 'refs/heads/main'],
      ['folder', 'services/api'],
      ['access', 'Secret app-read, key token'],
      ['note', unseen],
    ] as const;
    const [summary, yaml] = ['summary', 'yaml'].map((form) => planned(example, '-o', form, ...args).stdout);
    for (const [name, text] of lines) {
      expect(summary).toContain(`  ${name.padEnd(9)} ${text}\n`);
      expect(yaml).toContain(`# ${name}: ${text}\n`);
    }
  });

  test('without a ref is that of the default branch, and without a Secret it is read by anybody', () => {
    const plain = example.replace(/ {4}(branch|subPath|readCredentialRef):.*\n/g, '');
    const { source, notes } = json(plain, '--class', withArtifacts());
    expect(source).toMatchObject({ ref: null, subPath: null, credential: null });
    expect(notes.filter((note) => note.includes('Secret'))).toEqual([]);
    const { stdout } = planned(plain, '--class', withArtifacts());
    expect(stdout).toContain('  ref       default branch\n');
    expect(stdout).toContain('  access    without a credential\n');
  });

  test.each([
    [['--source-forge', 'git.example', '--source-forge', 'git.corp:8443'], 'a repository of git.example, git.corp:8443'],
    [
      [],
      'repositories are switched off in this installation; the operator of the platform sets publisher.enabled: true and publisher.forges',
    ],
  ])('that the operator does not allow is refused: %j', (args, says) => {
    const { code, stdout } = today(example, ...args, '--agent-sandbox-enabled', '--acp-workspace-dispatch-enabled');
    expect([code, stdout]).toEqual([1, expect.stringContaining(says)]);
    expect(stdout).not.toContain('  source');
  });

  test('beside a branch and a ref is fetched by the ref, and the branch is said to be unused', () => {
    const both = example.replace('branch: main', 'branch: main\n    ref: v1.2.0');
    const { source, notes } = json(both, '--class', withArtifacts());
    expect(source?.ref).toBe('v1.2.0');
    expect(notes).toContain('Task demo-magic/review-api: spec.workspace.branch is not used: spec.workspace.ref wins over it');
  });

  test('of the URL of a browser is accepted, and a note names the repository', () => {
    const page = example.replace('app.git', 'app/tree/main');
    const { verdict, notes } = json(page, '--class', withArtifacts());
    expect(verdict).toBe('accepted');
    expect(notes).toContainEqual(expect.stringContaining('the repository is probably https://github.com/acme/app.git,'));
  });

  test('is not planned for a forge that is none', () => {
    const { code, stderr } = today(example, '--source-forge', 'https://github.com');
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('plan: --source-forge: found "https://github.com", allowed: a host'),
    ]);
  });
});

describe('live facts', () => {
  test('come from the metadata where it has them, and are place-holders otherwise', () => {
    const { facts } = json(live);
    expect(facts['taskUid']).toEqual({ value: 'task-1', source: 'input' });
    expect(facts['agentGeneration']).toEqual({ value: '4', source: 'input' });
    expect(facts['poolName']?.source).toBe('input');
    expect(facts['poolUid']?.source).toBe('placeholder');
    expect(json(smoke).facts['poolName']?.source).toBe('placeholder');
  });

  test('can be given in a file', () => {
    const given = file('facts.yaml', 'poolUid: pool-1\ncontrollerEpoch: 7\n');
    const { facts } = json(live, '--facts', given);
    expect(facts['poolUid']).toEqual({ value: 'pool-1', source: 'input' });
    expect(facts['authSecretName']?.value).toContain('-auth-e7-');
  });

  test('mark the lines of the YAML that stand for something', () => {
    const { stdout } = planned(live, '-o', 'yaml');
    expect(stdout).toMatch(/orka.ai\/runtime-pool-uid: .* # live: poolUid\n/);
    expect(stdout).toMatch(/orka.ai\/runtime-template-revision: sha256:[0-9a-f]{64} # live: templateRevision\n/);
    expect(stdout).not.toMatch(/# live: poolName\n/);
  });

  test('change the pool with the Task', () => {
    expect(json(live).pool?.name).not.toBe(json(live.replace('task-1', 'task-2')).pool?.name);
  });
});

describe('the verdict is of the installed controller:', () => {
  const on = (change: (text: string) => string = (text) => text): string =>
    file(
      'on.yaml',
      change(
        readFileSync('platform.yaml', 'utf8').replace(
          'agentSandbox: false, workspaceDispatch: false',
          'agentSandbox: true, workspaceDispatch: true',
        ),
      ),
    );
  const verdict = (text: string, ...args: string[]) => {
    const { code, stdout } = today(text, '-o', 'json', ...args);
    return { code, ...(JSON.parse(stdout) as PlanResult) };
  };

  test('switches that are off refuse, and a note names --assume-enabled', () => {
    const { code, verdict: said, status, notes } = verdict(smoke);
    expect({ code, said, message: status.message }).toEqual({
      code: 1,
      said: 'refused',
      message: expect.stringContaining('controller.gates.agentSandbox: true'),
    });
    expect(notes).toContainEqual(expect.stringContaining('--assume-enabled'));
  });

  test('switches that are on accept', () => {
    expect(verdict(smoke, '--platform', on())).toMatchObject({ code: 0, verdict: 'accepted' });
  });

  test('a Task that no controller reads is unseen, and gets no status', () => {
    const unlisted = on((text) => text.replace('[demo-magic]', '[team-a]'));
    const none = { code: 1, verdict: 'unseen', status: {}, pool: null, objects: [], secrets: [] };
    expect(verdict(smoke, '--platform', unlisted)).toMatchObject(none);
    expect(verdict(smoke, '--platform', unlisted).notes).toContainEqual(expect.stringContaining('namespaces.tasks'));
    const absent = on((text) => text.replace(/^controller:$/m, 'controller:\n  replicas: 0'));
    expect(verdict(smoke, '--platform', absent)).toMatchObject(none);
  });

  test('a Task waits while new Tasks are paused', () => {
    const paused = on((text) => text.replace(/^controller:$/m, 'controller:\n  paused: true'));
    const result = verdict(smoke, '--platform', paused);
    expect(result).toMatchObject({ code: 1, verdict: 'waiting', objects: [] });
    expect(result.status.message).toContain('controller.paused');
  });

  test('a Task waits for a class that is not approved', () => {
    const committed = readFileSync('dist/apply/0002-classes.k8s.yaml', 'utf8');
    const stale = file('class.yaml', committed.replace(/- sha256:\w{64}\n/, `- sha256:${'0'.repeat(64)}\n`));
    const result = verdict(smoke, '--platform', on(), '--class', stale);
    expect(result).toMatchObject({ code: 1, verdict: 'waiting', objects: [], poolClass: { approved: false } });
    expect(result.status.message).toContain('spec.approvedDigests');
  });

  test('a switch of the command wins over the platform', () => {
    expect(verdict(smoke, '--platform', on(), '--agent-sandbox-enabled=false').verdict).toBe('refused');
    expect(verdict(smoke, '--agent-sandbox-enabled', '--acp-workspace-dispatch-enabled').verdict).toBe('accepted');
  });

  test('without a platform the switches are taken as on, and a note says so', () => {
    const poolClass = resolve('dist/apply/0002-classes.k8s.yaml');
    const { code, stdout } = cli(['plan', '-f', '-', '-o', 'json', '--class', poolClass], { input: smoke, cwd: folder });
    const { verdict: said, notes } = JSON.parse(stdout) as PlanResult;
    expect([code, said]).toEqual([0, 'accepted']);
    expect(notes).toContainEqual(expect.stringContaining('switches that no flag names are taken as on'));
  });

  test('a platform that is named and missing is an error, also with a class', () => {
    const { code, stderr } = today(smoke, '--platform', 'typo.yaml', '--class', 'dist/apply/0002-classes.k8s.yaml');
    expect([code, stderr]).toEqual([2, 'error: typo.yaml: no such file or directory\n']);
  });
});

describe('namespaces', () => {
  const [agent = '', task = ''] = smoke.split('---\n');
  const other = agent.replace('namespace: demo-magic', 'namespace: other, uid: agent-other, generation: 9');
  const bare = (text: string) => text.replaceAll(', namespace: demo-magic', '');

  test('an Agent of the same name in another namespace changes nothing, whatever the order of the documents', () => {
    const alone = json(live);
    const [liveAgent = '', liveTask = ''] = live.split('---\n');
    for (const documents of [
      [other, liveAgent, liveTask],
      [liveTask, liveAgent, other],
    ])
      expect(json(documents.join('---\n'))).toEqual(alone);
  });

  test('a Task without a namespace is in the namespace default, and never in that of an Agent of its name', () => {
    const { code, stderr } = planned(`${agent}---\n${bare(task)}`);
    expect(code).toBe(2);
    expect(stderr).toContain('an Agent in namespace default that one of the files holds (found Agent demo-magic/');
    expect(json(bare(smoke)).facts['poolNamespace']).toEqual({ value: 'default', source: 'placeholder' });
  });

  test('--namespace is that of every document without one', () => {
    expect(json(bare(smoke), '-n', 'demo-magic').facts['poolNamespace']).toEqual({ value: 'demo-magic', source: 'input' });
    expect(json(`${agent}---\n${bare(task)}`, '-n', 'demo-magic').pool).toEqual(json(smoke).pool);
    expect(json(smoke, '-n', 'team-a').facts['poolNamespace']?.value).toBe('demo-magic');
  });

  test('--namespace and the fact namespace must agree, and be names', () => {
    expect(planned(smoke, '-n', 'Team').stderr).toContain('--namespace: found "Team", allowed: the name of a namespace');
    const facts = file('facts.yaml', 'namespace: team-b\n');
    expect(planned(smoke, '-n', 'team-a', '--facts', facts).stderr).toContain(
      'namespace: found "team-b", allowed: team-a, as --namespace says',
    );
  });

  test('one Agent with and without its namespace is one Agent twice', () => {
    expect(planned(`${smoke}---\n${bare(agent)}`, '-n', 'demo-magic').stderr).toContain('allowed: each Agent once');
  });
});

describe('a refused Task', () => {
  const refused = smoke.replace('reusePolicy: none', 'reusePolicy: none, boot: true');

  test('exits with 1 and still has the data, with nothing that would be created', () => {
    const { code, stdout } = planned(refused, '-o', 'json');
    expect(code).toBe(1);
    const result = JSON.parse(stdout) as PlanResult;
    expect(result).toMatchObject({ verdict: 'refused', pool: null, objects: [], secrets: [] });
    expect(result.status).toMatchObject({
      phase: 'Failed',
      executionWorkspace: { phase: 'Failed', reason: 'WorkspaceValidationFailed', provider: 'agent-sandbox' },
    });
  });

  test('says why, where and what instead', () => {
    expect(planned(refused).stdout).toContain('spec.execution.workspace.boot: found true, allowed: false');
  });

  test('is refused by a switch that is off, by name', () => {
    const { code, stdout } = planned(smoke, '--acp-workspace-dispatch-enabled=false');
    expect(code).toBe(1);
    expect(stdout).toContain('controller.gates.workspaceDispatch: true');
  });

  test.each([
    ['templateRef', '{enabled: true, templateRef: {name: x}}'],
    ['poolRef', '{enabled: true, poolRef: {name: x}}'],
    ['snapshot', '{enabled: true, snapshot: {restoreURI: x}}'],
    ['hibernation', '{enabled: true, hibernation: {processMode: fresh}}'],
    ['onDetach', '{enabled: true, onDetach: Delete}'],
    ['cleanupPolicy retain', '{enabled: true, cleanupPolicy: retain}'],
    ['provider substrate', '{enabled: true, provider: substrate, templateRef: {name: x}}'],
  ])('asked for %s', (_, workspace) => {
    const { code, stdout } = planned(smoke.replace(/workspace: \{.*\}/, `workspace: ${workspace}`), '-o', 'json');
    expect(code).toBe(1);
    expect((JSON.parse(stdout) as PlanResult).status.executionWorkspace?.reason).toBe('WorkspaceValidationFailed');
  });
});

describe('a class', () => {
  const committed = readFileSync('dist/apply/0002-classes.k8s.yaml', 'utf8');

  test('that is not approved is named with --assume-enabled too', () => {
    const stale = file('class.yaml', committed.replace(/- sha256:\w{64}\n/, `- sha256:${'0'.repeat(64)}\n`));
    const { code, stdout } = planned(smoke, '--class', stale);
    expect(code).toBe(0);
    expect(stdout).toMatch(/class .*\(not approved\)/);
    expect(stdout).toMatch(/note .*not approved.*would wait/);
  });

  test('of another provider kind does not serve the Agent', () => {
    const { code, stdout } = planned(smoke.replace('type: codex', 'type: claude'), '-o', 'json');
    expect(code).toBe(1);
    expect((JSON.parse(stdout) as PlanResult).status).toMatchObject({
      execution: { reason: 'InvalidRuntimeProfile' },
      message: expect.stringContaining('claude/standard'),
    });
  });
});

describe('refused with exit code 2, one message a problem and nothing on stdout:', () => {
  test.each([
    ['no Task', smoke.slice(0, smoke.indexOf('---')), /found "no Task", allowed: exactly one Task/],
    ['two Tasks', `${smoke}---\n${smoke.slice(smoke.indexOf('---') + 4)}`, /exactly one Task/],
    [
      'a kind that is spelt wrong',
      smoke.replace('kind: Task', 'kind: task'),
      /line \d+: kind: found "task", allowed: Task, if that is meant/,
    ],
    [
      'only other kinds',
      'apiVersion: v1\nkind: Namespace\nmetadata: { name: demo-magic }\n',
      /standard input: skipped Namespace: a plan reads Task, Agent, ConfigMap: found "no Task", allowed: exactly one Task/,
    ],
    ['a document that is no object', `${smoke}---\n- 1\n`, /a Kubernetes object with apiVersion and kind/],
    [
      'a missing Agent',
      smoke.slice(smoke.indexOf('---')),
      /Task demo-magic\/orka-live-sandbox-smoke: spec.agentRef: found {"name":"sandbox-codex-agent"}, allowed: an Agent in namespace demo-magic/,
    ],
    [
      'an Agent of another namespace',
      smoke.replace('sandbox-codex-agent, namespace: demo-magic', 'sandbox-codex-agent, namespace: other'),
      /an Agent in namespace demo-magic .*other\/sandbox-codex-agent/,
    ],
    [
      'one Agent twice',
      `${smoke}---\n${smoke.slice(0, smoke.indexOf('---'))}`,
      /found "two documents", allowed: each Agent once/,
    ],
    [
      'an unknown field',
      smoke.replace('timeout: 10m0s', 'timeOut: 10m0s'),
      /Task orka-live-sandbox-smoke \(.*\): spec.timeOut: found "10m0s", allowed: no such field/,
    ],
    ['a bad name', smoke.replace('name: orka-live-sandbox-smoke', 'name: Not_A_Name'), /metadata.name: found "Not_A_Name"/],
    ['malformed YAML', 'a: [1\n', /standard input:\d+:\d+/],
    [
      'an unknown reuse policy',
      smoke.replace('reusePolicy: none', 'reusePolicy: always'),
      /spec.execution.workspace.reusePolicy: found "always", allowed: .*none.*session/,
    ],
  ])('%s', (_, input, message) => {
    const { code, stdout, stderr } = planned(input);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
  });

  test('every problem of a document is told at once', () => {
    const { stderr } = planned(smoke.replace('timeout: 10m0s', 'timeOut: 1\n  colour: red'));
    expect(stderr.match(/^error: /gm)).toHaveLength(2);
  });

  test('an unknown fact', () => {
    expect(planned(smoke, '--facts', file('f.yaml', 'colour: red\n')).stderr).toMatch(
      /f.yaml: colour: found "red", allowed: .*poolUid/,
    );
  });

  test.each([
    ['poolUid', 'Not A UID', 'a UID'],
    ['authSecretRandom', 'ABC', '24 lower-case hexadecimal digits'],
    ['now', 'tomorrow', 'an instant that exists, as'],
  ])('a fact %s that the cluster would never have', (name, value, allowed) => {
    const { code, stdout, stderr } = planned(smoke, '--facts', file('f.yaml', `${name}: ${value}\n`));
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`${name}: found "${value}", allowed: ${allowed}`);
  });

  test.each([
    ['controllerEpoch', '"9999999999999999"', 'found "9999999999999999", allowed: a whole number from 1 to 9007199254740991'],
    ['poolUid', '0123', 'found 83, allowed: a UID, in quotes: without them YAML reads a number'],
    ['tokenGeneration', '1234567890123456', 'found 1234567890123456, allowed: 16 lower-case hexadecimal digits, in quotes'],
    ['now', '2026-02-30T08:00:00Z', 'found "2026-02-30T08:00:00Z", allowed: an instant that exists'],
    ['now', '2026-02-28T25:61:00Z', 'found "2026-02-28T25:61:00Z", allowed: an instant that exists'],
  ])('a fact %s: %s that would be rendered as another value', (name, value, says) => {
    const { code, stdout, stderr } = planned(smoke, '--facts', file('f.yaml', `${name}: ${value}\n`));
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`f.yaml: ${name}: ${says}`);
  });

  test.each([
    [['-f', '-'], '--filename'],
    [['-f', '/dev/stdin'], '--filename'],
    [['--facts', '-'], '--filename and --facts'],
    [['--class', '-'], '--filename and --class'],
    [['--platform', '-'], '--filename and --platform'],
  ])('standard input that is to be read twice: -f - %j', (more, field) => {
    const found = JSON.stringify(['-', more[1]]);
    expect(planned(smoke, ...more)).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: plan: ${field}: found ${found}, allowed: standard input once: it can be read only once\n`,
    });
  });

  test.each([
    ['is not there', () => join(folder, 'none.yaml'), 'no such file or directory'],
    ['is a folder', () => folder, 'a directory'],
    ['lies below a file', () => join(file('f.yaml', ''), 'g.yaml'), 'a part of the path is not a directory'],
    ['is no text', () => file('latin1.yaml', Buffer.from([0x6e, 0x3a, 0x20, 0xe9, 0x0a])), 'not UTF-8 text at byte 3'],
  ])('a file that %s, in words', (_, path, says) => {
    const name = path();
    expect(cli(['plan', '-f', name])).toEqual({ code: 2, stdout: '', stderr: `error: ${name}: ${says}\n` });
  });

  test('a file over the limit, with the flag that raises it', () => {
    const padded = `${smoke}# ${'x'.repeat(2000)}\n`;
    expect(planned(padded, '--max-input', '2k')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'error: standard input: found "more than 2000 bytes", allowed: at most 2000 bytes; --max-input raises the limit\n',
    });
    expect(planned(padded, '--max-input', '4Ki').code).toBe(0);
    expect(planned(smoke, '--max-input', 'much').stderr).toContain('--max-input: found "much", allowed: a size from 1 to 500Mi');
  });

  test('a file without an end', () => {
    expect(cli(['plan', '-f', '/dev/zero', '--max-input', '1Mi']).stderr).toContain('found "more than 1 MiB"');
  });

  test('a quantity that is a fraction without quotes, as the API server refuses it, with a hint', () => {
    const wanted = smoke.replace('  timeout: 10m0s', '  resources: { limits: { cpu: 0.5 } }\n  timeout: 10m0s');
    expect(planned(wanted).stderr).toContain(
      'spec.resources.limits.cpu: found 0.5, allowed: a quantity such as 250m, 4Gi or 2; put 0.5 in quotes',
    );
  });

  test('an unknown output', () => {
    expect(planned(smoke, '-o', 'xml')).toMatchObject({ code: 2, stdout: '' });
  });

  test('no file at all', () => {
    const stderr = "error: required option '-f, --filename <file>' not specified\n";
    expect(cli(['plan'])).toEqual({ code: 2, stdout: '', stderr });
  });

  test('a file without a name', () => {
    expect(cli(['plan', '-f', ''])).toEqual({ code: 2, stdout: '', stderr: 'error: "": no such file or directory\n' });
  });
});

test('the output is the same whatever the order of the documents and files', () => {
  const [agent = '', task = ''] = smoke.split('---\n');
  const files = [file('agent.yaml', agent), file('task.yaml', task)];
  const both = cli(['plan', '--assume-enabled', '-f', files[0]!, '-f', files[1]!, '-o', 'yaml']).stdout;
  expect(cli(['plan', '--assume-enabled', '-f', files[1]!, '-f', files[0]!, '-o', 'yaml']).stdout).toBe(both);
  expect(both.length).toBeGreaterThan(1000);
});

test('a list as kubectl prints it is read', () => {
  const indented = smoke
    .split('---\n')
    .map((document) => `- ${document.trim().replaceAll('\n', '\n  ')}`)
    .join('\n');
  expect(planned(`apiVersion: v1\nkind: List\nitems:\n${indented}\n`).code).toBe(0);
});

describe('read as kubectl reads it:', () => {
  const [agent = '', task = ''] = smoke.split('---\n');

  test('objects of other kinds are skipped, and a note in every form of output names them', () => {
    const namespace = 'apiVersion: v1\nkind: Namespace\nmetadata: { name: demo-magic }\n';
    const secret = 'apiVersion: v1\nkind: Secret\nmetadata: { name: key }\nstringData: { token: hidden }\n';
    const tekton = 'apiVersion: tekton.dev/v1\nkind: Task\nmetadata: { name: build }\n';
    const all = [namespace, secret, secret, tekton, smoke].join('---\n');
    const note = 'skipped Namespace, 2 Secret, Task: a plan reads Task, Agent, ConfigMap';
    expect(json(all)).toEqual({ ...json(smoke), notes: [note, ...json(smoke).notes] });
    expect(planned(all, '-o', 'yaml').stdout).toContain(`# note: ${note}\n`);
    expect(planned(all).stdout).toContain(`note      ${note}\n`);
  });

  test('the items of a typed list have its apiVersion and kind', () => {
    const items = (kind: string, text: string) =>
      `apiVersion: core.orka.ai/v1alpha1\nkind: ${kind}List\nitems:\n- ${text.split('\n').slice(2).join('\n').trim().replaceAll('\n', '\n  ')}\n`;
    expect(json(`${items('Agent', agent)}---\n${items('Task', task)}`)).toEqual(json(smoke));
  });

  test('the items of a list that are none are named', () => {
    expect(planned('apiVersion: v1\nkind: List\nitems: {}\n').stderr).toBe(
      'error: standard input, line 1: items: found {}, allowed: a list\n',
    );
    expect(json(`${smoke}---\napiVersion: v1\nkind: List\n`)).toEqual(json(smoke));
  });

  test('what is wrong with an item of a list is named by its position', () => {
    const list = `apiVersion: v1\nkind: List\nitems:\n- ${agent.trim().replaceAll('\n', '\n  ')}\n- 1\n`;
    expect(planned(list).stderr).toBe(
      'error: standard input, line 1, items[1]: found 1, allowed: a Kubernetes object with apiVersion and kind\n',
    );
  });

  test('a Task with generateName is planned under an example of its name, and a note says so', () => {
    const generated = smoke.replace('name: orka-live-sandbox-smoke', 'generateName: smoke-');
    const { verdict, pool, notes } = json(generated);
    expect({ verdict, pool }).toEqual({ verdict: 'accepted', pool: json(smoke).pool });
    expect(notes[0]).toBe(
      'Task smoke-xxxxx: the API server makes the last 5 characters of the name out of metadata.generateName',
    );
  });
});

describe('20,000 Agents in one file', () => {
  const agents = (count: number) =>
    Array.from({ length: count }, (_, n) =>
      smoke.slice(0, smoke.indexOf('---\n') + 4).replace('sandbox-codex-agent', `agent-${n}`),
    ).join('');

  test('give the same plan as the one that the Task names', () => {
    const many = file('many.yaml', `${agents(20_000)}${smoke}`);
    const { code, stdout } = cli(['plan', '--assume-enabled', '-f', many, '-o', 'json']);
    expect({ code, result: JSON.parse(stdout) as PlanResult }).toEqual({ code: 0, result: json(smoke) });
  });

  test('without the one that the Task names are refused by a short line', () => {
    const { code, stderr } = planned(`${agents(200)}${smoke.slice(smoke.indexOf('---'))}`);
    expect(code).toBe(2);
    expect(stderr).toContain('Agent demo-magic/agent-9 and 190 more)');
    expect(stderr.length).toBeLessThan(1000);
  });
});

describe('output that cannot be written', () => {
  const into = (redirection: string) =>
    spawnSync(
      'sh',
      [
        '-c',
        `"$0" lib/bin/orka-workspaces.js plan --assume-enabled -f examples/smoke.yaml -o yaml ${redirection}`,
        process.execPath,
      ],
      {
        encoding: 'utf8',
        env: { ...process.env, NODE_OPTIONS: '' },
      },
    );

  test('to a full disk is one line and exit code 2', () => {
    const { status, stderr } = into('>/dev/full');
    expect({ status, stderr }).toEqual({ status: 2, stderr: 'error: standard output: no space left on device\n' });
  });

  test('to a reader that has gone is no failure', () => {
    const { stdout, stderr } = into('| head -n 1');
    expect({ lines: stdout.split('\n').length, stderr }).toEqual({ lines: 2, stderr: '' });
  });

  test('of messages changes nothing of the result', () => {
    expect(into('2>/dev/full').status).toBe(0);
  });
});
