/** Everything that the controller ever has to do, in about two minutes: the way of one Task, with what may happen to it on the way. */
import type { Manifest, RuntimePool, Task } from '../../../src/api/index.js';
import { labelKeys } from '../../../src/domain/labels.js';
import { mergePatch } from '../../../src/kube/patch.js';
import { get } from '../../../src/kube/client.js';
import { create } from '../../../src/kube/create.js';
import { KubeError } from '../../../src/kube/errors.js';
import { equalJson } from '../../../src/lib/json.js';
import type { Json, JsonObject } from '../../../src/lib/json.js';
import { eventually, kube, kubectl, manager, refOf } from './cluster.js';
import { stopwatch } from './evidence.js';
import { applyObjects, example, plainTaskLike, poolServing, readPool, taskLike, taskOver } from './first-task.js';
import { leftovers } from './installation.js';
import type { Installed } from './installed.js';
import { keepPoolOf } from './tampering.js';

const { namespace = '' } = example.task.metadata;
/** The Agent keeps its system prompt in a ConfigMap. */
const prompts: Manifest = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'whole-life-prompt', namespace },
  ...({ data: { text: 'Answer in one line.' } } as object),
};
const agent = {
  ...example.agent,
  metadata: { ...example.agent.metadata, name: 'whole-life-agent' },
  spec: { ...example.agent.spec, systemPrompt: { configMapRef: { name: prompts.metadata.name, key: 'text' } } },
};
const wanted = taskLike('whole-life', { agentRef: { name: agent.metadata.name } });
/** For an Agent that there is not. */
const hopeless = taskLike('whole-life-hopeless', { agentRef: { name: 'whole-life-nobody' } });

/**
 * What happens: a Task for an Agent that is not there is refused; an Agent with a system prompt of its own and a Task for it, which somebody else writes to all the time; another controller
 * takes over while the sandbox starts; the Task succeeds; its pool, which another Task wants, is tampered with, in each kind of object, and repaired; another
 * controller takes over; the pool is not wanted any more and goes; the Task is deleted, and nothing is left.
 *
 * @returns the Task as it ended
 */
export async function wholeLife(product: Installed): Promise<Task> {
  const tell = stopwatch('a whole life');
  await applyObjects(kubectl, [hopeless]);
  await taskOver(kubectl, hopeless.metadata, 90);
  await kubectl(['delete', 'tasks.core.orka.ai', hopeless.metadata.name, '-n', namespace, '--timeout=60s']);
  await applyObjects(kubectl, [prompts, agent]);
  await sharedLife();
  tell('a Task without a workspace is over, and its pool deleted');
  const quiet = disturbed(wanted);
  const claimed = async () => ((await of(product, 'sandboxclaims')).length > 0 ? true : undefined);
  const [letGo] = await Promise.all([keepPoolOf(product, wanted), eventually('a claim', claimed).finally(quiet)]);
  tell('sandbox asked for');
  await restarted(product);
  const ended = await taskOver(kubectl, wanted.metadata, 240);
  tell(ended.status?.phase ?? 'over');
  await tampered(product, await poolServing(kubectl, wanted.metadata, 150));
  tell('tampered with and repaired');
  await eventually('a repeated event that is counted', repeated);
  tell('events counted');
  await restarted(product);
  await letGo();
  const named = { name: ended.status?.execution?.runtimePoolName ?? '', namespace };
  await eventually('the end of the pool', async () => ((await readPool(kubectl, named)) ? undefined : true), 120);
  tell('pool gone');
  await kubectl(['delete', 'tasks.core.orka.ai', wanted.metadata.name, '-n', namespace, '--timeout=120s']);
  await kubectl(['delete', 'configmap', prompts.metadata.name, '-n', namespace]);
  await eventually('nothing left', async () => ((await leftovers(kubectl, product)).length === 0 ? true : undefined));
  tell('nothing left');
  return ended;
}

/** A Task on a pool that a Deployment keeps, and the end of both. */
async function sharedLife(): Promise<void> {
  const shared = plainTaskLike('whole-life-shared', { agentRef: { name: agent.metadata.name } });
  await applyObjects(kubectl, [shared]);
  const { status } = await taskOver(kubectl, shared.metadata, 120);
  const pool = status?.execution?.runtimePoolName ?? '';
  for (const [kind, name] of [
    ['tasks', shared.metadata.name],
    ['runtimepools', pool],
  ])
    await kubectl(['delete', `${kind}.core.orka.ai`, name ?? '', '-n', namespace, '--timeout=60s']);
}

