/** One attempt that is brought to a state, what goes wrong with it there, and what becomes of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Manifest, RuntimePool, Task } from '../../../src/api/index.js';
import { labelKeys } from '../../../src/domain/labels.js';
import { get, refOf } from '../../../src/kube/client.js';
import { remove } from '../../../src/kube/remove.js';
import { attempt, run } from '../run.js';
import { eventually, kube, kubectl } from './cluster.js';
import { objectsOf, patch } from './crash-lane.js';
import type { Lane } from './crash-lane.js';
import type { Doomed, Step } from './doomed.js';
import { isOver, read } from './first-task.js';
import type { History, PodObject } from './history.js';
import { killIn } from './sandbox-processes.js';

/** Where an attempt is when something happens; each is on record. */
export type AttemptState = 'Queued' | 'SessionStarting' | 'Submitting' | 'Running' | 'Settling';

/** An attempt that was brought to a state. */
export interface Held {
  readonly lane: Lane;
  readonly history: History;
  readonly task: Manifest;
  readonly controller: Doomed;
  /** Stands still since the attempt is in its state. */
  readonly stopped: boolean;
}

/** The moment at which a controller is interrupted for an attempt to be in a state. */
const momentOf = (state: AttemptState, phase?: Step['phase']): Omit<Step, 'taskUID'> | undefined => {
  switch (state) {
    case 'SessionStarting':
      return { step: 'session', phase: phase ?? 'begins' };
    case 'Submitting':
      return { step: 'prompt', phase: phase ?? 'answered' };
    case 'Settling':
      return { step: 'delta', phase: phase ?? 'begins' };
    default:
      return undefined;
  }
};

/** Every version of a Task that was seen. */
export const versionsOf = (history: History, { metadata: { uid } }: Manifest): readonly Task[] =>
  history.of('tasks').flatMap(({ object }) => (object.metadata.uid === uid ? [object] : []));

const poolNameOf = ({ history, task }: Pick<Held, 'history' | 'task'>): string =>
  versionsOf(history, task).at(-1)?.metadata.labels?.[labelKeys.taskPool] ?? '';

/** All pools that a Task had, the first one first. */
function poolsOf({ history, task }: Pick<Held, 'history' | 'task'>): readonly RuntimePool[] {
  const name = poolNameOf({ history, task });
  const found = history.of('pools').filter(({ object }) => object.metadata.name === name);
  return [...new Map(found.map(({ object }) => [object.metadata.uid, object])).values()];
}

/** The Pod of an attempt, with its address. What is watched is not told in the order in which it is written. */
const podOf = ({ history, task }: Held): Promise<PodObject> =>
  eventually(`the Pod of Task ${task.metadata.name}`, () => {
    const uids = poolsOf({ history, task }).map(({ metadata }) => metadata.uid);
    const pods = history.of('pods').filter(({ object }) => uids.includes(object.metadata.labels?.[labelKeys.poolUid] ?? ''));
    const pod = pods.at(-1)?.object;
    return Promise.resolve(pod?.status?.podIP === undefined ? undefined : pod);
  });

/**
 * Makes a Task and waits until its attempt is in a state. Where the state is short, the controller stands still in it, or has ended.
 *
 * @param by what interrupts the controller
 */
export async function bringTo(
  { lane, history }: Pick<Held, 'lane' | 'history'>,
  word: string,
  {
    state,
    phase,
    prompt,
    by = 'SIGSTOP',
  }: { state: AttemptState; phase?: Step['phase']; prompt?: string; by?: 'SIGKILL' | 'SIGSTOP' },
): Promise<Held> {
  const controller = await lane.controller();
  const at = momentOf(state, phase);
  if (state === 'Queued') await lane.withholdToken();
  const task = await lane.createTask(word, prompt ?? (state === 'Running' ? 'ORKA_HOLD_180S' : undefined));
  const taskUID = task.metadata.uid ?? '';
  // Its pool takes longer to start than this.
  if (at) await controller.interrupted({ ...at, taskUID, by });
  const isThere = () =>
    at
      ? controller.trace.some(
          (line) => 'step' in line && line.taskUID === taskUID && line.step === at.step && line.phase === at.phase,
        )
      : versionsOf(history, task).at(-1)?.status?.execution?.state === state;
  await eventually(`Task ${task.metadata.name} ${state}`, () => {
    const early = versionsOf(history, task).at(-1);
    if (isOver(early)) throw new Error(`Task ${task.metadata.name} was over too early: ${early?.status?.message ?? ''}`);
    return Promise.resolve(isThere() ? true : undefined);
  });
  // The model has been asked by then.
  if (state === 'Running') await sleep(500);
  return { lane, history, task, controller, stopped: at !== undefined && by === 'SIGSTOP' };
}

