import { CodedError } from '../lib/errors.js';
import { fitBytes } from '../lib/text.js';
import { AcpError } from './acp.js';
import { Refusal } from './refusal.js';

/** Where the creation of a session failed. */
export type CreationStage =
  | 'path preparation'
  | 'provider home preparation'
  | 'provider proxy setup'
  | 'ownership finalization'
  | 'provider adapter initialization';

/** The cause stays in the supervisor's log; the caller learns the stage. */
export class CreationError extends CodedError<'stage'> {
  readonly stage: CreationStage;

  constructor(stage: CreationStage, cause: unknown) {
    super('stage', { at: 'session', field: stage, says: cause instanceof Error ? cause.message : String(cause) }, { cause });
    this.stage = stage;
  }
}

/** Bytes of a cause that the caller learns. */
const longestCause = 500;

/** Whether the agent said that it can serve no such session: another try, here or in another instance, would end like this one. */
export function isForGood(error: unknown): boolean {
  return error instanceof CreationError && error.cause instanceof AcpError && error.cause.code === 'unusable';
}

/**
 * What the caller learns of a creation that failed: the stage, and the cause where no other try can help, or where the agent broke the
 * protocol. `redact`: takes secrets out of a text. Source: dispatch.md §6.4.
 */
export function creationRefusal(error: unknown, redact: (text: string) => string): Refusal {
  const stage = error instanceof CreationError ? error.stage : 'unclassified';
  const cause = error instanceof CreationError && error.cause instanceof AcpError ? error.cause : undefined;
  const isTold = cause?.code === 'unusable' || cause?.code === 'protocol';
  const why = isTold ? `: ${fitBytes(redact(cause.message), longestCause, '…')}` : '';
  return new Refusal('session_poisoned', `creation failed: ${stage}${why}`, { retryable: !isForGood(error) });
}
