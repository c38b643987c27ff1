import type { Manifest, RuntimePool, RuntimePoolClassSpec, Task } from '../../api/index.js';
import { claimMatches, isOwned } from '../../domain/attestation.js';
import { identityOfPool, resolveFacts } from '../../domain/facts.js';
import { frozenByPool } from '../../domain/frozen.js';
import { annotationKeys, authSecretAnnotation, commonLabels, labelKeys } from '../../domain/labels.js';
import type { Family } from '../../domain/plan.js';
import { authSuffixOf, baseName, policyNames, poolKey, providerSuffixOf, workspaceNames } from '../../domain/names.js';
import { classProblem, poolProblem } from '../../domain/pool-problem.js';
import { podTemplateAt } from '../../constructs/template-revision.js';
import { belongsToSession } from '../../domain/pool-name.js';
import { keyOf } from '../../kube/store.js';
import { canonicalJson } from '../../lib/canonical-json.js';
import { isObject, valueAt } from '../../lib/json.js';
import { computedFrom, remembered } from '../../lib/remember.js';
import { digestOf } from '../../lib/sha256.js';
import type { CompiledPool } from '../../render/compile.js';
import { instantiate } from '../../render/instantiate.js';
import type { RenderedPool } from '../../render/instantiate.js';
import { classDigestOf, isMadeFrom } from '../classes.js';
import type { Classes } from '../classes.js';
import type { PodEnds } from '../pod-ends.js';
import { childKinds, poolLabelsOf, providerKinds, watchedKinds } from '../world.js';
import type { Watched, WatchedName, World } from '../world.js';
import { chainDiffers } from './chain.js';
import { claimVerdict } from './claim-verdict.js';
import { demandOf } from './demand.js';
import { differs } from './differs.js';
import type { AuthMaterial, PoolMemory, TokenMaterial } from './memory.js';
import type {
  ClaimView,
  CredentialsState,
  IsolationObject,
  Neighbour,
  PodView,
  PoolObservation,
  RecordedState,
  TemplateView,
} from './observation.js';
import { holdsTemplate } from './ending.js';
import { lacksNode } from './room.js';
import { isReleased } from './rule.js';
import { deploymentAsClaim, mountedCredentials, outlived, unmounted } from './plain.js';
import { podView } from './pod-view.js';

export interface ObserverOptions {
  readonly world: World;
  readonly classes: Pick<Classes, 'of'>;
  readonly enabled: boolean;
  readonly runtimeNamespace: string;
  readonly idleTtl: number;
  readonly epoch: number;
  readonly tokenVersion: (name: string) => string | undefined;
  /** Fields of the provider's objects that a class needs and the installed provider does not serve. */
  readonly fieldGapsOf: (compiled: CompiledPool) => readonly string[];
  /** How a Pod, or the supervisor in that container of it, came to its end. */
  readonly endOf: PodEnds['of'];
}

