/**
 * A Task on a repository while the controller, the publisher or the supervisor is killed before and after each step: the same end until the prompt is
 * sent, and afterwards the end that ARCHITECTURE.md states. No prompt is sent before its workspace is there or twice, and nothing is left.
 * `ORKA_SOURCE_CRASHES` names, as a regular expression, which of it is played. Source: repository.md §2.3.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import type { Manifest, RuntimePool, Task } from '../../src/api/index.js';
import { attemptSteps } from '../../src/controller/task/attempt-port.js';
import type { AttemptStep } from '../../src/controller/task/attempt-port.js';
import { sourceSteps } from '../../src/controller/task/source-run.js';
import type { SourceStep } from '../../src/controller/task/source-run.js';
import { eventually, kubectl } from './support/cluster.js';
import { createLane, objectsOf } from './support/crash-lane.js';
import type { Lane } from './support/crash-lane.js';
import { endingOf } from './support/dispatch-lane.js';
import type { Doomed, TakenStep } from './support/doomed.js';
import { stopwatch } from './support/evidence.js';
import { answerOf, applyObjects, readPool, taskOver } from './support/first-task.js';
import { publisherPeer, stopForge } from './support/forge.js';
import type { Forge } from './support/forge.js';
import { issueIdentity } from './support/identity.js';
import { modelRequests, startModel, stopModel } from './support/model.js';
import {
  app,
  main,
  publisherFor,
  quoted,
  readSecret,
  sourceTask,
  startTestForge,
  tokenSecret,
  wordOf,
} from './support/repositories.js';
import { killAllIn, killIn } from './support/sandbox-processes.js';
import { searchPod } from './support/searched.js';

type StepName = SourceStep | AttemptStep;
type Victim = 'controller' | 'publisher' | 'supervisor';
type Ends = readonly string[];

const well = ['Succeeded'];
/** Nobody heard the end of the prompt. It is never sent again. */
const unknown = ['OutcomeUnknown/RuntimeLost'];
/** The answer is stored, and nobody can say any more what the workspace looked like. */
const unread = ['Succeeded, DeliveryConflict/RuntimeWorkspaceLost'];
/** The prompt has not left: it is another session, or the words of the supervisor. */
const unsent = [...well, 'Failed/RuntimeSessionStartFailed', 'Failed/PromptNotAccepted'];
const looked = ['Succeeded, DeliveryConflict/WorkspaceValidationFailed', ...unread, ...well];

/** How a Task ends whose controller is killed before and after a step. A new step without a row does not compile. */
const controllerKilled = {
  'write-resolve-pending': [well, well],
  'write-resolve-in-flight': [well, well],
  'resolve-source': [well, well],
  'write-resolved': [well, well],
  'write-prepare-pending': [well, well],
  'write-prepare-in-flight': [well, well],
  'prepare-source': [well, well],
  'write-prepared': [well, well],
  reserve: [well, well],
  'write-session-starting': [well, well],
  'create-session': [well, well],
  'write-submitting': [well, unknown],
  'start-prompt': [unknown, unknown],
  'write-running': [unknown, unknown],
  'store-result': [unknown, unread],
  'write-settling': [unread, unread],
  'workspace-delta': [unread, unread],
  'write-outcome': [unread, well],
  'delete-session': [well, well],
  release: [well, well],
} as const satisfies Readonly<Record<StepName, readonly [before: Ends, after: Ends]>>;

/** The prompt may have left over a connection of which nobody knew yet that it is dead. */
const leaving = [...unsent, ...unknown];
/** The supervisor may have ended before its answer was heard, and afterwards. */
const heard = [...unknown, ...looked];

/** The same for its supervisor, from where there is one. */
const supervisorKilled = {
  reserve: [unsent, unsent],
  'write-session-starting': [unsent, unsent],
  'create-session': [unsent, leaving],
  'write-submitting': [leaving, leaving],
  'start-prompt': [leaving, heard],
  'write-running': [heard, heard],
  'store-result': [heard, looked],
  'write-settling': [looked, looked],
  'workspace-delta': [looked, well],
  'write-outcome': [well, well],
  'delete-session': [well, well],
  release: [well, well],
} as const satisfies Readonly<Record<AttemptStep, readonly [before: Ends, after: Ends]>>;

