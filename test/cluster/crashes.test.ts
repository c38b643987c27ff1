/**
 * A controller that is ended before or after any effect of a pool is followed by one that comes to the same end. Each effect is ended around in
 * one scenario; `ORKA_CRASHES` names another scenario to be gone through as a whole, or `all`, as `npm run crashes` does. `gate` plays each scenario
 * with one crash.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import type { Manifest, RuntimePool } from '../../src/api/index.js';
import { poolEffects } from '../../src/controller/pool/decision.js';
import type { PoolEffectName } from '../../src/controller/pool/decision.js';
import { labelKeys } from '../../src/domain/labels.js';
import { remove } from '../../src/kube/remove.js';
import type { JsonObject } from '../../src/lib/json.js';
import { cluster, eventually, kube, kubectl, refOf } from './support/cluster.js';
import { createLane, eventuallyPool, objectsOf, patch, poolNow } from './support/crash-lane.js';
import type { Lane } from './support/crash-lane.js';
import type { Point, Trace } from './support/doomed.js';
import { stopwatch } from './support/evidence.js';
import { answerOf, taskOver } from './support/first-task.js';
import { modelRequests, startModel, stopModel } from './support/model.js';
import { watch } from './support/watch.js';

/** What two cores have something to do with while sandboxes start and end. */
const lanesAtOnce = 4;
const asked = process.env['ORKA_CRASHES'] ?? '';

/** A pool, or a Task that will have one, and what it came to. */
interface Played {
  readonly pool: RuntimePool;
  readonly end: readonly string[];
}

interface Scenario {
  /** Each happens in it, and perhaps others. */
  readonly effects: readonly PoolEffectName[];
  /** A pool that serves is there before. */
  readonly serving: boolean;
  /** What happens; `takeover`: the controller is followed by another one. */
  readonly happens: 'takeover' | ((lane: Lane, served: RuntimePool | undefined) => Promise<Manifest | RuntimePool>);
  /** Waits until it is over. @param epoch of the controller that ends it */
  readonly over: (lane: Lane, subject: RuntimePool, epoch: number) => Promise<Played>;
}

const patched = async (pool: RuntimePool, spec: JsonObject): Promise<RuntimePool> => {
  await patch(refOf(pool), { spec });
  return pool;
};
async function deletePool(pool: RuntimePool): Promise<void> {
  const { uid = '' } = pool.metadata;
  await remove(kube, refOf(pool), { uid, propagation: 'Background' });
}

async function served(lane: Lane, pool: RuntimePool, epoch: number): Promise<Played> {
  const found = await eventuallyPool(
    pool,
    `serves in epoch ${epoch}`,
    (found) =>
      found?.status?.admissionState === 'Accepting' &&
      found.status.observedGeneration === found.metadata.generation &&
      found.status.activeInstance?.controllerEpoch === epoch,
  );
  return { pool, end: await endOf(lane, pool, found) };
}

async function stopped(lane: Lane, pool: RuntimePool): Promise<Played> {
  const found = await eventuallyPool(pool, 'is Stopped', (one) => one?.status?.lifecycle === 'Stopped');
  return { pool, end: await endOf(lane, pool, found) };
}

async function gone(_lane: Lane, pool: RuntimePool): Promise<Played> {
  await eventuallyPool(pool, 'is gone', (found) => found === undefined);
  return { pool, end: ['gone'] };
}

/** A Task that is answered once, and its pool that goes by itself. */
const lived = (lane: Lane, task: RuntimePool): Promise<Played> => answered(lane, task, gone);

/** One that others could have shared comes to rest. */
const shared = (lane: Lane, task: RuntimePool): Promise<Played> => answered(lane, task, stopped);

async function answered(lane: Lane, { metadata }: RuntimePool, rests: typeof gone): Promise<Played> {
  const task = await taskOver(kubectl, metadata, 240);
  const { runtimePoolName = '', runtimePoolUID = '' } = task.status?.execution ?? {};
  const pool = { ...task, kind: 'RuntimePool', metadata: { name: runtimePoolName, namespace: metadata.namespace } };
  await rests(lane, pool as unknown as RuntimePool);
  const word = await answerOf(kubectl, metadata).catch(() => 'nothing');
  const asked = (await modelRequests(kubectl, lane.installation.poolClass)).filter((one) => one.asked === word);
  const prompts = asked.filter(({ path }) => path.startsWith('/v1/responses')).length;
  await kubectl(['delete', 'tasks.core.orka.ai', metadata.name, '-n', metadata.namespace ?? '', '--timeout=60s']);
  return {
    pool: { ...pool, metadata: { ...pool.metadata, uid: runtimePoolUID } } as unknown as RuntimePool,
    end: [
      task.status?.phase ?? '',
      `answered: ${word.toLowerCase() === metadata.name.replaceAll('-', '_')}`,
      `prompts: ${prompts}`,
    ],
  };
}