/** Names, as kubectl takes them, of what there is of a kind for any pool. */
async function of({ namespaces }: Installed, resource: string): Promise<readonly string[]> {
  const found = await kubectl(['get', resource, '-n', namespaces.runtime, '-l', labelKeys.poolUid, '-o', 'name']);
  return found.split('\n').filter((name) => name !== '');
}

/** Creates a Task and writes to it again and again: what the controller decided on is often outdated when it writes. */
function disturbed(task: Manifest): () => Promise<void> {
  let over = false;
  const write = async (): Promise<void> => {
    await create(kube, task, { manager });
    for (let times = 0; !over; times++) {
      const { metadata } = (await get(kube, refOf(task)))!;
      const change: JsonObject = { metadata: { annotations: { 'example.com/times': String(times) } } };
      await mergePatch(kube, refOf(task), change, { manager, resourceVersion: metadata.resourceVersion ?? '' }).catch(
        (error: unknown) => {
          if (!(error instanceof KubeError) || error.code !== 'conflict') throw error;
        },
      );
    }
  };
  const written = write();
  return () => {
    over = true;
    return written;
  };
}

const restarted = ({ namespaces, deployment }: Installed) =>
  kubectl([
    ...['delete', 'pods', '-n', namespaces.controller, '--wait=false'],
    ...['-l', `app.kubernetes.io/name=${deployment.metadata.name}`],
  ]);

/** Opens, or redirects, one object of each kind that the controller keeps as it was reviewed. */
const changes: Readonly<Record<string, JsonObject>> = {
  services: { spec: { selector: { stolen: 'yes' } } },
  'networkpolicies.networking.k8s.io': { spec: { ingress: [{}], policyTypes: ['Ingress'] } },
  'poddisruptionbudgets.policy': { spec: { unhealthyPodEvictionPolicy: 'AlwaysAllow' } },
  'sandboxwarmpools.extensions.agents.x-k8s.io': { spec: { sandboxTemplateRef: { name: 'another' } } },
};

async function tampered(product: Installed, pool: RuntimePool): Promise<void> {
  const firsts = await Promise.all(Object.keys(changes).map(async (kind) => (await of(product, kind))[0] ?? ''));
  // The second time the same is told as the first time, which makes a series of events.
  for (const _time of [1, 2])
    for (const [index, change] of Object.values(changes).entries()) await repaired(product, pool, firsts[index] ?? '', change);
  for (const object of firsts) await hidden(product, pool, object);
}

async function repaired({ namespaces }: Installed, pool: RuntimePool, object: string, change: JsonObject): Promise<void> {
  const spec = async () => {
    const text = await kubectl(['get', object, '-n', namespaces.runtime, '-o', 'json']);
    return (JSON.parse(text) as { readonly spec: Json }).spec;
  };
  const before = await spec();
  await kubectl(['patch', object, '-n', namespaces.runtime, '--type=merge', '-p', JSON.stringify(change)]);
  await eventually(`${object} as it was`, async () => (equalJson(await spec(), before) ? true : undefined));
  await lifecycle(pool, 'Serving');
}

/** Without the label by which it is found the controller wants to make it again, and meets what it must not touch. */
async function hidden({ namespaces }: Installed, pool: RuntimePool, object: string): Promise<void> {
  const label = (value: string) => kubectl(['label', object, '-n', namespaces.runtime, `${labelKeys.poolUid}${value}`]);
  await label('-');
  await lifecycle(pool, 'Degraded');
  await label(`=${pool.metadata.uid ?? ''}`);
  await lifecycle(pool, 'Serving');
}

const lifecycle = ({ metadata: { name } }: RuntimePool, wantedOne: string) =>
  eventually(`RuntimePool ${name} ${wantedOne}`, async () => {
    const { status } = (await readPool(kubectl, { name, namespace })) ?? {};
    return status?.lifecycle === wantedOne ? true : undefined;
  });

async function repeated(): Promise<true | undefined> {
  const { items } = JSON.parse(await kubectl(['get', 'events.events.k8s.io', '-n', namespace, '-o', 'json'])) as {
    readonly items: readonly { readonly reportingController?: string; readonly deprecatedCount?: number }[];
  };
  const ours = items.filter(({ reportingController }) => reportingController === 'orka.ai/workspaces');
  return ours.some(({ deprecatedCount = 1 }) => deprecatedCount > 1) ? true : undefined;
}
