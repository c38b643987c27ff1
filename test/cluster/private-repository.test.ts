/** A Task on a private repository: its answer quotes a file, a wrong token uses no sandbox, and no credential is anywhere. Source: repository.md §7.4, 1 and 2. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Task } from '../../src/api/index.js';
import { eventually, kubectl } from './support/cluster.js';
import { poolCredentials } from './support/credentials.js';
import { explained, stopwatch } from './support/evidence.js';
import { answerOf, applyObjects, example, poolServing, readTask, taskOver } from './support/first-task.js';
import { forgeUrl, publisherNamespace, stopForge } from './support/forge.js';
import type { Forge } from './support/forge.js';
import { issueIdentity } from './support/identity.js';
import { leftovers } from './support/installation.js';
import { controllerLog, installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { credentialsIn } from './support/leaks.js';
import { modelRequests } from './support/model.js';
import {
  app,
  applyTasks,
  deleteTasks,
  main,
  publisherFor,
  quoted,
  readSecret,
  sourceTask,
  startTestForge,
  tokenSecret,
  wordOf,
} from './support/repositories.js';
import { searchPod } from './support/searched.js';
import type { Searched } from './support/searched.js';

const { namespace = '' } = example.task.metadata;
const [reads, refusedTask] = ['reads-private', 'wrong-token'];
const [wrongSecret, wrongToken] = ['source-wrong', 'not-the-token-of-this-forge-0123456789'];

let forge: Forge;
let product: Installed;
let startingSHA = '';
let credentials: ReadonlyMap<string, string>;
let refused: Task;
let madeForRefused: readonly string[] = [];
let task: Task;
let answer = '';
/** What was searched, by the name of its Pod. */
const searched = new Map<string, Searched>();
/** What somebody without rights on Secrets may read: objects, events and logs. */
let visible = '';
let prompts = 0;
const secrets = [readSecret, wrongSecret];

const labelled = async (inNamespace: string, label: string): Promise<string> =>
  kubectl(['get', 'pods', '-n', inNamespace, '-l', label, '-o', 'jsonpath={.items[0].metadata.name}']);

async function keysOfPublisher(): Promise<readonly (readonly [string, string])[]> {
  const found = await kubectl(['get', 'secret', 'orka-publisher-auth', '-n', publisherNamespace, '-o', 'json']);
  const { data } = JSON.parse(found) as { readonly data: Readonly<Record<string, string>> };
  return ['controller-token', 'operation-capability-secret', 'artifact-capability-secret'].map((key) => [
    `publisher ${key}`,
    Buffer.from(data[key] ?? '', 'base64').toString('latin1'),
  ]);
}

/** The sandbox while its agent is at work, then the publisher and the controller. */
async function search(poolUid: string): Promise<void> {
  const tokens = new Map([
    ['read token', forge.tokens.read],
    ['write token', forge.tokens.write],
    ['wrong token', wrongToken],
  ]);
  const keys = await keysOfPublisher();
  credentials = new Map([...(await poolCredentials(product, poolUid)), ...tokens, ...keys]);
  const { runtime, controller } = product.namespaces;
  const sandbox = await labelled(runtime, `orka.ai/runtime-pool-uid=${poolUid}`);
  const address = ['address of the repository', forgeUrl(app.name)] as const;
  searched.set('sandbox', await searchPod({ namespace: runtime, pod: sandbox }, new Map([...tokens, ...keys, address])));
  const publisher = await labelled(publisherNamespace, 'orka.ai/network-role=workspace-publisher');
  const mounted = ['/var/run/secrets'];
  searched.set('publisher', await searchPod({ namespace: publisherNamespace, pod: publisher, skipped: mounted }, tokens));
  const name = await labelled(controller, `app.kubernetes.io/name=${product.deployment.metadata.name}`);
  searched.set(
    'controller',
    await searchPod({ namespace: controller, pod: name, skipped: mounted }, new Map([...tokens, ...keys])),
  );
}

async function look(): Promise<void> {
  const { runtime, controller } = product.namespaces;
  const kinds = 'tasks.core.orka.ai,runtimepools.core.orka.ai,agents.core.orka.ai,configmaps,events';
  const publisher = ['-n', publisherNamespace, '-l', 'orka.ai/network-role=workspace-publisher'];
  visible += [
    await kubectl(['get', kinds, '-n', namespace, '-o', 'yaml', '--show-managed-fields']),
    await kubectl(['get', 'pods,deployments,configmaps,events', '-n', publisherNamespace, '-o', 'yaml']),
    await kubectl(['get', 'sandboxclaims,sandboxes,pods,services,events', '-n', runtime, '-o', 'yaml']),
    await kubectl(['get', 'deployments,pods,configmaps,leases,events', '-n', controller, '-o', 'yaml']),
    await kubectl(['logs', ...publisher, '--tail=-1']),
    await kubectl(['logs', '-n', runtime, '-l', 'orka.ai/runtime-pool-uid', '--tail=-1']),
    await controllerLog(product, -1),
  ].join('\n');
}

