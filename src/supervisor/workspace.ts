/** The workspace of a session that begins with a repository: fetched, extracted, recorded, and put under local version control. */
import { closeSync, constants, openSync } from 'node:fs';
import path from 'node:path';
import { CodedError } from '../lib/errors.js';
import type { CreateSessionRequest } from '../harness/sessions.js';
import { downloadArtifact } from './artifact-download.js';
import type { ArtifactApi } from './config.js';
import type { SessionIdentity } from './identities.js';
import { makeRepository } from './local-git.js';
import type { Log } from './log.js';
import { recordName } from './session-folder.js';
import { workspaceSubject } from '../harness/creation.js';
import type { SessionFolder } from './session-folder.js';
import { compareAs, extractAs, WalkError } from './session-user.js';
import type { CompareAnswer } from './session-user.js';

/** `refused`: no other try can make a workspace of this repository. `changed`: the folder is not the one that was made. */
export class WorkspaceError extends CodedError<'refused' | 'changed'> {}

/** Milliseconds, the download included. A session is waited for a minute and a half, in which Git and the agent have to start too. */
export const extractWithin = 45_000;
/** Changed paths that an answer names. */
const mostPaths = 20;

/** What one session fills its workspace from. */
export interface Filling {
  readonly order: CreateSessionRequest;
  readonly folder: SessionFolder;
  readonly identity: SessionIdentity | undefined;
  readonly signal: AbortSignal;
}

/**
 * Fills the empty workspace of a session from the artifact of its order, before its first process. Does nothing without an artifact. What is
 * left after a failure goes with the folder of the session.
 *
 * The digest of the manifest (`treeDigest`) covers the ref, which an archive does not tell. It is bound by the controller, which takes it and the digest
 * of the artifact from one answer of the publisher and authorises exactly that artifact; here every byte is checked against that digest.
 */
export async function fillWorkspace(filling: Filling, artifacts: ArtifactApi | undefined, log: Log): Promise<void> {
  const { order, folder, identity, signal } = filling;
  const { baseline } = order.workspace;
  if (!baseline.artifact) return;
  const from = performance.now();
  const { entries, bytes } = await extract(filling, artifacts);
  const extracted = performance.now();
  const withoutGit = await makeRepository(folder, baseline.revision, identity, signal);
  const session = order.runtimeSessionID;
  const [extractMs, gitMs] = [extracted - from, performance.now() - extracted].map(Math.round) as [number, number];
  log.info('workspace filled', { session, entries, bytes, extractMs, gitMs });
  if (withoutGit !== undefined) log.info('no local repository', { session, why: withoutGit });
}

async function extract({ order, folder, identity, signal }: Filling, artifacts: ArtifactApi | undefined) {
  const { workspaceArtifactAuthorization: authorization, workspace } = order;
  const { artifact } = workspace.baseline;
  if (!artifact || !authorization || !artifacts)
    throw new WorkspaceError('refused', { at: workspaceSubject, says: 'no artifact API' });
  const { relativeRoot } = workspace;
  const wanted = { folder: folder.workspace, ...(relativeRoot === undefined ? {} : { relativeRoot }) };
  const feed = (archive: Parameters<typeof downloadArtifact>[3], ended: AbortSignal) =>
    downloadArtifact(artifacts.url, artifact, authorization, archive, AbortSignal.any([signal, ended]));
  const file = openRecord(folder);
  try {
    const answer = await extractAs(identity, wanted, feed, extractWithin, file);
    if (answer.folderId !== folder.workspaceId)
      throw new WorkspaceError('changed', { at: workspaceSubject, says: 'it was replaced' });
    return answer;
  } catch (cause) {
    throw cause instanceof WalkError && cause.code === 'refused' ? refused(cause) : cause;
  } finally {
    closeSync(file);
  }
}

function refused(cause: WalkError): WorkspaceError {
  return new WorkspaceError('refused', { at: workspaceSubject, says: cause.finding.says ?? '' }, { cause });
}

const recordOf = ({ root }: SessionFolder) => path.join(root, recordName);

/** What the workspace begins with, where the session can neither read nor change it. */
function openRecord(folder: SessionFolder): number {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  return openSync(recordOf(folder), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
}

/** What was changed since the workspace was filled. Its processes must stand still. Throws {@link WalkError}. */
export async function compareWorkspace(
  folder: SessionFolder,
  identity: SessionIdentity | undefined,
  maxEntries: number,
  within: number,
  signal: AbortSignal,
): Promise<CompareAnswer> {
  const file = openSync(recordOf(folder), constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return await compareAs(identity, { folder: folder.workspace, maxEntries, mostPaths }, file, within, signal);
  } finally {
    closeSync(file);
  }
}
