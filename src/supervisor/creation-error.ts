import { CodedError } from '../lib/errors.js';
import { creationMessage } from '../harness/creation.js';
import type { CreationStage } from '../harness/creation.js';
import { fitBytes } from '../lib/text.js';
import { AcpError } from './acp.js';
import { DownloadError } from './artifact-download.js';
import { Refusal } from './refusal.js';
import { WorkspaceError } from './workspace.js';

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

/** Whether the agent can serve no such session, or the repository no such workspace: another try, here or elsewhere, would end like this one. */
function isForGood(error: unknown): boolean {
  const cause = error instanceof CreationError ? error.cause : undefined;
  return (
    (cause instanceof AcpError && cause.code === 'unusable') || (cause instanceof WorkspaceError && cause.code === 'refused')
  );
}

/** Whether a failure says nothing about this instance: the order is the reason, or the server that has the artifact. */
export function isNoFaultOfInstance(error: unknown): boolean {
  const cause = error instanceof CreationError ? error.cause : undefined;
  return isForGood(error) || (cause instanceof DownloadError && cause.code !== 'unreachable');
}

/**
 * What the caller learns of a creation that failed: the stage, and the cause where no other try can help, where the agent broke the
 * protocol, or where the artifact did not come. `redact`: takes secrets out of a text. Source: dispatch.md §6.4.
 */
export function creationRefusal(error: unknown, redact: (text: string) => string): Refusal {
  const stage = error instanceof CreationError ? error.stage : 'unclassified';
  const told = error instanceof CreationError ? toldCause(error.cause) : undefined;
  const says = creationMessage(stage, told === undefined ? undefined : fitBytes(redact(told), longestCause, '…'));
  const isWorkspace = error instanceof CreationError && error.cause instanceof WorkspaceError && error.cause.code === 'refused';
  // A repository that is refused is no failure of the instance.
  return new Refusal('session_poisoned', says, { retryable: !isForGood(error), ...(isWorkspace ? { status: 422 } : {}) });
}

function toldCause(cause: unknown): string | undefined {
  if (cause instanceof AcpError) return cause.code === 'unusable' || cause.code === 'protocol' ? cause.message : undefined;
  return cause instanceof WorkspaceError || cause instanceof DownloadError ? cause.message : undefined;
}