/** Steps of an attempt in which the publisher has a part: the download. */
const downloads: readonly StepName[] = ['create-session'];

interface Job {
  readonly victim?: Victim;
  readonly taken?: StepName;
  readonly phase?: TakenStep['phase'];
  readonly ends: Ends;
}

const phases = ['begins', 'performed'] as const;
const around = (victim: Victim, taken: StepName, ends: readonly [Ends, Ends]): readonly Job[] =>
  phases.map((phase, index) => ({ victim, taken, phase, ends: ends[index]! }));

const nameOf = ({ victim, taken, phase }: Job): string =>
  ['source', victim, taken, phase].filter((part) => part !== undefined).join('-');

const wanted = new RegExp(process.env['ORKA_SOURCE_CRASHES'] ?? '');
const allSteps: readonly StepName[] = [...sourceSteps, ...attemptSteps];
const everything: readonly Job[] = [
  { ends: well },
  ...allSteps.flatMap((step) => around('controller', step, controllerKilled[step])),
  ...[...sourceSteps, ...downloads].flatMap((step) => around('publisher', step, [well, well])),
  ...attemptSteps.flatMap((step) => around('supervisor', step, supervisorKilled[step])),
];
const jobs = everything.filter((job) => wanted.test(nameOf(job)));

interface Outcome {
  readonly task: Task;
  readonly answer: string;
  /** Times that the prompt reached the model, before any command was run for it. */
  readonly prompts: number;
  /** Effects of the repository on record, with their states. */
  readonly effects: readonly string[];
  readonly left: readonly string[];
  /** What a killed publisher keeps of its work, and where the token is. */
  readonly kept: readonly string[];
}

const lanesAtOnce = 4;
const outcomes = new Map<string, Outcome | Error>();
const outcomeOf = (job: Job): Outcome => {
  const outcome = outcomes.get(nameOf(job));
  if (outcome === undefined) throw new Error(`${nameOf(job)} was not played`);
  if (outcome instanceof Error) throw outcome;
  return outcome;
};

let forge: Forge;
let startingSHA = '';
const lanes: Lane[] = [];
const publisherOf = (lane: Lane): string => lane.installation.publisher?.metadata.namespace ?? '';
const publisherPods = ['-l', 'orka.ai/network-role=workspace-publisher'];

interface PodRef {
  readonly name: string;
  readonly uid: string;
}

async function podsOf(inNamespace: string, selector: readonly string[]): Promise<readonly PodRef[]> {
  const list = JSON.parse(await kubectl(['get', 'pods', '-n', inNamespace, ...selector, '-o', 'json'])) as {
    readonly items: readonly Manifest[];
  };
  return list.items.map(({ metadata: { name, uid = '' } }) => ({ name, uid }));
}

/** A container that was killed twice waits longer each time; another Pod does not. */
async function renewPublisher(lane: Lane): Promise<void> {
  const inNamespace = publisherOf(lane);
  await kubectl(['delete', 'pods', ...publisherPods, '-n', inNamespace, '--grace-period=1', '--timeout=60s']);
  await publisherReady(lane);
}

async function publisherReady(lane: Lane): Promise<void> {
  const name = lane.installation.publisher?.metadata.name ?? '';
  await kubectl(['rollout', 'status', 'deployment', name, '-n', publisherOf(lane), '--timeout=180s']);
}

async function kill(lane: Lane, victim: 'publisher' | 'supervisor', task: Manifest): Promise<void> {
  if (victim === 'publisher') {
    const [pod] = await podsOf(publisherOf(lane), publisherPods);
    if (killAllIn(pod?.uid ?? 'none') === 0) throw new Error('the publisher does not run');
    return;
  }
  const found = await taskNow(lane, task);
  const uid = found?.status?.execution?.runtimePoolUID ?? 'none';
  const [pod] = await podsOf(lane.installation.namespaces.runtime, ['-l', `orka.ai/runtime-pool-uid=${uid}`]);
  if (killIn(pod?.uid ?? 'none', 'supervisor') === 0) throw new Error(`Task ${task.metadata.name} has no supervisor`);
}

