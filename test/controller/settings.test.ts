import { describe, expect, test } from '@jest/globals';
import { readSettings, SettingsError } from '../../src/controller/settings.js';
import type { Written, WrittenSettings } from '../../src/controller/settings.js';

const at = (from: string, text?: string): Written => (text === undefined ? { from } : { from, text });
const tasks = (...names: readonly string[]) => names.map((name) => at('--watch-namespace', name));

const good: WrittenSettings = {
  controllerNamespace: at('--controller-namespace', 'orka-system'),
  taskNamespaces: tasks('team-a', 'team-b'),
  runtimeNamespace: at('--acp-runtime-namespace', 'orka-runtimes'),
  apiPort: at('--api-port', '8080'),
  probePort: at('--probe-port', '8081'),
  idlePoolTtl: at('--acp-idle-pool-ttl', '15m'),
  maxTasksPerNamespace: at('--max-tasks-per-namespace', '0'),
  defaultProvider: at('--execution-workspace-default-provider', 'agent-sandbox'),
  agentSandboxEnabled: at('--agent-sandbox-enabled', 'false'),
  workspaceDispatchEnabled: at('--acp-workspace-dispatch-enabled', 'false'),
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
    defaultProvider: 'agent-sandbox',
    gates: { agentSandbox: false, workspaceDispatch: false },
    version: '1.2.3',
  });
});

test('each switch is its own', () => {
  expect(read({ agentSandboxEnabled: at('x', 'true') }).gates).toEqual({ agentSandbox: true, workspaceDispatch: false });
  expect(read({ workspaceDispatchEnabled: at('x', 'TRUE') }).gates).toEqual({ agentSandbox: false, workspaceDispatch: true });
});

test.each([
  ['90s', 90_000],
  ['1h30m', 5_400_000],
  ['1ms', 1],
])('an idle time of %s is %d milliseconds', (text, milliseconds) => {
  expect(read({ idlePoolTtl: at('--acp-idle-pool-ttl', text) }).idlePoolTtl).toBe(milliseconds);
});

test.each(['', '-1', '1.5', 'many'])('%j is no number of Tasks', (text) => {
  const written = { maxTasksPerNamespace: at('--max-tasks-per-namespace', text) };
  expect(() => read(written)).toThrow(/^controller: --max-tasks-per-namespace: found .*, allowed: a number from 0/);
});

describe('refused, with where it was written, what was found and what is allowed:', () => {
  test.each<[string, Partial<WrittenSettings>, string]>([
    [
      'no namespace of the controller',
      { controllerNamespace: at('--controller-namespace') },
      'controller: --controller-namespace: found nothing, allowed: the name of a namespace',
    ],
    [
      'a namespace that is no DNS label',
      { taskNamespaces: [at('ORKA_WATCH_NAMESPACE', 'Team_A')] },
      'controller: ORKA_WATCH_NAMESPACE: found "Team_A", allowed: the name of a namespace',
    ],
    [
      'a namespace of Tasks twice',
      { taskNamespaces: tasks('team-a', 'team-b', 'team-a') },
      'controller: --watch-namespace: found "team-a", allowed: each namespace once',
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
      'controller: --probe-port: found "8080", allowed: a port other than that of the API',
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
      /^controller: --api-port: found .*, allowed: a port from 1 to 65535$/,
    );
  });

  test.each(['', '0', '0s', '15', '-15m', '1d', '999us'])('%j as an idle time', (text) => {
    expect(() => read({ idlePoolTtl: at('--acp-idle-pool-ttl', text) })).toThrow(
      /^controller: --acp-idle-pool-ttl: found .*, allowed: a duration of at least 1ms/,
    );
  });
});