/** Puts together what is known of a pool; reads nothing from the server. `undefined` = there is no such pool. */
export function observePool(options: ObserverOptions, key: string, memory: PoolMemory): PoolObservation | undefined {
  const { world, classes, epoch, runtimeNamespace } = options;
  const pool = world.pools.get(key) as unknown as RuntimePool | undefined;
  if (!pool) return undefined;
  const labels = labelsOf(pool);
  const base = baseName(labels.poolNamespace, labels.poolName);
  const { templateName, warmPoolName, claimName } = workspaceNames(base);
  const at = (name: string) => `${runtimeNamespace}/${name}`;
  const common = commonLabels(labels);
  const own = (object: Manifest) => isOwned(object, runtimeNamespace, common);
  const poolClass = classOf(pool, classes);
  const compiled = poolClass.state === 'ready' ? poolClass.compiled : undefined;
  const tokenVersion = compiled && options.tokenVersion(compiled.spec.providerProxy.tokenSecretRef.name);
  const { family } = kindOf(pool);
  const ownSecret = (name: string) => {
    const found = world.secrets.get(at(name));
    return found && own(found) ? found : undefined;
  };
  const credentials = credentialsOf(pool, epoch, memory, { tokenVersion, secret: ownSecret });
  const rendered = compiled && credentials.state === 'ready' ? renderedOf(pool, compiled, epoch, memory) : undefined;
  const ownSecrets = world.secrets.by('pool', key).filter(own);
  const pods = family === 'workspace' ? ownPods(world, labels.poolUid, at(claimName)) : keyedPods(world, labels.poolKey);
  const deployment = world.deployments.get(at(base));
  const [template, warmPool, claim, sandbox] =
    family === 'workspace'
      ? [
          world.templates.get(at(templateName)),
          world.warmPools.get(at(warmPoolName)),
          world.claims.get(at(claimName)),
          world.sandboxes.get(at(claimName)),
        ]
      : [deployment];
  const attested = memory.attested?.podUid;
  const pod = pods.find(({ uid }) => uid === attested);
  return {
    pool,
    ...kindOf(pool),
    problem: problemOf(pool) ?? (compiled && namespaceProblem(pool, runtimeNamespace, compiled.spec)),
    poolClass,
    // The provider has no part in a plain pool.
    enabled: family === 'plain' || options.enabled,
    missingKinds:
      family === 'plain' ? [] : providerKinds.filter((name) => world[name].missing()).map((name) => watchedKinds[name].kind),
    unservedFields: family === 'plain' || !compiled ? [] : options.fieldGapsOf(compiled),
    unreadableKinds: unreadableKinds(world, family),
    epoch,
    demand: demandOf(
      pool,
      world.tasks.by('pool', key) as unknown as readonly Task[],
      memory.wanted,
      world.tasks.readable(labels.poolNamespace),
    ),
    idleTtl: options.idleTtl,
    credentials,
    rendered,
    isolation: (rendered?.isolation ?? []).map((wanted) => isolationState(world, wanted, own)),
    template: template && templateView(template, own(template), rendered),
    warmPool: warmPool && {
      live: warmPool,
      owned: own(warmPool),
      whole:
        rendered === undefined || rendered.workload.every((one) => one.kind !== 'SandboxWarmPool' || !changedFrom(warmPool, one)),
    },
    claim:
      family === 'plain'
        ? deployment && deploymentAsClaim(deployment, own(deployment), memory.askedAt)
        : claim && claimView(claim, own(claim), warmPoolName, memory),
    sandbox,
    pods,
    ended: endedInstance(pool, pods, memory, options.endOf),
    cordonedNode: pods.find((one) => isOnCordonedNode(one, world))?.node,
    orphans: family === 'plain' ? outlived(deployment, pods, own) : orphansOf(sandbox, pods, labels.poolUid, own),
    unguarded: policyNames(base).filter((name) => !world.policies.get(at(name))),
    staleSecrets:
      credentials.state === 'ready'
        ? staleSecrets(ownSecrets.filter(isManaged), { family, deployment, pods }, epoch, memory)
        : [],
    strangers: ownSecrets.filter((secret) => !isManaged(secret)),
    remains: [world.services, world.policies, world.budgets, world.secrets].flatMap((watched) =>
      watched.by('pool', key).filter(own),
    ),
    recorded: recordedState(pool),
    known: {
      attested,
      suspect: Boolean(
        attested !== undefined &&
        template &&
        claim &&
        sandbox &&
        pod &&
        chainDiffers({ template, claim, sandbox, pod: pod.live }, memory),
      ),
      mismatch: memory.mismatch,
      undecided: memory.undecided,
      seeded: memory.seeded,
      seeding: memory.seeding,
      authenticated: authenticated(pool, pods, memory),
      probe: memory.probe,
    },
    neighbours: lacksNode(pods) ? neighboursOf(world, key) : [],
    recycling: { ...memory.recycling },
  };
}

function unreadableKinds(world: World, family: Family): readonly string[] {
  const without: readonly WatchedName[] = family === 'plain' ? providerKinds : ['deployments'];
  const names = childKinds.filter((name) => !without.includes(name) && !world[name].readable());
  return names.map((name) => watchedKinds[name].kind);
}