async function taskNow(lane: Lane, { metadata: { name } }: Manifest): Promise<Task | undefined> {
  const { tasks } = lane.installation.namespaces;
  const found = await kubectl(['get', 'tasks.core.orka.ai', name, '-n', tasks, '--ignore-not-found', '-o', 'json']);
  return found === '' ? undefined : (JSON.parse(found) as Task);
}

async function reached(controller: Doomed, { taken, phase }: Job): Promise<void> {
  const seen = () => controller.trace.some((line) => 'taken' in line && line.taken === taken && line.phase === phase);
  await eventually(
    `the controller to come to ${taken ?? ''} ${phase ?? ''}`,
    () => {
      if (!seen() && controller.hasEnded()) throw new Error(`the controller ended too early\n${controller.log()}`);
      return Promise.resolve(seen() ? true : undefined);
    },
    120,
  );
}

async function crash(lane: Lane, controller: Doomed, job: Job, task: Manifest): Promise<void> {
  if (job.victim === undefined) return;
  await reached(controller, job);
  if (job.victim === 'controller') {
    await controller.ended;
    await lane.replace();
    return;
  }
  try {
    await kill(lane, job.victim, task);
  } finally {
    controller.signal('SIGCONT');
  }
}

async function removed(lane: Lane, task: Task): Promise<readonly string[]> {
  const { tasks: namespace } = lane.installation.namespaces;
  const { runtimePoolName, runtimePoolUID } = task.status?.execution ?? {};
  await kubectl(['delete', 'tasks.core.orka.ai', task.metadata.name, '-n', namespace, '--timeout=90s']);
  if (runtimePoolName !== undefined)
    await kubectl([
      'delete',
      'runtimepools.core.orka.ai',
      runtimePoolName,
      '-n',
      namespace,
      '--ignore-not-found',
      '--timeout=120s',
    ]);
  const left = async (): Promise<readonly string[]> => {
    const { items } = JSON.parse(await kubectl(['get', 'secrets,configmaps', '-n', namespace, '-o', 'json'])) as {
      readonly items: readonly Manifest[];
    };
    const owned = items.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === task.metadata.uid));
    const ofPool = runtimePoolUID === undefined ? [] : await objectsOf(lane, runtimePoolUID);
    const pool = runtimePoolName === undefined ? undefined : await readPool(kubectl, { name: runtimePoolName, namespace });
    return [...owned, ...ofPool, ...(pool ? [pool as RuntimePool & Manifest] : [])].map(
      ({ kind, metadata }) => `${kind} ${metadata.name}`,
    );
  };
  return eventually('nothing left', async () => ((await left()).length === 0 ? [] : undefined), 120).catch(left);
}

async function play(lane: Lane, job: Job): Promise<Outcome> {
  const { tasks: namespace } = lane.installation.namespaces;
  const controller = await lane.controller();
  lane.forget();
  const name = nameOf(job);
  const { victim, taken, phase } = job;
  if (taken && phase) await controller.halts({ taken, phase, by: victim === 'controller' ? 'SIGKILL' : 'SIGSTOP' });
  const asked = sourceTask(name, { command: 'cat docs/answer.txt' });
  const wantedTask = { ...asked, metadata: { ...asked.metadata, namespace } };
  await applyObjects(kubectl, [wantedTask]);
  await crash(lane, controller, job, wantedTask);
  const task = await taskOver(kubectl, { name, namespace }, 300);
  const answer = task.status?.resultRef?.available ? await answerOf(kubectl, { name, namespace }) : '';
  const requests = (await modelRequests(kubectl, lane.installation.poolClass)).filter((one) => one.asked === wordOf(name));
  const left = await removed(lane, task);
  const kept = victim === 'publisher' ? await keptBy(lane) : [];
  if (victim === 'publisher') await renewPublisher(lane);
  return {
    task,
    answer,
    prompts: requests.filter(({ first, path }) => first && path.startsWith('/v1/responses')).length,
    effects: (task.status?.execution?.effects ?? []).map(({ kind, state }) => `${kind} ${state}`),
    left,
    kept,
  };
}

/** The volumes of a Pod outlive its container. */
async function keptBy(lane: Lane): Promise<readonly string[]> {
  const namespace = publisherOf(lane);
  const [pod] = await podsOf(namespace, publisherPods);
  const name = pod?.name ?? '';
  const tokens = new Map([['read token', forge.tokens.read]]);
  const { found } = await searchPod({ namespace, pod: name, skipped: ['/var/run/secrets'] }, tokens);
  const temporary = await kubectl(['exec', '-n', namespace, name, '--', '/usr/local/bin/node', '-e', listTemporary]);
  return [...found, ...(JSON.parse(temporary) as readonly string[])];
}