const starting = [
  'create-credentials',
  'ensure',
  'record-template',
  'create-claim',
  'attest',
  'bind-instance',
  'seed',
  'probe',
] as const;

let words = 0;
const scenarios = {
  start: {
    effects: ['add-finalizer', 'read-credentials', ...starting],
    serving: false,
    happens: (lane) => lane.createPool(),
    over: served,
  },
  takeover: {
    effects: ['read-credentials', 'read-instance-credentials', 'drain', 'delete-claim', 'unbind-instance', 'remove', ...starting],
    serving: true,
    happens: 'takeover',
    over: served,
  },
  rollout: {
    effects: ['drain', 'delete-claim', 'retire-credentials', 'read-credentials', 'remove', ...starting],
    serving: true,
    happens: (_, pool) => patched(pool!, { coldStartTimeoutSeconds: 119 }),
    over: served,
  },
  rotation: {
    effects: ['drain', 'delete-claim', 'retire-credentials', 'read-credentials', 'remove', ...starting],
    serving: true,
    happens: async (lane, pool) => {
      await lane.rotateToken();
      return pool!;
    },
    over: async (lane, pool, epoch) => {
      const generation = lane.tokenGeneration();
      await eventuallyPool(
        pool,
        'has the token',
        (found) => found?.status?.activeInstance?.providerTokenGeneration === generation,
      );
      return served(lane, pool, epoch);
    },
  },
  drain: {
    effects: ['probe', 'drain', 'delete-claim'],
    serving: true,
    happens: (_, pool) => patched(pool!, { desiredReplicas: 0 }),
    over: stopped,
  },
  life: {
    effects: [
      ...['add-finalizer', 'read-credentials', 'drain', 'delete-claim', 'scale-to-zero', 'delete-pool', 'remove'],
      ...['remove-finalizer', ...starting],
    ] as PoolEffectName[],
    serving: false,
    happens: (lane) => lane.createTask(`CRASH_${++words}`),
    over: lived,
  },
  'plain-life': {
    effects: [
      'create-credentials',
      'ensure',
      'start-workload',
      'probe',
      'record-demand',
      'drain',
      'stop-workload',
      'scale-to-zero',
    ],
    serving: false,
    happens: (lane) => lane.createTask(`CRASH_${++words}`, undefined, 'plain'),
    over: shared,
  },
  deletion: {
    effects: ['probe', 'drain', 'delete-claim', 'remove', 'remove-finalizer'],
    serving: true,
    happens: async (_, pool) => {
      await deletePool(pool!);
      return pool!;
    },
    over: gone,
  },
} as const satisfies Readonly<Record<string, Scenario>>;
type ScenarioName = keyof typeof scenarios;

/** Where each effect is ended around when there is no time for all of it. */
const shortly = {
  'add-finalizer': 'start',
  'read-credentials': 'start',
  'create-credentials': 'start',
  'retire-credentials': 'rotation',
  'unbind-instance': 'takeover',
  'read-instance-credentials': 'takeover',
  ensure: 'start',
  'record-template': 'start',
  'create-claim': 'start',
  'delete-claim': 'drain',
  'start-workload': 'plain-life',
  'stop-workload': 'plain-life',
  attest: 'start',
  'bind-instance': 'start',
  seed: 'start',
  probe: 'start',
  drain: 'rollout',
  remove: 'deletion',
  'record-demand': 'plain-life',
  'scale-to-zero': 'life',
  'delete-pool': 'life',
  'remove-finalizer': 'deletion',
} as const satisfies Readonly<Record<PoolEffectName, ScenarioName>>;

interface Job {
  readonly scenario: ScenarioName;
  /** Absent: nobody ends anything. */
  readonly point?: Point;
}

/** The crash of each scenario that the gate plays. */
const gate = {
  start: 'bind-instance',
  takeover: 'unbind-instance',
  rollout: 'drain',
  rotation: 'retire-credentials',
  drain: 'delete-claim',
  life: 'delete-pool',
  'plain-life': 'start-workload',
  deletion: 'remove-finalizer',
} as const satisfies Readonly<Record<ScenarioName, PoolEffectName>>;

