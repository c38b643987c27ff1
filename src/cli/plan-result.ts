import type { Manifest, Task, TaskStatus } from '../api/index.js';
import type { Refusal } from '../domain/admission/admit.js';
import { queuedStatus, refusedStatus } from '../domain/admission/project.js';
import type { Digest } from '../domain/digests.js';
import { frozenByClass } from '../domain/frozen.js';
import type { Plan } from '../domain/plan.js';
import { workspaceSource } from '../domain/repository/source.js';
import { fieldPath } from '../lib/json.js';
import type { Path } from '../lib/json.js';
import { objectsOf } from '../render/compile.js';
import type { CompiledPool } from '../render/compile.js';
import { instantiate, renderedObjects } from '../render/instantiate.js';
import { renderRuntimePool } from '../render/runtime-pool.js';
import { plannedFacts, sourceOf } from './plan-facts.js';
import type { LiveInput, LiveValues, PlannedFact } from './plan-facts.js';
import type { Obstacle } from './plan-today.js';

/** What `plan -o json` prints; the shape is stable. */
export interface PlanResult {
  /** `unseen`: no controller reads the Task. `waiting`: an operator has to act first. Both create nothing. */
  readonly verdict: 'accepted' | 'refused' | 'unseen' | 'waiting';
  /** What the controller would write, times included as the fact `now`. Of an unseen Task: nothing. */
  readonly status: TaskStatus;
  readonly pool: {
    readonly name: string;
    readonly family: string;
    readonly profileDigest: string;
    readonly workspaceBindingDigest: string | null;
    readonly runtimeImage: string;
    readonly labels: Readonly<Record<string, string>>;
  } | null;
  /** The repository that would be fetched; `null` = there is none, or the Task is not accepted. */
  readonly source: {
    /** Host and path, with the port unless it is 443. */
    readonly repository: string;
    readonly url: string;
    /** A commit, a full reference, or a name that is looked up as branch and tag; `null` = the default branch. */
    readonly ref: string | null;
    readonly subPath: string | null;
    /** Of the namespace of the Task. Nobody looked at it. */
    readonly credential: { readonly secret: string; readonly key: string } | null;
  } | null;
  readonly poolClass: { readonly name: string; readonly digest: string; readonly approved: boolean } | null;
  readonly facts: Readonly<Record<string, PlannedFact>>;
  /** The RuntimePool first, then everything else in the order in which it is applied. */
  readonly objects: readonly Manifest[];
  readonly secrets: readonly { readonly name: string; readonly keys: readonly string[] }[];
  /** What a person should know beside the verdict. */
  readonly notes: readonly string[];
}

/** The class that a plan uses. */
export interface ChosenClass {
  readonly name: string;
  readonly compiled: CompiledPool;
  readonly digest: Digest;
  readonly approved: boolean;
}

/** The notes are added when the verdict is known. */
type Outcome = Omit<PlanResult, 'notes'>;

/** A result, and which of its lines stand for something: fact by field path, by object. */
export interface MarkedResult {
  readonly result: Outcome;
  readonly marks: ReadonlyMap<Manifest, ReadonlyMap<string, string>>;
}

const classOf = (chosen: ChosenClass | undefined): PlanResult['poolClass'] =>
  chosen ? { name: chosen.name, digest: chosen.digest, approved: chosen.approved } : null;

/** What a Task has that is not begun. */
const nothing = { pool: null, source: null, facts: {}, objects: [], secrets: [] };

function plannedSource({ spec }: Task): PlanResult['source'] {
  const source = workspaceSource(spec.workspace);
  if (!source) return null;
  const { repository, sourceRef, relativeRoot = null, credential } = source;
  return {
    repository: repository.id,
    url: repository.url,
    ref: sourceRef === '' ? null : sourceRef,
    subPath: relativeRoot,
    credential: credential ? { secret: credential.name, key: credential.key } : null,
  };
}

