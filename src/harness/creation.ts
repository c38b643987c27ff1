import type { ErrorResponse } from './errors.js';

/** Where the creation of a session failed. */
export type CreationStage =
  | 'path preparation'
  | 'provider home preparation'
  | 'provider proxy setup'
  | 'ownership finalization'
  | 'workspace materialization'
  | 'provider adapter initialization';

/** First words of a cause in the stage `workspace materialization`. */
export const workspaceSubject = 'workspace';
export const artifactSubject = 'workspace artifact';

/** The message of a creation that failed. Source: dispatch.md §6.4. */
export function creationMessage(stage: CreationStage | 'unclassified', cause?: string): string {
  return `creation failed: ${stage}${cause === undefined ? '' : `: ${cause}`}`;
}

/** `refused`: no other try can make a workspace of the repository. `download`: its archive did not come. */
export interface WorkspaceFailure {
  readonly kind: 'refused' | 'download';
  /** The cause without its subject. */
  readonly says: string;
}

/** What an answer says of the workspace that a session could not be filled with. */
export function workspaceFailure({ code, message, retryable }: ErrorResponse): WorkspaceFailure | undefined {
  if (code !== 'session_poisoned') return undefined;
  const after = (subject: string): string | undefined => {
    const start = creationMessage('workspace materialization', `${subject}: `);
    return message.startsWith(start) ? message.slice(start.length) : undefined;
  };
  const [download, refused] = [after(artifactSubject), after(workspaceSubject)];
  if (retryable && download !== undefined) return { kind: 'download', says: download };
  return !retryable && refused !== undefined ? { kind: 'refused', says: refused } : undefined;
}
