import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { watchTokens } from '../../src/controller/tokens.js';
import type { Tokens } from '../../src/controller/tokens.js';
import { createClient } from '../../src/kube/client.js';
import { createTransport } from '../../src/kube/transport.js';
import type { Transport } from '../../src/kube/transport.js';
import { eventually } from '../support/eventually.js';
import { fakeApi } from '../support/fake-api.js';
import type { FakeApi } from '../support/fake-api.js';
import { fakeObjects } from '../support/fake-objects.js';

const secrets = '/api/v1/namespaces/orka-system/secrets';
const secret = (token: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'proxy' }, data: { token } });
const named = (name: string) =>
  ({
    kind: 'RuntimePoolClass',
    metadata: { name: 'codex' },
    spec: { providerProxy: { tokenSecretRef: { name, key: 'token' } } },
  }) as unknown as Manifest;

const objects = fakeObjects();
const asked: string[] = [];
let api: FakeApi;
let transport: Transport;
let tokens: Tokens;
let changes = 0;
beforeEach(async () => {
  api = await fakeApi((request, response) => {
    asked.push(decodeURIComponent(`${request.path}?${String(request.query)}`));
    objects.answer(request, response);
  });
  transport = createTransport({ server: api.url, credentials: () => ({}) });
  changes = 0;
  tokens = watchTokens(createClient(transport), {
    namespace: 'orka-system',
    onChange: () => (changes += 1),
    onError: () => undefined,
  });
});
afterEach(async () => {
  await tokens.stop();
  transport.close();
  await api.close();
});

test('a Secret that a class names is watched by its name alone, and a change of it is told', async () => {
  objects.put(secrets, secret('b25l'));
  tokens.follow([named('proxy')]);
  await eventually(() => changes === 1);
  const first = tokens.versionOf('proxy');
  objects.put(secrets, secret('dHdv'));
  await eventually(() => changes === 2);
  expect([first !== undefined, tokens.versionOf('proxy') === first]).toEqual([true, false]);
  const lists = asked.filter((url) => url.includes('/secrets'));
  expect(lists.every((url) => url.includes('fieldSelector=metadata.name=proxy'))).toBe(true);
});

test('a Secret that no class names any more is not watched any more', async () => {
  objects.put(secrets, secret('b25l'));
  tokens.follow([named('proxy')]);
  await eventually(() => objects.watches() === 1);
  tokens.follow([]);
  await eventually(() => objects.watches() === 0);
  expect(tokens.versionOf('proxy')).toBeUndefined();
});

test('a Secret that two classes name is watched once', async () => {
  tokens.follow([named('proxy'), named('proxy')]);
  tokens.follow([named('proxy')]);
  await eventually(() => objects.watches() === 1);
  expect(objects.watches()).toBe(1);
});
