import { expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { deployedIdentity } from '../../src/domain/deployed.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { pod } from '../support/pool-observation.js';

const container = ((pod.live['spec'] as JsonObject)['containers'] as readonly JsonObject[])[0]!;
const environment = container['env'] as readonly JsonObject[];
/** The rendered Pod with another environment and other annotations. */
const changed = (env: Json, annotations: Readonly<Record<string, string>> = {}): Manifest => ({
  ...pod.live,
  metadata: { ...pod.live.metadata, annotations: { ...pod.live.metadata.annotations, ...annotations } },
  spec: { ...(pod.live['spec'] as JsonObject), containers: [{ ...container, env }] },
});
const having = (name: string, row: JsonObject): Json => environment.map((one) => (one['name'] === name ? { name, ...row } : one));

test('a rendered Pod says what it was started as', () => {
  expect(deployedIdentity(pod.live)).toEqual({
    controllerEpoch: 7,
    poolGeneration: 1,
    profileDigest: pod.live.metadata.annotations?.['orka.ai/runtime-profile-digest'],
    tokenGeneration: '0123456789abcdef',
  });
});

test.each([
  'ORKA_ACP_CONTROLLER_EPOCH',
  'ORKA_ACP_RUNTIME_POOL_GENERATION',
  'ORKA_ACP_RUNTIME_PROFILE_DIGEST',
  'ORKA_ACP_PROVIDER_TOKEN_GENERATION',
])('without %s there is no identity', (name) => {
  expect(deployedIdentity(changed(environment.filter((row) => row['name'] !== name)))).toBeUndefined();
});

test('a value from elsewhere is none', () => {
  const from = { valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } };
  expect(deployedIdentity(changed(having('ORKA_ACP_RUNTIME_PROFILE_DIGEST', from)))).toBeUndefined();
});

test.each(['0', '-1', '1.5', 'x', '9007199254740993'])('%s is no epoch', (value) => {
  expect(deployedIdentity(changed(having('ORKA_ACP_CONTROLLER_EPOCH', { value })))).toBeUndefined();
});

test.each(['orka.ai/runtime-profile-digest', 'orka.ai/provider-token-generation'])(
  'an annotation %s that disagrees with the environment leaves no identity',
  (name) => {
    expect(deployedIdentity(changed(environment, { [name]: 'another' }))).toBeUndefined();
  },
);

test('a container that admission put first says nothing', () => {
  const spec = pod.live['spec'] as JsonObject;
  const containers = [{ name: 'proxy', env: [{ name: 'ORKA_ACP_CONTROLLER_EPOCH', value: '8' }] }, container];
  expect(deployedIdentity({ ...pod.live, spec: { ...spec, containers } })).toEqual(deployedIdentity(pod.live));
});

test('a Pod without containers has no identity', () => {
  expect(deployedIdentity({ ...pod.live, spec: {} })).toBeUndefined();
});