const names = (Object.keys(scenarios) as ScenarioName[]).filter((name) => ['', 'all', 'gate', name].includes(asked));
function effectsOf(scenario: ScenarioName): readonly PoolEffectName[] {
  if (asked === 'gate') return [gate[scenario]];
  if (asked === '') return poolEffects.filter((effect) => shortly[effect] === scenario);
  return [...new Set(scenarios[scenario].effects)];
}
const points = names.flatMap((scenario) =>
  effectsOf(scenario).flatMap((effect) =>
    (['begins', 'performed'] as const).map((phase) => ({
      scenario,
      effect,
      phase,
      when: phase === 'begins' ? 'before' : 'after',
    })),
  ),
);
const keyOf = ({ scenario, point }: Job) => (point ? `${scenario}: ${point.effect} ${point.phase}` : scenario);

/** What may not differ, whoever was ended and where. */
interface Outcome {
  readonly end: readonly string[];
  /** What is left when the pool is deleted. */
  readonly left: readonly string[];
  /** Addresses of Pods that were sent more than one material. */
  readonly seededTwice: readonly string[];
  /** Answers to deliveries, but for the first one of each Pod and its repetitions. */
  readonly refused: readonly string[];
}

interface Result {
  readonly outcome: Outcome;
  readonly claims: number;
  readonly effects: ReadonlySet<string>;
}

const results = new Map<string, Result | Error>();
const resultOf = (job: Job): Result => {
  const result = results.get(keyOf(job));
  if (!result) throw new Error(`${keyOf(job)} was not played`);
  if (result instanceof Error) throw result;
  return result;
};

/** UIDs of the claims that there were for a pool. */
const claims = new Map<string, Set<string>>();

/** Everything that there is of a pool that came to its end, without what differs from run to run. */
async function endOf(lane: Lane, pool: RuntimePool, came: RuntimePool | 'gone'): Promise<readonly string[]> {
  // Names of Secrets are shortened by as much as the epoch in them is longer.
  const stable = (text: string) =>
    text
      .replace(/^(Secret) .*-(auth|provider)-e\d+-.*$/, '$1 $2')
      .replace(/[0-9a-f]{10,}/g, '#')
      .replace(/-e\d+$/, '-e#');
  const found = await poolNow(pool);
  const objects = await objectsOf(lane, pool.metadata.uid ?? '');
  return [
    ...(came === 'gone' ? [came] : [came.status?.lifecycle, came.status?.admissionState].map(String)),
    ...(found?.metadata.finalizers ?? []),
    ...Object.keys(found?.metadata.annotations ?? {}).map(stable),
    ...objects.map(({ kind, metadata }) =>
      stable(`${kind} ${metadata.name}${metadata.deletionTimestamp === undefined ? '' : ' (going)'}`),
    ),
  ].sort();
}

function deliveries(trace: readonly Trace[]): Pick<Outcome, 'seededTwice' | 'refused'> {
  const sent = trace.flatMap((line) => ('sent' in line ? [line.sent] : []));
  const answered = trace.flatMap((line) => ('answered' in line ? [line.answered] : []));
  const taken = answered.filter(({ status }) => status === 201).map(({ to }) => to);
  const first = new Map(sent.toReversed().map(({ to, nonce }) => [to, nonce]));
  return {
    seededTwice: [
      ...sent.filter(({ to, nonce }) => nonce !== first.get(to)).map(({ to }) => `${to}: another material`),
      ...taken.filter((to, index) => taken.indexOf(to) < index).map((to) => `${to}: taken again`),
    ],
    // A repetition is confirmed, or comes when its phase is over.
    refused: answered.filter(({ status }) => ![200, 201, 404].includes(status)).map(({ to, status }) => `${to}: ${status}`),
  };
}

