import type { Manifest } from '../../api/index.js';
import { withoutValues } from '../../kube/sayings.js';
import { isObject } from '../../lib/json.js';
import type { Json } from '../../lib/json.js';
import type { ClaimVerdict } from './observation.js';

/** Reasons that no waiting cures. */
const refusals: readonly string[] = ['InvalidMetadata', 'EnvVarsInjectionRejected', 'VolumeClaimTemplatesError'];
const endings: readonly string[] = ['ClaimExpired', 'SandboxExpired'];
/** What may pass by itself, but would be the cause if it did not: a quota, a missing object. */
const hindrances: readonly string[] = ['ReconcilerError', 'WarmPoolNotFound', 'TemplateNotFound'];
/** Messages under which the provider hides configuration errors of reason `ReconcilerError`. */
const hiddenRefusals = [
  'metadata override conflict',
  'environment variable override',
  'target container',
  'is not controlled by claim',
  'is invalid:',
];

/** What a quota or an admission says; it may change its mind. */
const blocks = ['exceeded quota', 'is forbidden', 'violates PodSecurity'];

/** Reads a claim's Ready condition of its own generation; everything that may pass is `open`. Source: provider.md §4.1–4.3. */
export function claimVerdict(claim: Manifest): ClaimVerdict {
  const status = isObject(claim['status']) ? claim['status'] : {};
  const conditions = Array.isArray(status['conditions']) ? (status['conditions'] as readonly Json[]) : [];
  if (conditions.length === 0) return { state: 'unseen' };
  const ready = conditions.find((condition) => isObject(condition) && condition['type'] === 'Ready');
  if (!isObject(ready) || ready['status'] !== 'False' || ready['observedGeneration'] !== claim.metadata.generation)
    return { state: 'open' };
  const text = (member: Json | undefined) => (typeof member === 'string' ? member : '');
  const [reason, message] = [text(ready['reason']), text(ready['message'])];
  const says = `${reason}: ${withoutValues(message)}`;
  if (refusals.includes(reason)) return { state: 'refused', says };
  if (endings.includes(reason)) return { state: 'ended', says };
  if (reason === 'ReconcilerError' && hiddenRefusals.some((text) => message.includes(text))) return { state: 'refused', says };
  if (reason === 'ReconcilerError' && blocks.some((text) => message.includes(text))) return { state: 'blocked', says };
  return hindrances.includes(reason) ? { state: 'open', says } : { state: 'open' };
}
