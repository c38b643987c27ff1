import { describe, expect, test } from '@jest/globals';
import { Command } from 'commander';
import fc from 'fast-check';
import { settingsFrom } from '../../src/cli/controller-flags.js';
import { controllerOptions } from '../../src/cli/controller-options.js';
import { SettingsError } from '../../src/controller/settings.js';
import type { ControllerSettings } from '../../src/controller/settings.js';
import { argumentsOf, defaultOf, settingNames, settings, settingsOf } from '../../src/domain/settings.js';
import type { Setting, SettingName } from '../../src/domain/settings.js';
import { CodedError } from '../../src/lib/errors.js';
import { isObject } from '../../src/lib/json.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { distFiles } from '../../src/render/dist.js';
import { platformSchema, readPlatform } from '../../src/render/platform.js';
import type { Platform } from '../../src/render/platform.js';
import { readYaml } from '../../src/render/yaml-read.js';

type Values = Readonly<Partial<Record<SettingName, Json>>>;

const base: Values = {
  controllerNamespace: 'orka-system',
  taskNamespaces: ['team-a', 'team-b'],
  runtimeNamespace: 'orka-runtimes',
};
const withKey = settingNames.filter((name) => 'key' in settings[name]);

/** platform.yaml with these settings, as JSON. */
function platformText(values: Values): string {
  const platform: Record<string, Json> = {
    version: 1,
    namespaces: {},
    controller: { image: `registry.example/controller@sha256:${'c'.repeat(64)}` },
    classes: {},
  };
  for (const name of withKey) {
    const { key = '' }: Setting = settings[name];
    const value = values[name];
    if (value !== undefined) place(platform, key.split('.'), value);
  }
  return JSON.stringify(platform);
}

function place(object: Record<string, Json>, [first = '', ...rest]: readonly string[], value: Json): void {
  if (rest.length === 0) object[first] = value;
  else place((object[first] ??= {}) as Record<string, Json>, rest, value);
}

/** The platform, or the error that refuses it. */
function synthesized(values: Values): Platform | CodedError<string> {
  try {
    return readPlatform(platformText(values), 'platform.yaml');
  } catch (error) {
    if (error instanceof CodedError) return error as CodedError<string>;
    throw error;
  }
}

/** What the controller reads from arguments, or the error that refuses them. */
function started(args: readonly string[]): ControllerSettings | SettingsError {
  const command = new Command('controller').exitOverride();
  for (const option of controllerOptions()) command.addOption(option);
  command.parse([...args], { from: 'user' });
  try {
    return settingsFrom(command, '1.2.3');
  } catch (error) {
    if (error instanceof SettingsError) return error;
    throw error;
  }
}

/** The arguments of the Deployment that synth writes, without the name of the command. */
function deploymentArguments(platform: Platform): readonly string[] {
  const install = distFiles(platform).find(({ path }) => path === 'apply/0001-install.k8s.yaml')?.text ?? '';
  const deployment = readYaml(install, 'install').find(({ value }) => isObject(value) && value['kind'] === 'Deployment');
  const { spec } = deployment?.value as unknown as {
    readonly spec: {
      readonly template: { readonly spec: { readonly containers: readonly { readonly args: readonly string[] }[] } };
    };
  };
  return spec.template.spec.containers[0]?.args.slice(1) ?? [];
}

const labels = fc.constantFrom('orka-system', 'team-a', 'team-b', 'orka-runtimes', '0', 'a'.repeat(63));
const badLabels = fc.constantFrom('', 'A', 'team_a', '-a', 'a-', 'a.b', 'a'.repeat(64), 'a b', 'a,b');
const port = fc.oneof(fc.integer({ min: 1, max: 65535 }), fc.constantFrom(1, 8080, 8081, 65535));
const badPort = fc.oneof(fc.integer({ max: 0 }), fc.integer({ min: 65536 }), fc.constant(80.5));
const unit = fc.constantFrom('ns', 'us', 'µs', 'ms', 's', 'm', 'h');
const amount = fc.oneof(
  fc.nat().map(String),
  fc.tuple(fc.nat(), fc.nat()).map(([whole, part]) => `${whole}.${part}`),
);
const duration = fc
  .array(fc.tuple(amount, unit), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.map(([count, of]) => `${count}${of}`).join(''));
const badDuration = fc.constantFrom(
  '0s',
  '0',
  '',
  '0h0m0.00s',
  '15',
  '-15m',
  '1d',
  '1h ',
  ' 1h',
  '1H',
  '1,5h',
  `${'1'.repeat(64)}h`,
);
const flag = fc.boolean();

