/** A controller that ends before or after any effect, wherever a pool is in its life, is followed by one that comes to the same end. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Manifest, RuntimePool } from '../../../src/api/index.js';
import { poolEffects } from '../../../src/controller/pool/decision.js';
import type { PoolEffectName } from '../../../src/controller/pool/decision.js';
import type { PoolReconciler, PoolSignals } from '../../../src/controller/pool/reconcile.js';
import type { Family } from '../../../src/domain/plan.js';
import type { JsonObject } from '../../../src/lib/json.js';
import { sha256Hex } from '../../../src/lib/sha256.js';
import { fakePoolCluster } from '../../support/fake-pool-cluster.js';
import type { FakePoolCluster } from '../../support/fake-pool-cluster.js';

const [earlier, epoch] = [6, 7];
const rotated = 'rotated-0123456789-0123456789-0123';

interface Scenario {
  readonly name: string;
  /** Brings the pool to where the scenario begins. @default it is new */
  readonly from?: (cluster: FakePoolCluster, controller: PoolReconciler) => Promise<unknown>;
  /** A controller of an earlier epoch brought it there. */
  readonly takesOver?: true;
  readonly happens?: (cluster: FakePoolCluster) => void;
  readonly over: (cluster: FakePoolCluster) => boolean;
}

const isServing = (cluster: FakePoolCluster) => {
  const { metadata, status } = cluster.pool() ?? {};
  return status?.admissionState === 'Accepting' && status.observedGeneration === metadata?.generation;
};
const isGone = (cluster: FakePoolCluster) => cluster.pool() === undefined;
const isStopped = (cluster: FakePoolCluster) => cluster.pool()?.status?.lifecycle === 'Stopped';
const serving = (cluster: FakePoolCluster, controller: PoolReconciler) => cluster.run(controller, () => isServing(cluster));

function change(cluster: FakePoolCluster, changed: { readonly spec?: JsonObject; readonly metadata?: JsonObject }): void {
  const { metadata, spec, ...rest } = cluster.pool() as unknown as Manifest & { readonly spec: JsonObject };
  cluster.put({ ...rest, metadata: { ...metadata, ...changed.metadata }, spec: { ...spec, ...changed.spec } });
}

function taskOver(cluster: FakePoolCluster): void {
  const [task] = cluster.objects('Task');
  const lastTransitionTime = new Date(cluster.clock.now()).toISOString();
  cluster.put({ ...task!, status: { execution: { state: 'Succeeded', lastTransitionTime } } });
}

/** A plain pool is kept, at zero. */
const unneeded = 'a life that nobody needs any more';
const scenarios: readonly Scenario[] = [
  { name: 'a start', over: isServing },
  {
    name: 'a takeover by another epoch',
    from: serving,
    takesOver: true,
    over: (cluster) => isServing(cluster) && (cluster.pool()?.status?.activeInstance?.controllerEpoch ?? 0) > earlier,
  },
  {
    name: 'a rollout',
    from: serving,
    happens: (cluster) => change(cluster, { spec: { coldStartTimeoutSeconds: 119 } }),
    over: isServing,
  },
  {
    name: 'a rotation of the token',
    from: serving,
    happens: (cluster) => {
      const [token] = cluster.objects('Secret').filter(({ metadata }) => metadata.name === 'provider-proxy');
      cluster.put({ ...token!, data: { token: Buffer.from(rotated).toString('base64') } });
    },
    over: (cluster) =>
      isServing(cluster) && cluster.pool()?.status?.activeInstance?.providerTokenGeneration === sha256Hex(rotated).slice(0, 16),
  },
  {
    name: 'the loss of a Pod',
    from: serving,
    happens: (cluster) => {
      cluster.remove('Pod', cluster.objects('Pod')[0]!.metadata.name);
      Object.assign(cluster.supervisor, { seeded: false, boot: 'boot-2' });
    },
    over: (cluster) => isServing(cluster) && cluster.pool()?.status?.activeInstance?.bootID !== 'boot-1',
  },
  { name: 'a drain', from: serving, happens: (cluster) => change(cluster, { spec: { desiredReplicas: 0 } }), over: isStopped },
  { name: unneeded, from: serving, happens: taskOver, over: isGone },
  {
    name: 'a deletion',
    from: serving,
    happens: (cluster) => change(cluster, { metadata: { deletionTimestamp: new Date(cluster.clock.now()).toISOString() } }),
    over: isGone,
  },
];

/** Who watches the effects of a scenario, which begins when it is told so. */
interface Watching {
  begins: boolean;
  readonly observer: PoolSignals['effect'];
}