beforeAll(async () => {
  const after = stopwatch('private repository');
  forge = await startTestForge();
  const { ca: otherCa } = await issueIdentity(['elsewhere.example']);
  startingSHA = (await forge.seed([app]))[app.name]?.[main] ?? '';
  product = await installed({ gates: true, publisher: publisherFor(forge, otherCa) });
  after('installed');
  await applyObjects(kubectl, [
    example.agent,
    tokenSecret(readSecret, { token: forge.tokens.read }),
    tokenSecret(wrongSecret, { token: wrongToken }),
  ]);
  await explained(product, async () => {
    await applyTasks([sourceTask(refusedTask, { secret: wrongSecret })]);
    refused = await taskOver(kubectl, { name: refusedTask, namespace }, 60);
    after('refused');
    const pools = await kubectl(['get', 'runtimepools.core.orka.ai', '-n', namespace, '-o', 'name']);
    const inRuntime = (await leftovers(kubectl, product)).filter(({ metadata }) => metadata.namespace !== namespace);
    madeForRefused = [...pools.split('\n').filter(Boolean), ...inRuntime.map(({ kind }) => kind)];
    await applyTasks([sourceTask(reads, { branch: 'main', command: 'cat docs/answer.txt', says: 'Take 8 seconds.' })]);
    const pool = await poolServing(kubectl, { name: reads, namespace }, 120);
    after('Serving');
    await eventually('a prompt that runs', async () => {
      const found = await readTask(kubectl, { name: reads, namespace });
      return ['Running', 'Settling', 'Succeeded', 'Failed'].includes(found?.status?.execution?.state ?? '') ? true : undefined;
    });
    await search(pool.metadata.uid ?? '');
    await look();
    task = await taskOver(kubectl, { name: reads, namespace }, 120);
    after(task.status?.message ?? 'over');
    answer = await answerOf(kubectl, { name: reads, namespace });
    await look();
    const asked = (await modelRequests(kubectl, product.poolClass)).filter((one) => one.asked === wordOf(reads));
    prompts = asked.filter(({ path }) => path.startsWith('/v1/responses')).length;
  });
}, 400_000);

afterAll(async () => {
  await deleteTasks([reads, refusedTask]);
  await kubectl(['delete', 'secrets', ...secrets, '-n', namespace, '--ignore-not-found']);
  await product.remove();
  await stopForge(kubectl);
}, 400_000);

describe('a Task with the right token', () => {
  test('succeeds, and says which commit it began with', () => {
    expect(task.status).toMatchObject({
      phase: 'Succeeded',
      execution: { state: 'Succeeded' },
      delivery: { state: 'ReadValidated', outcome: 'ReadValidated', startingSHA },
    });
  });

  test('answers with what a file of the repository says', () => {
    expect(answer).toContain(quoted);
  });

  test('asks the model once, and once more with what its command said', () => {
    expect(prompts).toBe(2);
  });
});

describe('a Task with a wrong token', () => {
  test('is blocked at once, and the message names the Secret and no token', () => {
    expect(refused.status).toMatchObject({
      phase: 'Failed',
      execution: { state: 'Failed', outcome: 'Failed', reason: 'CredentialBlocked' },
      message: expect.stringContaining(wrongSecret),
    });
    expect(JSON.stringify(refused)).not.toContain(wrongToken);
  });

  test('uses no sandbox', () => {
    expect(madeForRefused).toEqual([]);
    expect(refused.status?.execution?.runtimePoolUID).toBeUndefined();
  });
});

describe('no credential of the forge or of the publisher', () => {
  test.each(['sandbox', 'publisher', 'controller'])('is in an environment, an argument or a file of the %s', (pod) => {
    expect(searched.get(pod)).toMatchObject({ found: [] });
    expect(searched.get(pod)?.looked).toBeGreaterThan(0);
  });

  test('is in a status, an event, a manifest or a log', () => {
    expect(visible).toContain(startingSHA);
    expect(credentialsIn(visible, credentials)).toEqual([]);
  });
});

test('nothing is left once the Tasks are deleted', async () => {
  await deleteTasks([reads, refusedTask]);
  const left = async () => (await leftovers(kubectl, product)).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  await eventually('nothing left', async () => ((await left()).length === 0 ? true : undefined), 120).catch(() => undefined);
  expect(await left()).toEqual([]);
}, 200_000);