/** Values of the type of each setting, some of them out of its bounds. */
const candidates: Readonly<Record<SettingName, fc.Arbitrary<Json>>> = {
  controllerNamespace: fc.oneof(labels, badLabels),
  taskNamespaces: fc.oneof(
    fc.array(labels, { minLength: 1, maxLength: 3 }),
    fc.array(fc.oneof(labels, badLabels), { minLength: 1 }),
  ),
  runtimeNamespace: fc.oneof(labels, badLabels),
  apiPort: fc.oneof(port, badPort),
  probePort: port,
  idlePoolTtl: fc.oneof(duration, badDuration),
  maxTasksPerNamespace: fc.oneof(fc.integer({ min: 0, max: 999_999 }), fc.constantFrom(-1, 1_000_000, 1.5)),
  taskTtlSeconds: fc.oneof(fc.integer({ min: -1, max: 999_999_999 }), fc.constantFrom(-2, 1_000_000_000, 1.5)),
  defaultProvider: fc.constantFrom('agent-sandbox', 'substrate', 'docker', ''),
  agentSandboxEnabled: flag,
  workspaceDispatchEnabled: flag,
  forges: fc.array(fc.constantFrom('github.com', 'git.example:8443', 'Git.example', 'git.example:65536', 'https://a')),
  publisherNamespace: fc.oneof(labels, fc.constant('')),
};
const combinations = fc.record(Object.fromEntries(withKey.map((name) => [name, candidates[name]])), {
  requiredKeys: ['controllerNamespace', 'taskNamespaces', 'runtimeNamespace'],
}) as fc.Arbitrary<Values>;

test('the controller starts with the arguments that synth writes for any platform that synth accepts', () => {
  const sane = fc.tuple(combinations, fc.boolean()).map(([values, mostly]) => (mostly ? { ...values, ...base } : values));
  const outcomes = new Set<boolean>();
  fc.assert(
    fc.property(sane, (values) => {
      const platform = synthesized(values);
      outcomes.add(platform instanceof CodedError);
      if (platform instanceof CodedError) return;
      const args = argumentsOf(settingsOf({ ...platform.controller, namespaces: platform.namespaces }));
      const { namespaces, controller } = platform;
      expect(started(args)).toMatchObject({
        controllerNamespace: namespaces.controller,
        taskNamespaces: namespaces.tasks,
        runtimeNamespace: namespaces.runtime,
        apiPort: controller.apiPort,
        maxTasksPerNamespace: controller.maxTasksPerNamespace ?? 0,
        taskTtlSeconds: controller.taskTtlSeconds ?? -1,
        defaultProvider: controller.defaultProvider,
        gates: controller.gates,
      });
    }),
    { numRuns: 500 },
  );
  expect(outcomes).toEqual(new Set([true, false]));
});

test('the arguments of the Deployment are those of the settings', () => {
  const platform = synthesized({ ...base, idlePoolTtl: '20m', maxTasksPerNamespace: 7, agentSandboxEnabled: true });
  if (platform instanceof CodedError) throw platform;
  expect(deploymentArguments(platform)).toEqual(
    argumentsOf(settingsOf({ ...platform.controller, namespaces: platform.namespaces })),
  );
});

describe.each(withKey)('synth and the controller agree about a value of %s', (name) => {
  const { flag: flagName }: Setting = settings[name];
  const others = settingNames.filter((other) => other !== name && base[other] !== undefined);

  test('that stands alone', () => {
    fc.assert(
      fc.property(candidates[name], (value) => {
        const args = [
          ...argumentsOf(Object.fromEntries(others.map((other) => [other, base[other]]))),
          ...[value].flat().map((item) => `${flagName}=${JSON.stringify(item).replaceAll('"', '')}`),
        ];
        const platform = synthesized({ ...base, [name]: value });
        expect([value, started(args) instanceof SettingsError]).toEqual([value, platform instanceof CodedError]);
      }),
      { numRuns: 200 },
    );
  });
});

describe('platform.yaml', () => {
  test.each(withKey)('has the schema of %s at its key, and its default', (name) => {
    const { key = '', schema, flagDefault }: Setting = settings[name];
    const steps = key.split('.');
    const found = steps.reduce<JsonObject | undefined>(
      (node, step) => (node?.['properties'] as JsonObject | undefined)?.[step] as JsonObject | undefined,
      platformSchema as unknown as JsonObject,
    );
    expect(found).toMatchObject(JSON.parse(JSON.stringify(schema)) as JsonObject);
    const platform = synthesized(base);
    if (platform instanceof CodedError) throw platform;
    const values: Values = settingsOf({ ...platform.controller, namespaces: platform.namespaces });
    if (flagDefault === undefined && !(name in base)) expect(values[name] ?? defaultOf(name)).toBe(defaultOf(name));
  });

  test.each([
    ['idlePoolTtl', '0s', 'a duration above 0, such as 90s, 15m or 1h30m, at most 64 characters'],
    ['apiPort', 0, 'an integer from 1 to 65535'],
    ['apiPort', 8081, 'a port other than that of metrics and probes'],
    ['maxTasksPerNamespace', -1, 'an integer from 0 to 999999'],
    ['defaultProvider', 'substrate', 'agent-sandbox'],
  ] as const)('refuses %s %j in the words of the controller', (name, value, allowed) => {
    const { key, flag: flagName }: Setting = settings[name];
    const platform = synthesized({ ...base, [name]: value });
    expect(platform).toMatchObject({ finding: { at: 'platform.yaml', field: key, found: value, allowed } });
    expect(started([...argumentsOf(base as object), `${flagName}=${value}`])).toMatchObject({
      finding: { at: 'controller', field: flagName, found: String(value), allowed },
    });
  });
});