/** What is in the folders of its parts: work that has not ended. */
const listTemporary =
  "console.log(JSON.stringify(require('fs').readdirSync('/tmp',{recursive:true}).filter((name)=>name.includes('/'))))";

async function playAll(lane: Lane, queue: Job[], tell: (text: string) => void): Promise<void> {
  for (let job = queue.shift(); job; job = queue.shift()) {
    const began = Date.now();
    const outcome = await play(lane, job).catch(async (error: unknown) => {
      await lane.clean();
      await renewPublisher(lane).catch(() => undefined);
      return error instanceof Error ? error : new Error(String(error));
    });
    outcomes.set(nameOf(job), outcome);
    const how = outcome instanceof Error ? `failed: ${outcome.message.split('\n')[0] ?? ''}` : endingOf(outcome.task);
    tell(`${nameOf(job)} ${how} in ${((Date.now() - began) / 1000).toFixed(1)} s`);
  }
}

async function startLane(name: string, token: string, otherCa: string): Promise<Lane> {
  const { forges } = publisherFor(forge, otherCa);
  const lane = await createLane(name, token, { forges });
  lanes.push(lane);
  const { metadata, ...secret } = tokenSecret(readSecret, { token: forge.tokens.read });
  await applyObjects(kubectl, [{ ...secret, metadata: { ...metadata, namespace: lane.installation.namespaces.tasks } }]);
  // It makes the keys that the publisher waits for.
  await lane.controller();
  await publisherReady(lane);
  return lane;
}

beforeAll(async () => {
  const tell = stopwatch('source crashes');
  const names = Array.from({ length: Math.min(lanesAtOnce, jobs.length) }, (_, index) => `orka-source-${index + 1}`);
  forge = await startTestForge(names.map((name) => publisherPeer(`${name}-publisher`)));
  const { ca: otherCa } = await issueIdentity(['elsewhere.example']);
  startingSHA = (await forge.seed([app]))[app.name]?.[main] ?? '';
  const token = randomBytes(32).toString('base64url');
  const [first = '', ...others] = names;
  const { poolClass, image } = (await startLane(first, token, otherCa)).installation;
  await Promise.all(others.map((name) => startLane(name, token, otherCa)));
  await startModel(kubectl, poolClass, { image, token });
  tell(`${lanes.length} installations`);
  const queue = [...jobs];
  await Promise.all(lanes.map((lane) => playAll(lane, queue, tell)));
}, 3_600_000);

afterAll(async () => {
  await Promise.all(lanes.map((lane) => lane.remove()));
  const [lane] = lanes;
  if (lane) await stopModel(kubectl, lane.installation.poolClass);
  await stopForge(kubectl);
}, 600_000);

test('every step of a source and of an attempt has its end in the tables', () => {
  expect(Object.keys(controllerKilled).sort()).toEqual([...allSteps].sort());
  expect(Object.keys(supervisorKilled).sort()).toEqual([...attemptSteps].sort());
});

describe.each(jobs.map((job) => ({ ...job, name: nameOf(job), when: job.phase === 'begins' ? 'before' : 'after' })))(
  'a Task with $victim killed $when $taken',
  (job) => {
    test('ends as it should, and reads what the repository has', () => {
      const { task, answer, effects } = outcomeOf(job);
      expect(job.ends).toContain(endingOf(task));
      if (endingOf(task) !== 'Succeeded') return;
      expect(task.status?.delivery).toMatchObject({ state: 'ReadValidated', startingSHA });
      expect(answer).toContain(quoted);
      expect(effects).toEqual(['workspace.resolve Succeeded', 'workspace.prepare Succeeded']);
    });

    test('sends its prompt at most once, and leaves nothing', () => {
      const { task, prompts, left, kept } = outcomeOf(job);
      expect(prompts).toBeLessThanOrEqual(1);
      if (endingOf(task) === 'Succeeded') expect(prompts).toBe(1);
      expect(left).toEqual([]);
      expect(kept).toEqual([]);
    });
  },
);
