import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isObject } from '../../src/lib/json.js';
import { readYaml } from '../../src/render/yaml-read.js';
import { cli } from '../support/cli.js';

/** Outside of a Pod, so that settings that can be used lead to this and no further. */
const accepted = 'error: environment: KUBERNETES_SERVICE_HOST: found nothing, allowed: a Pod, or a kubeconfig\n';
const noPod = { KUBERNETES_SERVICE_HOST: undefined, KUBERNETES_SERVICE_PORT: undefined };
const names = ['--controller-namespace', 'orka-system', '--watch-namespace', 'team-a'];

function says(args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
  const { code, stdout, stderr } = cli(['controller', ...args], { env: { ...noPod, ...env } });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  return stderr;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'orka-controller-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function deploymentArguments(install: string): readonly string[] {
  const deployment = readYaml(install, 'install').find(({ value }) => isObject(value) && value['kind'] === 'Deployment');
  const { spec } = deployment?.value as unknown as {
    spec: { template: { spec: { containers: { args: readonly string[] }[] } } };
  };
  return spec.template.spec.containers[0]?.args ?? [];
}

test('two names are enough', () => {
  expect(says(names)).toBe(accepted);
});

test('the arguments of the Deployment that synth writes are those of the command', () => {
  const [command, ...args] = deploymentArguments(readFileSync('dist/apply/0001-install.k8s.yaml', 'utf8'));
  expect(command).toBe('controller');
  expect(says(args)).toBe(accepted);
});

test.each(['--agent-sandbox-enabled', '--acp-workspace-dispatch-enabled'])('%s is written alone or with a value', (flag) => {
  for (const form of [flag, `${flag}=true`, `${flag}=false`]) expect(says([...names, form])).toBe(accepted);
  expect(says([...names, `${flag}=on`])).toBe(`error: controller: ${flag}: found "on", allowed: true or false\n`);
});

describe('refused with the flag, what was found and what is allowed:', () => {
  test.each([
    ['no namespace of the controller', ['--watch-namespace', 'a'], '--controller-namespace: found nothing'],
    ['no namespace of Tasks', ['--controller-namespace', 'a'], '--watch-namespace: found nothing'],
    ['a list where a flag takes one name', [...names, '--watch-namespace', 'a,b'], '--watch-namespace: found "a,b"'],
    ['a namespace twice', [...names, '--watch-namespace', 'team-a'], '--watch-namespace: found "team-a"'],
    ['the port of the API', [...names, '--api-port', 'http'], '--api-port: found "http"'],
    ['the port of the probes', [...names, '--probe-port', '8080'], '--api-port: found "8080"'],
    ['an idle time', [...names, '--acp-idle-pool-ttl', '15'], '--acp-idle-pool-ttl: found "15"'],
    [
      'a provider',
      [...names, '--execution-workspace-default-provider', 'docker'],
      '--execution-workspace-default-provider: found "docker"',
    ],
  ])('%s', (_, args, message) => {
    expect(says(args)).toContain(`error: controller: ${message}, allowed: `);
  });

  test('a flag of the reference that means nothing here', () => {
    expect(says([...names, '--leader-elect'])).toContain("unknown option '--leader-elect'");
  });
});

describe('an environment variable', () => {
  test('counts when there is no flag, and is named when it cannot be used', () => {
    expect(says(names, { ORKA_ACP_IDLE_POOL_TTL: '15' })).toContain('controller: ORKA_ACP_IDLE_POOL_TTL: found "15"');
  });

  test('does not count beside a flag', () => {
    expect(says([...names, '--acp-idle-pool-ttl', '20m'], { ORKA_ACP_IDLE_POOL_TTL: '15' })).toBe(accepted);
  });

  test('that is empty counts as none', () => {
    expect(says(names, { ORKA_ACP_RUNTIME_NAMESPACE: '', ORKA_WATCH_NAMESPACE: '' })).toBe(accepted);
  });

  test('lists the namespaces of Tasks with commas', () => {
    const env = { ORKA_CONTROLLER_NAMESPACE: 'orka-system' };
    expect(says([], { ...env, ORKA_WATCH_NAMESPACE: 'team-a, team-b,' })).toBe(accepted);
    expect(says([], { ...env, ORKA_WATCH_NAMESPACE: 'team-a,team-a' })).toContain(
      'controller: ORKA_WATCH_NAMESPACE: found "team-a", allowed: each item once',
    );
  });

  test('that a Service of the name orka-api makes is not taken for a port', () => {
    expect(says(names, { ORKA_API_PORT: 'tcp://10.96.0.7:8080' })).toBe(accepted);
  });
});