export const resume = ({ controller }: Held): void => controller.signal('SIGCONT');

/** How an attempt ended, as far as the contract says it: state and reason, and those of the delivery unless nothing was to deliver. */
export function endingOf({ status }: Task): string {
  const { execution, delivery } = status ?? {};
  const said = (state: string | undefined, reason: string | undefined) => [state, reason].filter(Boolean).join('/');
  const delivered = ['NotRequested', 'ReadValidated', undefined].includes(delivery?.state)
    ? []
    : [said(delivery?.state, delivery?.reason)];
  return [said(execution?.state, execution?.reason), ...delivered].join(', ');
}

/** The Task once it is over or gone, by what was seen. */
export const overIn = (history: History, task: Manifest, seconds: number): Promise<Task> =>
  eventually(
    `the end of Task ${task.metadata.name}`,
    () => {
      const seen = history.of('tasks').filter(({ object }) => object.metadata.uid === task.metadata.uid);
      const over = seen.findLast(({ object, type }) => isOver(object) || type === 'DELETED');
      return Promise.resolve(over?.object);
    },
    seconds,
  );

/** Deletes Task and pool. @returns what is left of them when that takes too long */
export async function removed(held: Held, seconds: number): Promise<readonly string[]> {
  const { lane, task } = held;
  const { namespace = '', uid } = task.metadata;
  const pool = { name: poolNameOf(held), namespace };
  for (const [kind, name] of [
    ['tasks', task.metadata.name],
    ['runtimepools', pool.name],
  ] as const)
    if (name !== '')
      await kubectl(['delete', `${kind}.core.orka.ai`, name, '-n', namespace, '--ignore-not-found', '--wait=false']);
  async function left(): Promise<readonly string[]> {
    const own = [await get(kube, refOf(task)), await read(kubectl, 'runtimepools.core.orka.ai', pool)];
    const { items } = JSON.parse(await kubectl(['get', 'secrets,configmaps', '-n', namespace, '-o', 'json'])) as {
      readonly items: readonly Manifest[];
    };
    const owned = items.filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid));
    const uids = poolsOf(held).map(({ metadata }) => metadata.uid ?? '');
    const ofPools = (await Promise.all(uids.map((one) => objectsOf(lane, one)))).flat();
    return [...(own.filter(Boolean) as Manifest[]), ...owned, ...ofPools].map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  }
  return eventually('nothing left', async () => ((await left()).length === 0 ? [] : undefined), seconds).catch(left);
}

async function kill(held: Held, who: 'agent' | 'supervisor'): Promise<undefined> {
  const { metadata } = await podOf(held);
  if (killIn(metadata.uid ?? '', who) === 0) throw new Error(`the Pod of Task ${held.task.metadata.name} has no ${who}`);
}

/** Puts another snapshot in the place of the one of a Task, which is immutable; it asks for something else. */
async function tamper({ metadata: { namespace = '', uid = '' } }: Manifest): Promise<void> {
  const mine = ['secrets', '-n', namespace, '-l', `orka.ai/task-uid=${uid}`];
  const { items } = JSON.parse(await kubectl(['get', ...mine, '-o', 'json'])) as { readonly items: readonly Manifest[] };
  const [secret] = items;
  if (!secret || items.length > 1) throw new Error(`a Task has ${items.length} snapshots`);
  const { name, labels, annotations, ownerReferences } = secret.metadata;
  const changed = (text: string) =>
    Buffer.from(Buffer.from(text, 'base64').toString().replace('Reply exactly: FAULT', 'Reply exactly: ANOTHER')).toString(
      'base64',
    );
  const data = Object.fromEntries(
    Object.entries(secret['data'] as Readonly<Record<string, string>>).map(([key, text]) => [key, changed(text)]),
  );
  await kubectl(['delete', 'secret', name, '-n', namespace]);
  const object = { ...secret, metadata: { name, namespace, labels, annotations, ownerReferences }, data };
  await kubectl(['create', '-f', '-'], JSON.stringify(object));
}

