import type { Manifest } from '../../api/index.js';
import { meaningOf } from '../../domain/provider-reasons.js';
import { withoutValues } from '../../kube/sayings.js';
import { isObject } from '../../lib/json.js';
import type { Json } from '../../lib/json.js';
import type { ClaimVerdict } from './observation.js';

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
  return verdictOf(text(ready['reason']), text(ready['message']));
}

function verdictOf(reason: string, message: string): ClaimVerdict {
  const says = `${reason}: ${withoutValues(message)}`;
  switch (meaningOf(reason)) {
    case 'refused':
      return { state: 'refused', says };
    case 'ended':
      return { state: 'ended', says };
    case 'passing':
      return { state: 'open' };
    case 'hindered':
      return { state: reason === 'ReconcilerError' ? hiddenState(message) : 'open', says };
    case undefined:
      return { state: 'open', says };
  }
}

/** The provider has one reason for all that its reconciler cannot do. */
function hiddenState(message: string): 'refused' | 'blocked' | 'open' {
  if (hiddenRefusals.some((text) => message.includes(text))) return 'refused';
  return blocks.some((text) => message.includes(text)) ? 'blocked' : 'open';
}