describe('a kubeconfig', () => {
  const using = (text: string) => {
    const file = join(folder, 'config');
    writeFileSync(file, text);
    return says([...names, '--kubeconfig', file]).replace(file, 'config');
  };

  test('that is not there is refused by its name', () => {
    expect(says([...names, '--kubeconfig', 'none'])).toMatch(/^error: none: no such file or directory$/m);
  });

  test.each([
    ['is empty', '', /^error: config: found null, allowed: a kubeconfig/],
    ['is two documents', 'a: 1\n---\nb: 1\n', /^error: config: found "2 documents", allowed: one document/],
    ['has no context', 'apiVersion: v1\nkind: Config\n', /^error: config: contexts: found nothing/],
  ])('that %s is refused', (_, text, message) => {
    expect(using(text)).toMatch(message);
  });
});

test.each(['a name with a space', '[host'])('it ends when it fails after its probe port is open: API server %j', async (host) => {
  const env = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: '443' };
  const { code, stdout, stderr } = cli(['controller', ...names, '--probe-port', String(await freePort())], { env });
  expect({ code, stdout }).toEqual({ code: 70, stdout: '' });
  expect(stderr).toContain('Invalid URL');
});

test('help names each variable and shows examples', () => {
  const { code, stdout } = cli(['controller', '--help']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/Examples:\n {2}\$ /);
  expect(stdout.match(/ORKA_\w+/g)).toEqual([
    'ORKA_CONTROLLER_NAMESPACE',
    'ORKA_WATCH_NAMESPACE',
    'ORKA_ACP_RUNTIME_NAMESPACE',
    'ORKA_ACP_IDLE_POOL_TTL',
    'ORKA_MAX_TASKS_PER_NAMESPACE',
    'ORKA_TASK_TTL_SECONDS_AFTER_FINISHED',
    'ORKA_EXECUTION_WORKSPACE_DEFAULT_PROVIDER',
    'ORKA_AGENT_SANDBOX_ENABLED',
    'ORKA_ACP_WORKSPACE_DISPATCH_ENABLED',
    'ORKA_SOURCE_FORGES',
    'ORKA_PUBLISHER_NAMESPACE',
    'ORKA_LOG_LEVEL',
  ]);
});

test('no other command loads what only the controller needs', () => {
  /** The files that a file of the bundle loads before its first line. */
  const loaded = (file: string, before: ReadonlySet<string> = new Set()): ReadonlySet<string> => {
    if (before.has(file)) return before;
    const imports = readFileSync(join('lib/bin', file), 'utf8').matchAll(/^(?:import|} from|export) ?[^\n]*?"\.\/([^"]+)";$/gm);
    const all = [...imports].map(([, next = '']) => next);
    return all.reduce<ReadonlySet<string>>((known, next) => loaded(next, known), new Set([...before, file]));
  };
  const commands = readFileSync('lib/bin/orka-workspaces.js', 'utf8').matchAll(/import\("\.\/((?:plan|synth|check)-\w+\.js)"\)/g);
  const files = [...commands].flatMap(([, file = '']) => [...loaded(file)]);
  expect(files.length).toBeGreaterThan(5);
  for (const file of new Set(['orka-workspaces.js', ...files]))
    expect(readFileSync(join('lib/bin', file), 'utf8')).not.toMatch(/node_modules\/(pino|prom-client)\//);
});