/** @param onEffect is told the number of the effect within the scenario */
function watching(onEffect: (effect: PoolEffectName, phase: 'begins' | 'performed', index: number) => void): Watching {
  let index = -1;
  const self: Watching = {
    begins: false,
    observer: (effect, phase) => {
      if (!self.begins || phase === 'conflicted') return;
      if (phase === 'begins') index++;
      onEffect(effect.do, phase, index);
    },
  };
  return self;
}

async function play(cluster: FakePoolCluster, scenario: Scenario, watch: Watching): Promise<void> {
  const controller = cluster.start(epoch, watch.observer);
  await scenario.from?.(cluster, scenario.takesOver ? cluster.start(earlier) : controller);
  watch.begins = true;
  scenario.happens?.(cluster);
  await cluster.run(controller, () => scenario.over(cluster), 200);
}

/** Everything that there is in the end, without what differs from run to run. */
function endOf(cluster: FakePoolCluster): unknown {
  const { metadata, spec, status } = cluster.pool() ?? ({} as Partial<RuntimePool>);
  const kinds = ['Secret', 'Service', 'NetworkPolicy', 'PodDisruptionBudget', 'Deployment', 'SandboxTemplate', 'SandboxWarmPool'];
  const names = [...kinds, 'SandboxClaim', 'Sandbox', 'Pod'].flatMap((kind) =>
    cluster.objects(kind).map((object) => `${kind} ${object.metadata.name}`),
  );
  // Names of Secrets say epoch, token and chance.
  const stable = (name: string) =>
    name
      .replace(/-g[0-9a-f]{16}-/, '-')
      .replace(/[0-9a-f]{24}$/, '')
      .replace(/-g[0-9a-f]{16}$/, '')
      .replace(/(Pod acp-.*)-\d+$/, '$1')
      .replace(/-e\d+(-|$)/, '-e<epoch>$1');
  return {
    names: names.map(stable).sort(),
    annotations: Object.keys(metadata?.annotations ?? {})
      .map(stable)
      .sort(),
    finalizers: metadata?.finalizers,
    desiredReplicas: spec?.desiredReplicas,
    lifecycle: [status?.lifecycle, status?.admissionState, status?.activeInstance !== undefined],
    deleted: metadata?.deletionTimestamp !== undefined,
  };
}

/** UIDs of Pods that were sent more than one material, whatever came of it. */
function seededTwice({ supervisor }: FakePoolCluster): readonly string[] {
  const first = new Map<string, string>();
  return supervisor.deliveries.flatMap(({ podUid, body }) => {
    const known = first.get(podUid) ?? body;
    first.set(podUid, known);
    return known === body ? [] : [podUid];
  });
}

/** What each scenario does when nobody interrupts it, and what it comes to. */
async function played(family: Family, scenario: Scenario) {
  const cluster = await fakePoolCluster({}, family);
  try {
    const effects: PoolEffectName[] = [];
    await play(
      cluster,
      scenario,
      watching((effect, phase) => {
        if (phase === 'begins') effects.push(effect);
      }),
    );
    return { family, scenario, effects, end: endOf(cluster) };
  } finally {
    await cluster.close();
  }
}

const uninterrupted: Awaited<ReturnType<typeof played>>[] = [];
for (const scenario of scenarios) uninterrupted.push(await played('workspace', scenario));
for (const scenario of scenarios)
  uninterrupted.push(await played('plain', scenario.name === unneeded ? { ...scenario, over: isStopped } : scenario));

test('the scenarios have every effect of a pool, and no other', () => {
  expect(new Set(uninterrupted.flatMap(({ effects }) => effects))).toEqual(new Set(poolEffects));
});

describe.each(uninterrupted)('of a $family pool, in $scenario.name', ({ family, scenario, effects, end }) => {
  let cluster: FakePoolCluster;
  beforeEach(async () => {
    cluster = await fakePoolCluster({}, family);
  });
  afterEach(() => cluster.close());

  const points = effects.flatMap((effect, index) =>
    (['begins', 'performed'] as const).map((phase) => ({ effect, index, phase, when: phase === 'begins' ? 'before' : 'after' })),
  );

  test.each(points)(
    'another epoch goes on where a process ended $when effect $index, $effect',
    async ({ index, phase }) => {
      const crash = watching((_, reached, number) => {
        if (number === index && reached === phase) throw new Error('the process ends here');
      });
      await expect(play(cluster, scenario, crash)).rejects.toThrow('the process ends here');
      await cluster.run(cluster.start(epoch + 1), () => scenario.over(cluster), 200);
      expect(endOf(cluster)).toEqual(end);
      expect(seededTwice(cluster)).toEqual([]);
    },
    60_000,
  );
});