async function play(lane: Lane, { scenario: name, point }: Job): Promise<Result> {
  const scenario: Scenario = scenarios[name];
  await lane.controller();
  lane.forget();
  const before = scenario.serving ? await lane.createPool() : undefined;
  if (before) await served(lane, before, (await lane.controller()).epoch);
  let subject = before as Manifest | RuntimePool | undefined;
  if (scenario.happens === 'takeover') await lane.replace(point);
  else {
    if (point) await (await lane.controller()).dies(point);
    subject = await scenario.happens(lane, before);
  }
  if (point) {
    await lane.died(point);
    await lane.replace();
  }
  const { pool, end } = await scenario.over(lane, subject as RuntimePool, (await lane.controller()).epoch);
  await deletePool(pool);
  await gone(lane, pool);
  const uid = pool.metadata.uid ?? 'unknown';
  const left = await eventually(
    'what Kubernetes collects',
    async () => ((await objectsOf(lane, uid)).length === 0 ? [] : undefined),
    120,
  ).catch(async () => (await objectsOf(lane, uid)).map(({ kind, metadata }) => `${kind} ${metadata.name}`));
  await lane.restoreToken();
  const trace = lane.trace();
  return {
    outcome: { end, left, ...deliveries(trace) },
    claims: claims.get(uid)?.size ?? 0,
    effects: new Set(trace.flatMap((line) => ('effect' in line ? [line.effect] : []))),
  };
}

const lanes: Lane[] = [];
const watches: { readonly stop: () => void }[] = [];

beforeAll(async () => {
  const tell = stopwatch('crashes');
  const token = randomBytes(32).toString('base64url');
  lanes.push(await createLane('orka-crash-1', token));
  const others = Array.from({ length: lanesAtOnce - 1 }, (_, index) => createLane(`orka-crash-${index + 2}`, token));
  lanes.push(...(await Promise.all(others)));
  const { poolClass, image } = lanes[0]!.installation;
  await startModel(kubectl, poolClass, { image, token });
  watches.push(
    watch(cluster, '/apis/extensions.agents.x-k8s.io/v1beta1/sandboxclaims', ({ object: { metadata } }) => {
      const pool = metadata.labels?.[labelKeys.poolUid] ?? '';
      claims.set(pool, (claims.get(pool) ?? new Set()).add(metadata.uid ?? ''));
    }),
  );
  tell(`${lanes.length} installations`);
  const jobs: Job[] = [
    ...names.map((scenario): Job => ({ scenario })),
    ...points.map(({ scenario, effect, phase }): Job => ({ scenario, point: { effect, phase } })),
  ];
  await Promise.all(
    lanes.map(async (lane) => {
      for (let job = jobs.shift(); job; job = jobs.shift()) {
        const began = Date.now();
        const result = await play(lane, job).catch(async (error: unknown) => {
          await lane.clean();
          return error instanceof Error ? error : new Error(String(error));
        });
        results.set(keyOf(job), result);
        const how = result instanceof Error ? `failed: ${result.message.split('\n')[0] ?? ''}` : 'over';
        tell(`${keyOf(job)} ${how} in ${((Date.now() - began) / 1000).toFixed(1)} s`);
      }
    }),
  );
}, 3_600_000);

afterAll(async () => {
  for (const one of watches) one.stop();
  await Promise.all(lanes.map((lane) => lane.remove()));
  const [lane] = lanes;
  if (lane) await stopModel(kubectl, lane.installation.poolClass);
}, 600_000);

(['', 'all'].includes(asked) ? test : test.skip)(
  'every effect of a pool has a scenario in which a controller was ended before and after it',
  () => {
    const ended = (effect: PoolEffectName, phase: Point['phase']) =>
      names.some((scenario) => {
        const result = results.get(keyOf({ scenario, point: { effect, phase } }));
        return result !== undefined && !(result instanceof Error);
      });
    expect(poolEffects.filter((effect) => !ended(effect, 'begins') || !ended(effect, 'performed'))).toEqual([]);
  },
);

describe.each(names)('%s', (scenario) => {
  test('has its effects, comes to an end and leaves nothing when nobody ends a controller', () => {
    const { outcome, effects } = resultOf({ scenario });
    expect(scenarios[scenario].effects.filter((effect) => !effects.has(effect))).toEqual([]);
    expect(outcome).toMatchObject({ left: [], seededTwice: [], refused: [] });
  });

  test.each(points.filter((point) => point.scenario === scenario))(
    'comes to the same end when the controller is ended $when $effect, and nothing is left or done twice',
    ({ effect, phase }) => {
      const whole = resultOf({ scenario });
      const { outcome, claims: made } = resultOf({ scenario, point: { effect, phase } });
      expect(outcome).toEqual(whole.outcome);
      // What was started in an epoch is not used in the next one: that is the one claim more that there may be.
      expect(made).toBeLessThanOrEqual(whole.claims + 1);
    },
  );
});
