import { describe, expect, test } from '@jest/globals';
import { readSettings, SettingsError } from '../../src/controller/settings.js';
import type { Written, WrittenSettings } from '../../src/controller/settings.js';

const at = (from: string, ...texts: readonly string[]): readonly Written[] => texts.map((text) => ({ from, text }));
const tasks = (...names: readonly string[]) => at('--watch-namespace', ...names);

const good: WrittenSettings = {
  controllerNamespace: at('--controller-namespace', 'orka-system'),
  taskNamespaces: tasks('team-a', 'team-b'),
  runtimeNamespace: at('--acp-runtime-namespace', 'orka-runtimes'),
  apiPort: at('--api-port', '8080'),
  probePort: at('--probe-port', '8081'),
  idlePoolTtl: at('--acp-idle-pool-ttl', '15m'),
  maxTasksPerNamespace: at('--max-tasks-per-namespace', '0'),
  taskTtlSeconds: at('--task-ttl-seconds-after-finished', '-1'),
  defaultProvider: at('--execution-workspace-default-provider', 'agent-sandbox'),
  agentSandboxEnabled: at('--agent-sandbox-enabled', 'false'),
  workspaceDispatchEnabled: at('--acp-workspace-dispatch-enabled', 'false'),
  forges: at('--source-forge'),
  publisherNamespace: at('--publisher-namespace', ''),
};
const read = (changed: Partial<WrittenSettings> = {}) => readSettings({ ...good, ...changed }, '1.2.3');

test('settings are read as numbers, milliseconds and switches', () => {
  expect(read()).toEqual({
    controllerNamespace: 'orka-system',
    taskNamespaces: ['team-a', 'team-b'],
    runtimeNamespace: 'orka-runtimes',
    apiPort: 8080,
    probePort: 8081,
    idlePoolTtl: 900_000,
    maxTasksPerNamespace: 0,
    taskTtlSeconds: -1,
    defaultProvider: 'agent-sandbox',
    gates: { agentSandbox: false, workspaceDispatch: false },
    forges: [],
    publisherNamespace: '',
    version: '1.2.3',
  });
});

test('forges are hosts, with or without a port', () => {
  const forges = ['github.com', 'git.example:8443'];
  expect(read({ forges: at('--source-forge', ...forges) }).forges).toEqual(forges);
});

test.each(['GitHub.com', 'https://github.com', 'git.example:0', 'git.example:65536', 'git.example/team', '*.example', ''])(
  '%j is no forge',
  (text) => {
    expect(() => read({ forges: at('ORKA_SOURCE_FORGES', 'github.com', text) })).toThrow(
      /^controller: ORKA_SOURCE_FORGES: found ".*", allowed: .*host/,
    );
  },
);

test('each switch is its own', () => {
  expect(read({ agentSandboxEnabled: at('x', 'true') }).gates).toEqual({ agentSandbox: true, workspaceDispatch: false });
  expect(read({ workspaceDispatchEnabled: at('x', 'TRUE') }).gates).toEqual({ agentSandbox: false, workspaceDispatch: true });
});

test.each([
  ['90s', 90_000],
  ['1h30m', 5_400_000],
  ['1ms', 1],
  ['1ns', 1],
])('an idle time of %s is %d milliseconds', (text, milliseconds) => {
  expect(read({ idlePoolTtl: at('--acp-idle-pool-ttl', text) }).idlePoolTtl).toBe(milliseconds);
});

test.each(['', '-1', '1.5', 'many'])('%j is no number of Tasks', (text) => {
  const written = { maxTasksPerNamespace: at('--max-tasks-per-namespace', text) };
  expect(() => read(written)).toThrow(/^controller: --max-tasks-per-namespace: found .*, allowed: an integer from 0 to 999999/);
});

describe('refused, with where it was written, what was found and what is allowed:', () => {
  test.each<[string, Partial<WrittenSettings>, string]>([
    [
      'no namespace of the controller',
      { controllerNamespace: at('--controller-namespace') },
      'controller: --controller-namespace: found nothing, allowed: a DNS label: lower-case letters, digits and "-", starting and ending with a letter or digit, at most 63 characters',
    ],
    [
      'a namespace that is no DNS label',
      { taskNamespaces: at('ORKA_WATCH_NAMESPACE', 'Team_A') },
      'controller: ORKA_WATCH_NAMESPACE: found "Team_A", allowed: a DNS label: lower-case letters, digits and "-", starting and ending with a letter or digit, at most 63 characters',
    ],
    [
      'a namespace of Tasks twice',
      { taskNamespaces: tasks('team-a', 'team-b', 'team-a') },
      'controller: --watch-namespace: found "team-a", allowed: each item once',
    ],
    [
      'Tasks beside the controller',
      { taskNamespaces: tasks('team-a', 'orka-system') },
      'controller: --watch-namespace: found "orka-system", allowed: a namespace other than that of the controller',
    ],
    [
      'sandboxes beside the controller',
      { runtimeNamespace: at('--acp-runtime-namespace', 'orka-system') },
      'controller: --acp-runtime-namespace: found "orka-system", allowed: a namespace that holds neither the controller nor Tasks',
    ],
    [
      'sandboxes beside Tasks',
      { runtimeNamespace: at('--acp-runtime-namespace', 'team-b') },
      'controller: --acp-runtime-namespace: found "team-b", allowed: a namespace that holds neither the controller nor Tasks',
    ],
    [
      'one port for two things',
      { probePort: at('--probe-port', '8080') },
      'controller: --api-port: found "8080", allowed: a port other than that of metrics and probes',
    ],
    [
      'a provider that nobody knows',
      { defaultProvider: at('--execution-workspace-default-provider', 'docker') },
      'controller: --execution-workspace-default-provider: found "docker", allowed: agent-sandbox',
    ],
    [
      'a provider that this version does not run',
      { defaultProvider: at('--execution-workspace-default-provider', 'substrate') },
      'controller: --execution-workspace-default-provider: found "substrate", allowed: agent-sandbox',
    ],
    [
      'a switch that is neither on nor off',
      { agentSandboxEnabled: at('ORKA_AGENT_SANDBOX_ENABLED', 'yes') },
      'controller: ORKA_AGENT_SANDBOX_ENABLED: found "yes", allowed: true or false',
    ],
  ])('%s', (_, changed, message) => {
    expect(() => read(changed)).toThrow(new SettingsError('setting-invalid', { at: message }));
  });

  test.each(['', '0', '65536', '-1', '80.5', '8080x', ' 8080', '0x50', '1e3', 'tcp://10.0.0.1:8080'])('%j as a port', (text) => {
    expect(() => read({ apiPort: at('--api-port', text) })).toThrow(
      /^controller: --api-port: found .*, allowed: an integer from 1 to 65535$/,
    );
  });

  test.each(['', '0', '0s', '0h0.0s', '15', '-15m', '1d'])('%j as an idle time', (text) => {
    expect(() => read({ idlePoolTtl: at('--acp-idle-pool-ttl', text) })).toThrow(
      /^controller: --acp-idle-pool-ttl: found .*, allowed: a duration above 0, such as/,
    );
  });
});
