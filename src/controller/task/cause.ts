import { redacted } from '../../domain/redaction.js';
import { failedDownload, refusedWorkspace } from '../../domain/source-refusals.js';
import type { SourceRefusal } from '../../domain/source-refusals.js';
import { workspaceFailure } from '../../harness/creation.js';
import { HarnessError } from '../../harness/errors.js';
import { KubeError } from '../../kube/errors.js';
import type { SessionSource } from './orders.js';

/**
 * Why something failed, as one sentence for the user of a Task. The request that failed is internal: its caller reports the error itself, for
 * the log.
 */
export function causeOf(error: unknown): string {
  if (error instanceof HarnessError) return redacted(ofInstance(error));
  if (error instanceof KubeError) return redacted(ofServer(error));
  return redacted(error instanceof Error ? error.message : String(error));
}

/** Why a session with a repository did not begin, where its workspace is the reason. */
export interface WorkspaceCause extends SourceRefusal {
  /** The archive did not come; it may, to another session. */
  readonly isDownload: boolean;
}

export function workspaceCauseOf(error: unknown, { asked, relativeRoot }: SessionSource): WorkspaceCause | undefined {
  const failure = error instanceof HarnessError && error.response ? workspaceFailure(error.response) : undefined;
  if (!failure) return undefined;
  const isDownload = failure.kind === 'download';
  return {
    ...(isDownload ? failedDownload(asked, failure.says) : refusedWorkspace(asked, failure.says, relativeRoot)),
    isDownload,
  };
}

function ofInstance(error: HarnessError): string {
  switch (error.code) {
    case 'timeout':
      return 'its instance did not answer in time';
    case 'aborted':
      return 'the controller stopped waiting for its instance';
    case 'transport':
      return `the connection to its instance failed${inWords(error)}`;
    case 'http':
      return error.response
        ? `its instance refused: ${error.response.message}`
        : `its instance answered with status ${error.status}`;
    case 'protocol':
    case 'stream':
      return 'its instance gave an answer that the controller cannot read';
    case 'configuration':
    case 'validation':
      return 'the controller could not make a valid request to its instance';
  }
}

function ofServer(error: KubeError): string {
  switch (error.code) {
    case 'timeout':
      return 'the API server did not answer in time';
    case 'aborted':
      return 'the controller stopped waiting for the API server';
    case 'unreachable':
      return 'the API server cannot be reached';
    default:
      return error.finding.says ?? error.code;
  }
}

const systemErrors: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection closed',
  EHOSTUNREACH: 'no route to it',
  ENETUNREACH: 'no route to it',
  ETIMEDOUT: 'connection timed out',
};

function inWords({ cause }: HarnessError): string {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const words = systemErrors[code];
  return words === undefined ? '' : ` (${words})`;
}
