import { CodedError } from '../lib/errors.js';
import type { JsonObject } from '../lib/json.js';
import type { Digest } from '../lib/sha256.js';
import type { RefusedDetail } from './source-refusals.js';
import { controlRecordId, domainDigest } from './digests.js';

/** What the controller asks of the publisher for a Task that reads a repository. */
type SourceEffectKind = 'workspace.resolve' | 'workspace.prepare';

/** Which call it is: one record, one operation of the publisher. Source: repository.md §2.1. */
export interface EffectIdentity {
  readonly kind: SourceEffectKind;
  /** Of the Task. */
  readonly namespace: string;
  /** UID of the Task. */
  readonly aggregateId: string;
  readonly operationId: string;
}

export const resolveOperationId = (promptID: string): string => `workspace-resolve-${promptID}`;
export const prepareOperationId = (promptID: string): string => `workspace-prepare-${promptID}`;

/** Each generation of a session downloads under an operation of its own, since a capability is good for one download. */
export const downloadOperationId = (promptID: string, attempt: number, generation: number): string =>
  `runtime-workspace-download-${promptID}-a${attempt}-g${generation}`;

function effectId({ kind, namespace, aggregateId, operationId }: EffectIdentity): string {
  return controlRecordId('external-effect', [kind, namespace, aggregateId, operationId]);
}

/** Digest of a call: its identity, and the body that the publisher is sent. The credential is no part of a body. */
function effectRequestDigest(identity: EffectIdentity, request: JsonObject): Digest {
  return domainDigest('external-effect-request', { identity: { ...identity }, request });
}

export const effectStates = ['Pending', 'InFlight', 'Succeeded', 'Failed', 'OutcomeUnknown'] as const;
export type EffectState = (typeof effectStates)[number];

/** Where an effect may go. A lease may be taken over; what is over never moves. Source: repository.md §1.5. */
export const effectSuccessors: Readonly<Record<EffectState, readonly EffectState[]>> = {
  Pending: ['InFlight'],
  InFlight: ['InFlight', 'Succeeded', 'Failed', 'OutcomeUnknown'],
  Succeeded: [],
  Failed: [],
  OutcomeUnknown: [],
};

/** One call as it is on record in `status.execution.effects`. */
export interface EffectRecord {
  readonly id: string;
  readonly kind: SourceEffectKind;
  readonly operationID: string;
  readonly requestDigest: Digest;
  readonly state: EffectState;
  /** Epoch of the controller that called last. */
  readonly controllerEpoch?: number;
  /** How many times a controller has taken the call up. */
  readonly attempts: number;
  /** When the controller of that epoch took it up. */
  readonly startedAt?: string;
  readonly responseDigest?: Digest;
  readonly response?: JsonObject;
  /** What the publisher refused it with. */
  readonly code?: string;
  readonly detail?: RefusedDetail;
}

/** `request`: another request has this operation. `transition`: an effect does not go there. */
export class EffectError extends CodedError<'request' | 'transition'> {}

/** A record for a call that was not made. */
export function pendingEffect(identity: EffectIdentity, request: JsonObject): EffectRecord {
  return {
    id: effectId(identity),
    kind: identity.kind,
    operationID: identity.operationId,
    requestDigest: effectRequestDigest(identity, request),
    state: 'Pending',
    attempts: 0,
  };
}

/** The controller of an epoch takes a call up. Its own one that it took up before keeps its time. */
export function inFlight(record: EffectRecord, controllerEpoch: number, now: string): EffectRecord {
  const again = record.state === 'InFlight' && record.controllerEpoch === controllerEpoch;
  const startedAt = again ? (record.startedAt ?? now) : now;
  return { ...moved(record, 'InFlight'), controllerEpoch, attempts: record.attempts + (again ? 0 : 1), startedAt };
}

export function effectSucceeded(record: EffectRecord, response: JsonObject): EffectRecord {
  return { ...moved(record, 'Succeeded'), response, responseDigest: effectResponseDigest(response) };
}

export function effectResponseDigest(response: JsonObject): Digest {
  return domainDigest('external-effect-response', response);
}

/** `Failed`: the publisher refused it for good. `OutcomeUnknown`: what came of it is not known. */
export function effectEnded(
  record: EffectRecord,
  state: 'Failed' | 'OutcomeUnknown',
  code: string,
  detail?: RefusedDetail,
): EffectRecord {
  return { ...moved(record, state), code, ...(detail === undefined ? {} : { detail }) };
}

function moved(record: EffectRecord, state: EffectState): EffectRecord {
  if (effectSuccessors[record.state].includes(state)) return { ...record, state };
  throw new EffectError('transition', {
    at: `effect ${record.operationID}`,
    field: 'state',
    found: state,
    allowed: effectSuccessors[record.state].join(' or ') || `nothing after ${record.state}`,
  });
}

/** The record of an operation. Throws {@link EffectError} when it is about another request. */
export function effectOf(records: readonly EffectRecord[], wanted: EffectRecord): EffectRecord | undefined {
  const found = records.find(({ id }) => id === wanted.id);
  if (found && found.requestDigest !== wanted.requestDigest)
    throw new EffectError('request', {
      at: `effect ${wanted.operationID}`,
      field: 'requestDigest',
      found: found.requestDigest,
      allowed: wanted.requestDigest,
    });
  return found;
}

/** The records with this one in its place; a new one comes last. */
export function withEffect(records: readonly EffectRecord[], record: EffectRecord): readonly EffectRecord[] {
  const known = records.some(({ id }) => id === record.id);
  return known ? records.map((one) => (one.id === record.id ? record : one)) : [...records, record];
}

/** A Task that is over calls no more: what came of a call under way is not known. */
export function abandonedEffects(records: readonly EffectRecord[]): readonly EffectRecord[] {
  return records.map((one) => (one.state === 'InFlight' ? effectEnded(one, 'OutcomeUnknown', 'abandoned') : one));
}