/** The family of a pool, and whether one Task alone uses it. */
function kindOf({ metadata, spec }: RuntimePool): Pick<PoolObservation, 'family' | 'ofOneTask'> {
  const family = spec.executionWorkspace ? 'workspace' : 'plain';
  return { family, ofOneTask: family === 'workspace' && !belongsToSession(metadata.name) };
}

/** The end of a container counts only if that container was the one that was seeded or asked. */
function endedInstance(pool: RuntimePool, pods: readonly PodView[], { seeded, probe }: PoolMemory, endOf: PodEnds['of']) {
  const bound = recordedState(pool).instance;
  const boundUid = bound === 'unreadable' ? undefined : bound?.workloadUID;
  const uid = pool.status?.activeInstance?.podUID ?? boundUid ?? pods[0]?.uid;
  if (uid === undefined) return undefined;
  const known = [seeded, probe].find((one) => one?.podUid === uid && one.containerId !== undefined);
  return endOf(uid, known?.containerId);
}

function isOnCordonedNode({ node, deleting, finished, toleratesCordon }: PodView, { cordonedNodes }: World): boolean {
  return !deleting && !finished && !toleratesCordon && node !== undefined && cordonedNodes.get(node) !== undefined;
}

function neighboursOf(world: World, key: string): readonly Neighbour[] {
  const others = (world.pools.list() as unknown as readonly RuntimePool[]).filter(
    (pool) => keyOf(pool) !== key && !isReleased(pool),
  );
  return others.map((pool) => ({
    pool,
    ...kindOf(pool),
    demand: demandOf(
      pool,
      world.tasks.by('pool', keyOf(pool)) as unknown as readonly Task[],
      false,
      // A pool that cannot be read may be gone, and cannot be ended then.
      world.tasks.readable(pool.metadata.namespace) && world.pools.readable(pool.metadata.namespace),
    ),
    placed: world.pods.by('pool', keyOf(pool)).some((pod) => viewOf(pod).node !== undefined),
  }));
}

export const labelsOf = remembered(({ metadata }: RuntimePool) => {
  const [poolNamespace, poolName] = [metadata.namespace ?? '', metadata.name];
  return { poolNamespace, poolName, poolUid: metadata.uid ?? '', poolKey: poolKey(poolNamespace, poolName) };
});

/** A pool is only ever rendered from the class as it was when the pool was made. */
function classOf(pool: RuntimePool, classes: Pick<Classes, 'of'>): PoolObservation['poolClass'] {
  const verdict = classes.of(pool.spec.runtime.profile.providerKind);
  if (verdict.state !== 'ready' || isMadeFrom(pool, verdict)) return verdict;
  const recorded = classDigestOf(pool) ?? 'none';
  const says = `the pool was made from digest ${recorded} of its class, which is ${verdict.digest} now`;
  return { state: 'outdated', name: verdict.name, says };
}

function namespaceProblem(pool: RuntimePool, runtimeNamespace: string, spec: RuntimePoolClassSpec) {
  if (pool.spec.runtimeNamespace !== runtimeNamespace)
    return {
      at: `RuntimePool ${pool.metadata.namespace ?? ''}/${pool.metadata.name}`,
      field: 'spec.runtimeNamespace',
      found: pool.spec.runtimeNamespace,
      allowed: `${runtimeNamespace}: another namespace is not permitted`,
    };
  return classProblem(pool, spec);
}