export function refusedResult(
  task: Task,
  refusal: Refusal,
  defaultProvider: string,
  chosen: ChosenClass | undefined,
  now: string,
): MarkedResult {
  const status = refusedStatus(task, refusal, defaultProvider, now);
  return {
    result: { verdict: 'refused', status, ...nothing, poolClass: classOf(chosen) },
    marks: new Map(),
  };
}

/** A Task that the installed controller would not begin. */
export function stoppedResult({ verdict, says }: Obstacle, chosen: ChosenClass | undefined): MarkedResult {
  const status: TaskStatus = verdict === 'unseen' ? {} : { message: says };
  return {
    result: { verdict, status, ...nothing, poolClass: classOf(chosen) },
    marks: new Map(),
  };
}

/** Where the RuntimePool, which is rendered on concrete values, holds live facts. */
const poolLeaves: readonly (readonly [Path, string])[] = [
  [['metadata', 'name'], 'poolName'],
  [['metadata', 'namespace'], 'poolNamespace'],
  [['metadata', 'annotations', 'orka.ai/acp-last-demand-at'], 'now'],
  [['metadata', 'labels', 'orka.ai/acp-profile'], 'profileDigest'],
  [['metadata', 'labels', 'orka.ai/acp-trust-domain'], 'poolNamespace'],
  [['spec', 'trustDomain', 'namespace'], 'trustNamespace'],
  [['spec', 'trustDomain', 'identity'], 'trustNamespace'],
  [['spec', 'runtime', 'profile', 'digest'], 'profileDigest'],
  [['spec', 'runtime', 'profile', 'agentConfigurationDigest'], 'agentConfigurationDigest'],
  [['spec', 'executionWorkspace', 'bindingDigest'], 'workspaceBindingDigest'],
];

export function acceptedResult(
  { plan, task }: { readonly plan: Plan; readonly task: Task },
  chosen: ChosenClass,
  live: LiveValues,
  known: ReadonlySet<LiveInput>,
): MarkedResult {
  const facts = plannedFacts(plan, live);
  const rendered = instantiate(chosen.compiled, facts, frozenByClass(chosen.compiled.spec));
  const runtimePool = renderRuntimePool(plan, { poolClass: chosen, demandedAt: live.now, task: task.metadata.name });
  const rest = renderedObjects(rendered);
  const source = sourceOf(known, plan.family);
  const all = {
    ...facts,
    now: live.now,
    taskUid: live.taskUid,
    agentUid: live.agentUid,
    agentGeneration: live.agentGeneration,
    templateRevision: rendered.templateRevision,
    ...(plan.binding ? { workspaceBindingDigest: plan.binding.bindingDigest } : {}),
  };
  const marked = (leaves: readonly (readonly [Path, string])[]): ReadonlyMap<string, string> =>
    new Map(leaves.filter(([, fact]) => source(fact) === 'placeholder').map(([path, fact]) => [fieldPath(path), fact]));
  const compiled = objectsOf(chosen.compiled[plan.family]);
  const marks = new Map([
    [runtimePool, marked(poolLeaves)],
    ...rest.map((manifest, index): [Manifest, ReadonlyMap<string, string>] => [
      manifest,
      marked((compiled[index]?.leaves ?? []).map(({ path, name }) => [path, name])),
    ]),
  ]);
  const pool = { uid: live.poolUid, reused: false };
  const attempt = { controllerEpoch: Number(live.controllerEpoch), taskUID: live.taskUid };
  return {
    marks,
    result: {
      verdict: 'accepted',
      status: queuedStatus(plan, pool, attempt, live.now),
      pool: {
        name: plan.poolName,
        family: plan.family,
        profileDigest: plan.profileDigest,
        workspaceBindingDigest: plan.binding?.bindingDigest ?? null,
        runtimeImage: plan.image,
        labels: runtimePool.metadata.labels ?? {},
      },
      source: plannedSource(task),
      poolClass: classOf(chosen),
      facts: Object.fromEntries(
        Object.entries(all)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, value]) => [name, { value: String(value), source: source(name) }]),
      ),
      objects: [runtimePool, ...rest],
      secrets: rendered.secrets.map(({ manifest, keys }) => ({ name: manifest.metadata.name, keys })),
    },
  };
}
