import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import type { PromptEvent } from '../../src/harness/events.js';
import { applyAll, cleanUp, kubectl, namespace, platform, readyPod, refOf } from './support/cluster.js';
import type { SessionOrder, SessionOutcome } from './support/in-pod/controller.js';
import { modelObjects, modelRequests, role } from './support/model.js';
import { planPool, removePool, startPool } from './support/pool.js';
import { scriptMap, scriptPod } from './support/script.js';

const answer = 'ORKA_MARKER_OK';
const taskUID = '22222222-2222-2222-2222-222222222222';
const { rendered, plan, snapshot, delivery } = planPool(taskUID);
const sandbox = { ...refOf(rendered.claim!), apiVersion: 'v1', kind: 'Pod' };
const { controller, runtime } = platform.namespaces;
const { image } = platform.controller;
const poolClass = platform.classes[0]!.spec;
const proxyNamespace = poolClass.providerProxy.namespace;

const caller = scriptPod({ name: 'caller', namespace: controller, labels: role('controller'), image }, [
  '-e',
  'setInterval(() => undefined, 60_000)',
]);
const made: Manifest[] = [caller];

let outcome: SessionOutcome;
let end: PromptEvent | undefined;

beforeAll(async () => {
  await applyAll([controller, runtime, proxyNamespace].map((name) => namespace(name)));
  const model = await modelObjects(poolClass, { image, token: delivery.credentials.providerToken, answer });
  made.push(...model, await scriptMap('caller', controller, 'controller'));
  await applyAll([...made, ...rendered.isolation]);
  await startPool(rendered);
  for (const one of made.filter(({ kind }) => kind === 'Pod')) await readyPod(refOf(one));
  const { status } = await readyPod(sandbox);
  const frozen = JSON.parse(snapshot.body) as Pick<SessionOrder['runtime'], 'configuration'> & {
    readonly runtimeProfile: SessionOrder['runtime']['profile'];
    readonly mcpConfiguration: SessionOrder['runtime']['mcp'];
    readonly prompt: string;
  };
  const order: SessionOrder = {
    baseUrl: `http://${status.podIP}:8080`,
    delivery,
    taskUID,
    runtime: { profile: frozen.runtimeProfile, configuration: frozen.configuration, mcp: frozen.mcpConfiguration },
    prompt: frozen.prompt,
  };
  outcome = JSON.parse(
    await kubectl(
      ['exec', '-i', '-n', controller, 'caller', '--', '/usr/local/bin/node', '/script/main.mjs'],
      JSON.stringify(order),
    ),
  ) as SessionOutcome;
  end = outcome.events.at(-1);
}, 600_000);

afterAll(async () => {
  await removePool(rendered);
  await cleanUp(made.map(refOf));
}, 900_000);

test('a sandbox without credentials boots, takes those that are signed for it, and takes none after it', () => {
  expect([outcome.before, ...outcome.deliveries]).toEqual(['booting', 'seeded', 'complete']);
});

test('the supervisor runs the profile of the plan and governs its agent strictly', () => {
  expect(outcome).toMatchObject({ runtimeProfileDigest: plan.profileDigest, strictlyGoverned: true });
});

test('the instance is the one of this pool, this Pod and this epoch', async () => {
  const { metadata } = await readyPod(sandbox);
  expect(outcome.fence).toMatchObject({ controllerEpoch: 1, runtimePoolUID: `pool-of-${taskUID}` });
  expect(outcome.fence.runtimeInstanceID.startsWith(`${metadata.uid}.`)).toBe(true);
});

test('a real Codex answers the prompt with what the model said', () => {
  expect(end).toMatchObject({ type: 'completed', payload: { result: { content: [{ type: 'text', text: answer }] } } });
});

test('the model is asked once, with the token that the proxy wants', async () => {
  const requests = (await modelRequests(kubectl, poolClass)).filter(({ path }) => path === '/v1/responses');
  expect(requests).toEqual([expect.objectContaining({ method: 'POST', authorized: true })]);
});

test('reading changed nothing, every operation is settled, and the drained instance is quiet', () => {
  expect(outcome.delta).toBe('no_change');
  expect([...outcome.phases].sort()).toEqual(['applied', 'applied', 'deleted', 'settled']);
  expect(outcome.quiescent).toBe(true);
});

test('no credential is in an object that the provider sees, in its events or in a log', async () => {
  const kinds = 'sandboxtemplates,sandboxwarmpools,sandboxclaims,sandboxes,pods,services,networkpolicies,events,configmaps';
  const seen = [
    await kubectl(['get', kinds, '-n', runtime, '-o', 'yaml']),
    await kubectl(['logs', '-n', runtime, sandbox.name]),
    snapshot.body,
    JSON.stringify(outcome),
  ].join('\n');
  for (const secret of [delivery.signingSeed, ...Object.values(delivery.credentials)]) {
    expect(seen.includes(secret)).toBe(false);
    expect(seen.includes(Buffer.from(secret).toString('base64').replace(/=+$/, ''))).toBe(false);
  }
});