function credentialsOf(
  pool: RuntimePool,
  epoch: number,
  { auth, token }: PoolMemory,
  now: { readonly tokenVersion: string | undefined; readonly secret: (name: string) => Manifest | undefined },
): CredentialsState {
  if (token === undefined) return { state: 'unread' };
  if ('says' in token) return { state: 'unusable', says: token.says };
  if (now.tokenVersion !== undefined && now.tokenVersion !== token.watchedAs) return { state: 'unread' };
  if (!pool.spec.executionWorkspace) return mountedCredentials(pool, epoch, { auth, token }, now.secret);
  const published = pool.metadata.annotations?.[authSecretAnnotation(epoch)];
  if (published === undefined) return { state: 'unpublished' };
  const material = auth.get(epoch);
  if (material === 'lost') return { state: 'lost' };
  if (!material || `${material.secretName}/${material.secretUid}` !== published) return { state: 'unread' };
  // What is remembered of it may be used no more once it is gone.
  if (now.secret(material.secretName)?.metadata.uid !== material.secretUid) return { state: 'lost' };
  return { state: 'ready', authSecretUid: material.secretUid, tokenGeneration: token.generation };
}

// Most looks at a pool find most objects as they were: what follows from them alone is not computed again.
const changedFrom = remembered((live: Manifest, wanted: Manifest) => differs(wanted, live));
const viewOf = remembered(podView);
const problemOf = remembered(poolProblem);
const templateDigest = remembered(digestOfSpec);

/** What is rendered depends on the pool's spec, which has a generation, and not on what else is written into the pool. */
function renderedOf(pool: RuntimePool, compiled: CompiledPool, epoch: number, memory: PoolMemory): RenderedPool | undefined {
  const { auth, token } = memory;
  const material = auth.get(epoch);
  if (!material || material === 'lost' || !token || 'says' in token || classProblem(pool, compiled.spec)) return undefined;
  const { uid, generation } = pool.metadata;
  const from = [uid, generation, epoch, compiled, material, token];
  memory.rendered = computedFrom(memory.rendered, from, () => render(pool, compiled, epoch, material, token));
  return memory.rendered.value;
}

function render(
  pool: RuntimePool,
  compiled: CompiledPool,
  epoch: number,
  material: AuthMaterial,
  token: TokenMaterial,
): RenderedPool {
  const [identity, instance] = [identityOfPool(pool), { controllerEpoch: epoch, tokenGeneration: token.generation }];
  const frozen = frozenByPool(pool.spec);
  if (!material.bootstrap) {
    const [none, one] = ([0, 1] as const).map((replicas) =>
      instantiate(compiled, resolveFacts(identity, instance, { replicas }), frozen),
    ) as [RenderedPool, RenderedPool];
    const asking = one.workload.find(holdsTemplate);
    return { ...none, ...(asking ? { claim: asking } : {}) };
  }
  const facts = resolveFacts(identity, instance, {
    authSecret: { name: material.secretName },
    providerSecret: { name: token.secretName },
    nonce: material.bootstrap.nonce,
    publicKey: material.bootstrap.publicKey,
  });
  return instantiate(compiled, facts, frozen);
}

function isolationState(world: World, wanted: Manifest, own: (object: Manifest) => boolean): IsolationObject {
  const kinds: readonly Watched[] = [world.services, world.policies, world.budgets];
  const watched = kinds.find(({ kind }) => kind.kind === wanted.kind);
  const live = watched?.get(`${wanted.metadata.namespace ?? ''}/${wanted.metadata.name}`);
  if (!live || live.metadata.deletionTimestamp !== undefined) return { wanted, live: undefined, state: 'absent' };
  if (!own(live)) return { wanted, live, state: 'foreign' };
  return { wanted, live, state: changedFrom(live, wanted) ? 'changed' : 'whole' };
}

function templateView(live: Manifest, owned: boolean, rendered: RenderedPool | undefined): TemplateView {
  const wanted = rendered?.workload.find(holdsTemplate);
  const at = live.kind === 'Deployment' ? podTemplateAt.Deployment : podTemplateAt.SandboxTemplate;
  const path = ['spec', at, 'metadata', 'annotations', annotationKeys.templateRevision];
  const revision = valueAt(live, path);
  return {
    live,
    owned,
    whole: wanted !== undefined && !changedFrom(live, wanted),
    specDigest: templateDigest(live),
    revision: typeof revision === 'string' ? revision : undefined,
  };
}

