import { isUndemanded } from './demand.js';
import { end, holdsTemplate, isBeingDeleted, isGone } from './ending.js';
import { degraded, heldBack, stopping } from './intents.js';
import { endOf, recycled } from './recycle.js';
import { candidate, isUnwanted, keepLive, laterLook } from './rule.js';
import type { PoolRule } from './rule.js';

/** What must be so before a pool may have a sandbox, and while it has one: class, switch, isolation, credentials, template. */

/**
 * Never rendered again from another class: a pool of one that changed ends as if it were not wanted. Tasks wait, until the class is approved or
 * until the pool has been made anew from what it is now.
 */
export const classUnusable: PoolRule = (o, now) => {
  const { poolClass, demand } = o;
  if (poolClass.state === 'ready') return undefined;
  if (o.unguarded.length > 0 && o.claim && !o.claim.deleting) {
    const because = `isolation is gone and cannot be made again, since the class cannot be used: ${o.unguarded.join(', ')}`;
    return recycled(o, 'isolation-lost', because);
  }
  if (poolClass.state !== 'drifted' && poolClass.state !== 'outdated')
    return { status: degraded(poolClass.says, keepLive(o)), wait: laterLook };
  if (!isGone(o)) return end(o, now, { reason: 'runtime_pool_class_changed' });
  const replaced = poolClass.state === 'outdated' || isUndemanded(demand);
  return { status: degraded(poolClass.says), ...(replaced ? { effect: { do: 'delete-pool' } } : {}) };
};

/** Nothing new is begun; an instance that serves is left as it is. */
export const switchedOff: PoolRule = (o) => {
  if (o.enabled) return undefined;
  const message =
    'the provider is switched off: the operator of the platform sets controller.gates.agentSandbox: true in platform.yaml and applies it';
  const { lifecycle, activeInstance } = o.pool.status ?? {};
  const stays = activeInstance && lifecycle && o.claim && !o.claim.deleting && candidate(o)?.ready;
  return { status: stays ? heldBack(lifecycle, message) : degraded(message) };
};

/** Bootstrap material serves one Pod only. What was made since for another epoch was given to none. */
export const credentialsConsumed: PoolRule = (o) => {
  const bound = o.recorded.instance;
  if (bound === undefined || !isGone(o)) return undefined;
  const unused = o.credentials.state === 'ready' && bound !== 'unreadable' && bound.authSecretUID !== o.credentials.authSecretUid;
  return { effect: unused ? { do: 'unbind-instance' } : { do: 'retire-credentials' } };
};

export const credentialsUnknown: PoolRule = (o) => {
  const { credentials } = o;
  if (credentials.state === 'unread') return { effect: { do: 'read-credentials' } };
  if (credentials.state === 'unusable') return { status: degraded(credentials.says, keepLive(o)), wait: laterLook };
  return credentials.state === 'unpublished' ? { effect: { do: 'create-credentials' } } : undefined;
};

/** Without the Secret nobody could prove to another process what the instance was given. Source: workload.md §7.8. */
export const credentialsLost: PoolRule = (o) => {
  if (o.credentials.state !== 'lost') return undefined;
  const because = 'the private Secret of the pool is gone';
  if (o.claim && !o.claim.deleting) return recycled(o, 'credentials-lost', because);
  return isGone(o) ? { effect: { do: 'retire-credentials' } } : { status: stopping(because) };
};

/** Its spec is recorded when it is ours to the letter; any other spec was written by someone else. Source: workload.md §4 (a). */
export const templateChanged: PoolRule = (o) => {
  const { template, recorded } = o;
  if (!template || recorded.templateDigest === template.specDigest) return undefined;
  if (isGone(o)) {
    if (template.whole) return { effect: { do: 'record-template', digest: template.specDigest } };
    const wanted = o.rendered?.workload.find(holdsTemplate);
    return wanted && { effect: { do: 'ensure', objects: [{ wanted, live: template.live }] } };
  }
  const because =
    recorded.templateDigest === undefined
      ? 'the template has no controller-owned integrity record'
      : 'the template failed its controller-owned integrity check';
  return o.claim && !o.claim.deleting ? recycled(o, 'template-changed', because) : { status: stopping(because) };
};

/** A Deployment of the right revision that is not as rendered was changed by someone else: what it makes is not what was reviewed. */
export const deploymentChanged: PoolRule = (o) => {
  const { template, rendered } = o;
  if (!template || !rendered || template.whole || template.revision !== rendered.templateRevision) return undefined;
  const wanted = rendered.workload.find(holdsTemplate);
  if (isGone(o)) return wanted && { effect: { do: 'ensure', objects: [{ wanted, live: template.live }] } };
  const because = 'the Deployment was changed by someone else';
  return endOf(o, 'template-changed', because) ? recycled(o, 'template-changed', because) : { status: stopping(because) };
};

/** Comes before everything that would begin or end an instance: what still runs must not run without it. */
export const isolationBroken: PoolRule = (o) => {
  const broken = o.isolation.filter(({ state }) => state !== 'whole');
  if (broken.length === 0 || isBeingDeleted(o) || (isUnwanted(o) && isGone(o))) return undefined;
  const effect = { do: 'ensure', objects: broken } as const;
  const names = broken.map(({ wanted }) => `${wanted.kind} ${wanted.metadata.name}`).join(', ');
  const live = o.pool.status?.activeInstance !== undefined;
  return live ? { status: degraded(`isolation is being repaired: ${names}`, 'keep'), effect } : { effect };
};

export const workloadAbsent: PoolRule = (o) => {
  const objects = (o.rendered?.workload ?? []).flatMap((wanted) => {
    const child = holdsTemplate(wanted) ? o.template : o.warmPool;
    const whole = child && (holdsTemplate(wanted) || o.warmPool?.whole === true);
    return whole ? [] : [{ wanted, live: child?.live }];
  });
  return objects.length > 0 ? { effect: { do: 'ensure', objects } } : undefined;
};

export const secretsStale: PoolRule = (o) =>
  o.staleSecrets.length > 0 ? { effect: { do: 'remove', objects: o.staleSecrets } } : undefined;
