import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultOf } from '../../src/domain/settings.js';
import { isObject } from '../../src/lib/json.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { platformJsonSchema } from '../../src/render/platform-json-schema.js';
import { readPlatform } from '../../src/render/platform.js';
import { readYaml } from '../../src/render/yaml-read.js';

const file = readFileSync('platform.yaml', 'utf8');
const valueOf = (text: string) => readYaml(text, 'platform.yaml')[0]?.value;
const schema = platformJsonSchema();
const accepts = new Ajv({ strict: true, allowUnionTypes: true }).compile(schema);
const controllerWith = (line: string) => file.replace(/^controller:$/m, `controller:\n  ${line}`);
const classWith = (line: string) => file.replace('    providerKind: codex', `    providerKind: codex\n    ${line}`);

/** Files with the settings of an installation: platform.yaml, those of examples and docs, and blocks of pages that are whole files. */
function platforms(): readonly (readonly [string, string])[] {
  const all = ['.', 'examples', 'docs', 'gitops'].flatMap((folder) =>
    readdirSync(folder, { recursive: folder !== '.' }).map((name) => join(folder, String(name))),
  );
  const whole = all
    .filter((name) => /platform[^/]*\.ya?ml$/.test(name))
    .map((name) => [name, readFileSync(name, 'utf8')] as const);
  const blocks = all
    .filter((name) => name.endsWith('.md'))
    .flatMap((name) =>
      [...readFileSync(name, 'utf8').matchAll(/^```yaml\n([^]*?)^```/gm)].map(([, text = '']) => [name, text] as const),
    );
  return [...whole, ...blocks.filter(([, text]) => /^version: 1$/m.test(text) && /^classes:/m.test(text))];
}

test('accepts every platform.yaml of this repository', () => {
  const all = platforms();
  expect(all.map(([name]) => name)).toContain('platform.yaml');
  for (const [name, text] of all) {
    accepts(valueOf(text));
    expect([name, accepts.errors ?? []]).toEqual([name, []]);
  }
});

describe('refuses, as synth does,', () => {
  test.each([
    ['an unknown key', file.replace('version: 1', 'version: 1\ncolour: red')],
    ['an unknown key of a class', classWith('pod: {cpu: 2}')],
    ['another version', file.replace('version: 1', 'version: 2')],
    ['an image with a tag', file.replace(/@sha256:c0dec0de\w*/, ':latest')],
    ['a class without a runtime', file.replace(/ {4}runtime:[\s\S]*$/, '')],
    ['no namespace of Tasks', file.replace('[demo-magic]', '[]')],
    ['a namespace twice', file.replace('[demo-magic]', '[demo-magic, demo-magic]')],
    ['an idle time of nothing', controllerWith('idlePoolTtl: 0s')],
    ['a port out of range', controllerWith('api: {port: 0}')],
    ['a switch in words', controllerWith('paused: "yes"')],
    ['a provider that this version does not run', controllerWith('defaultProvider: substrate')],
    ['a value of nothing', controllerWith('replicas: null')],
    ['a quantity in words', classWith('pod: {volumes: {tmp: much}}')],
  ])('%s', (_, text) => {
    expect(accepts(valueOf(text))).toBe(false);
    expect(() => readPlatform(text, 'platform.yaml')).toThrow();
  });
});

test.each([
  ['settings', controllerWith('idlePoolTtl: 1h\n  replicas: 2\n  maxTasksPerNamespace: 0\n  api: {port: 9090}')],
  ['quantities as numbers', classWith('pod: {resources: {limits: {cpu: 2, memory: 8Gi}}}')],
  [
    'patches with any value',
    classWith('patches: [{target: {kind: SandboxTemplate}, operations: [{op: add, path: /spec/x, value: null}]}]'),
  ],
])('accepts %s, as synth does', (_, text) => {
  expect(accepts(valueOf(text))).toBe(true);
  expect(() => readPlatform(text, 'platform.yaml')).not.toThrow();
});

/** Every key of a schema with its own schema. */
function keys(node: JsonObject, path = ''): readonly (readonly [string, JsonObject])[] {
  const members = isObject(node['properties']) ? Object.entries(node['properties']) : [];
  const values = isObject(node['additionalProperties']) ? [['*', node['additionalProperties']] as const] : [];
  return [...members, ...values].flatMap(([name, member]) => {
    if (!isObject(member)) return [];
    const at = path === '' ? name : `${path}.${name}`;
    return [[at, member] as const, ...keys(member, at)];
  });
}

test('describes every key of the installation', () => {
  const own = keys(schema).filter(([at]) => !at.includes('*'));
  expect(own.length).toBeGreaterThan(20);
  expect(own.filter(([, { description }]) => typeof description !== 'string').map(([at]) => at)).toEqual([]);
});

test('names the defaults that synth fills in: writing them out changes nothing', () => {
  const withDefaults = (node: JsonObject, value: Json | undefined): Json | undefined => {
    const members = isObject(node['properties']) ? node['properties'] : undefined;
    const each = node['additionalProperties'];
    if (isObject(value) && isObject(each))
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withDefaults(each, member)]));
    if (!members || (value !== undefined && !isObject(value))) return value ?? node['default'];
    const filled = Object.entries(members).flatMap(([name, member]): [string, Json][] => {
      const one = withDefaults(member as JsonObject, value?.[name]);
      return one === undefined ? [] : [[name, one]];
    });
    return filled.length > 0 || value !== undefined ? Object.fromEntries(filled) : undefined;
  };
  const { controller, ...rest } = (valueOf(file) ?? {}) as JsonObject;
  const whole = withDefaults(schema, { ...rest, controller }) as JsonObject;
  // Ports alone are no apiServer: its addresses have no default.
  const { apiServer: _apiServer, ...controllerWhole } = whole['controller'] as JsonObject;
  const written = readPlatform(JSON.stringify({ ...whole, controller: controllerWhole }), 'platform.yaml');
  const left = readPlatform(file, 'platform.yaml');
  // Arguments that synth leaves out have the same defaults in the controller.
  const ofFlags = { maxTasksPerNamespace: defaultOf('maxTasksPerNamespace'), taskTtlSeconds: defaultOf('taskTtlSeconds') };
  expect(written).toEqual({ ...left, controller: { ...left.controller, ...ofFlags } });
  expect((whole['controller'] as JsonObject)['idlePoolTtl']).toBe('15m');
  expect(JSON.stringify(whole['classes'])).toContain('"sessions":"4Gi"');
});