/** What the integrity record of a template is taken over: its spec as it is stored. */
function digestOfSpec(template: Manifest): string {
  return digestOf(canonicalJson(template['spec'] ?? null));
}

function claimView(live: Manifest, owned: boolean, warmPoolName: string, memory: PoolMemory): ClaimView {
  const deleting = live.metadata.deletionTimestamp !== undefined || live.metadata.uid === memory.deleting;
  return { live, owned, whole: claimMatches(live, warmPoolName), deleting, verdict: claimVerdict(live) };
}

/** By label, and the one of the claim's name, so that a Pod that lost its labels is not taken for gone. */
function ownPods({ pods }: Pick<World, 'pods'>, poolUid: string, claimKey: string): readonly PodView[] {
  const labelled = pods.by('poolUid', poolUid);
  const named = pods.get(claimKey);
  const all = named && !labelled.includes(named) ? [...labelled, named] : labelled;
  return all.map((pod) => viewOf(pod));
}

/** Whatever has the label that the Deployment, the Service and the policies select by. Source: workload.md §3.9. */
function keyedPods({ pods }: Pick<World, 'pods'>, poolKey: string): readonly PodView[] {
  return pods.by('poolKey', poolKey).map((pod) => viewOf(pod));
}

/** Whoever deletes a claim and keeps its dependents leaves a Sandbox without an owner; and a Pod can be made by hand. */
function orphansOf(
  sandbox: Manifest | undefined,
  pods: readonly PodView[],
  poolUid: string,
  own: (object: Manifest) => boolean,
): readonly Manifest[] {
  const alone = ({ metadata }: Manifest) => metadata.deletionTimestamp === undefined && !metadata.ownerReferences?.length;
  const ours = sandbox && poolLabelsOf(sandbox)[labelKeys.poolUid] === poolUid;
  const ownPods = pods.flatMap(({ live }) => (own(live) ? [live] : []));
  return [...(ours ? [sandbox] : []), ...ownPods].filter(alone);
}

/** Made by a controller: nothing else is ever pruned. Source: workload.md §3.7. */
function isManaged(secret: Manifest): boolean {
  const { name } = secret.metadata;
  return secret['immutable'] === true && (authSuffixOf(name) !== '' || providerSuffixOf(name) !== '');
}

function staleSecrets(
  own: readonly Manifest[],
  users: { readonly family: Family; readonly deployment: Manifest | undefined; readonly pods: readonly PodView[] },
  epoch: number,
  { auth, token }: PoolMemory,
): readonly Manifest[] {
  const material = auth.get(epoch);
  const current = [
    material && material !== 'lost' ? material.secretName : undefined,
    token && 'secretName' in token ? token.secretName : undefined,
  ];
  if (users.family === 'plain')
    return unmounted(
      own,
      current.flatMap((name) => name ?? []),
      users.deployment,
      users.pods,
    );
  return own.filter(({ metadata }) => !current.includes(metadata.name) && metadata.deletionTimestamp === undefined);
}

function recordedState({ metadata }: RuntimePool): RecordedState {
  const annotations = metadata.annotations ?? {};
  return {
    templateDigest: annotations[annotationKeys.templateIntegrity],
    instance: instanceBinding(annotations[annotationKeys.instanceBinding]),
  };
}

function instanceBinding(text: string | undefined): RecordedState['instance'] {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value)) return 'unreadable';
    const { authSecretUID, workloadUID } = value;
    return typeof authSecretUID === 'string' && typeof workloadUID === 'string' ? { authSecretUID, workloadUID } : 'unreadable';
  } catch {
    return 'unreadable';
  }
}

function authenticated({ status }: RuntimePool, pods: readonly PodView[], { auth }: PoolMemory): 'unread' | 'lost' | 'ready' {
  const identity = pods.find(({ uid }) => uid === status?.activeInstance?.podUID)?.identity;
  const material = identity && auth.get(identity.controllerEpoch);
  if (material === 'lost') return 'lost';
  return material ? 'ready' : 'unread';
}