/** Packets between the controllers of a group and a Pod are dropped, of connections that are there as well. @returns what ends it */
async function cut(held: Held, group: number): Promise<() => Promise<void>> {
  const { podIP = '' } = (await podOf(held)).status ?? {};
  const table = `ip orka-cut-${podIP.replaceAll('.', '-')}`;
  const mark = String(group);
  const rules = [
    `add table ${table}`,
    `add chain ${table} out { type filter hook output priority -150; }`,
    `add chain ${table} in { type filter hook prerouting priority -150; }`,
    `add rule ${table} out ip daddr ${podIP} meta skgid ${mark} ct mark set ${mark} drop`,
    `add rule ${table} in ip saddr ${podIP} ct mark ${mark} drop`,
  ];
  await run('nft', ['-f', '-'], { input: rules.join('\n') });
  // Those that wait for the Pod to say something; of others that are there none lasts.
  await attempt('conntrack', ['-U', '-p', 'tcp', '-d', podIP, '--dport', '8080', '--mark', mark]);
  return async () => {
    await attempt('nft', ['delete', 'table', ...table.split(' ')]);
  };
}

type Owned = Pick<Manifest, 'metadata'>;

function ownerOf({ name, namespace = '', ownerReferences }: Owned['metadata']) {
  const owner = ownerReferences?.find(({ controller }) => controller === true);
  if (!owner) throw new Error(`${name} has no owner`);
  return { apiVersion: owner.apiVersion, kind: owner.kind, namespace, name: owner.name, uid: owner.uid };
}

/** Deletes as kubectl does: gracefully, in the background. */
async function removeOwner({ metadata }: Owned): Promise<void> {
  const { uid, ...ref } = ownerOf(metadata);
  await remove(kube, ref, { uid, propagation: 'Background' });
}

/** Something that goes wrong. @returns what mends it, if anything must */
export type Fault = (held: Held) => Promise<(() => Promise<void>) | undefined>;

/** @param group of the controllers of the lane */
export const faultsOf = (group: number) =>
  ({
    /** The controller ends without a word. One that was interrupted has ended already. */
    'controller killed': async ({ lane }) => {
      await lane.replace();
      return undefined;
    },
    /** Somebody changes what the Task was bound to while no controller runs. */
    'snapshot tampered with': async ({ lane, task, controller }) => {
      await controller.kill();
      await tamper(task);
      await lane.replace();
      return undefined;
    },
    /** It stands still until another one has taken its Lease, which had run out, and goes on then. */
    'Lease lost': async ({ lane, controller }) => {
      controller.signal('SIGSTOP');
      const before = await lane.succeed();
      before.signal('SIGCONT');
      const how = await Promise.race([before.ended, sleep(20_000)]);
      if (how !== 'code 1') {
        await before.kill();
        throw new Error(`a controller that lost its Lease ended by ${how ?? 'nothing'}\n${before.log()}`);
      }
      return undefined;
    },
    'Pod deleted': async (held) => {
      const pod = await podOf(held);
      await remove(kube, refOf(pod), { uid: pod.metadata.uid ?? '', propagation: 'Background' });
      return undefined;
    },
    'Sandbox deleted': async (held) => {
      await removeOwner(await podOf(held));
      return undefined;
    },
    'claim deleted': async (held) => {
      const { metadata } = await podOf(held);
      const sandbox = await get(kube, ownerOf(metadata));
      if (!sandbox) throw new Error(`the Pod ${metadata.name} has no Sandbox`);
      await removeOwner(sandbox);
      return undefined;
    },
    'network cut': (held) => cut(held, group),
    'supervisor killed': (held) => kill(held, 'supervisor'),
    'agent killed': (held) => kill(held, 'agent'),
    'Task deleted': async ({ task }) => {
      await remove(kube, refOf(task), { uid: task.metadata.uid ?? '', propagation: 'Background' });
      return undefined;
    },
    'pool deleted': async (held) => {
      const pool = await eventually('a pool', () => Promise.resolve(poolsOf(held).at(-1)));
      await remove(kube, refOf(pool), { uid: pool.metadata.uid ?? '', propagation: 'Background' });
      return undefined;
    },
    'class drifted': async ({ lane: { installation } }) => {
      const { metadata, apiVersion, kind, spec } = installation.manifests.find((one) => one.kind === 'RuntimePoolClass')!;
      const { approvedDigests } = spec as { readonly approvedDigests: readonly string[] };
      const approve = (digests: readonly string[]) =>
        patch(
          { apiVersion, kind, name: metadata.name, namespace: metadata.namespace ?? '' },
          { spec: { approvedDigests: digests } },
        );
      await approve([`sha256:${'0'.repeat(64)}`]);
      return () => approve(approvedDigests);
    },
  }) as const satisfies Readonly<Record<string, Fault>>;

export type FaultName = keyof ReturnType<typeof faultsOf>;
