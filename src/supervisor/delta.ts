import type { WorkspaceDelta, WorkspaceDeltaRequest } from '../harness/deltas.js';
import { instant } from '../lib/instant.js';
import { equalJson } from '../lib/json.js';
import { protectedNames, reservedNames } from '../source/archive-rules.js';
import type { Instance } from './instance.js';
import { freeze, standstillOf, thaw } from './processes.js';
import { poison } from './prompt.js';
import { Refusal } from './refusal.js';
import { move } from './session.js';
import type { Session } from './session.js';
import type { SessionFolder } from './session-folder.js';
import { SessionUser, WalkError } from './session-user.js';
import type { CompareAnswer, ScanAnswer } from './session-user.js';
import { compareWorkspace } from './workspace.js';

/** In an empty workspace agents keep their own state under the protected names. Source: dispatch.md §7.1. */
const [excluded, reserved] = [[...protectedNames], [...reservedNames]];

/** Milliseconds for all of a delta: less than its controller waits, repeats included. */
export const readWithin = 25_000;

/** Why a delta cannot be taken now, or ever; `undefined` = it can. */
function requestProblem(session: Session, request: WorkspaceDeltaRequest): Refusal | undefined {
  const { last, order } = session;
  if (last?.promptID !== request.metadata.promptID || last?.digest !== request.promptSettlementDigest)
    return new Refusal(
      'digest_conflict',
      'the request is about another prompt than the one that was settled last, or another settlement of it',
      { status: 409 },
    );
  if (request.intent !== order.workspace.intent || !equalJson(request.verifiedBaseline, order.workspace.baseline))
    return new Refusal('digest_conflict', 'the intent or the baseline is not that of the session', { status: 409 });
  if (session.state !== 'validating') return notAwaited(session);
  return session.reading
    ? new Refusal('already_accepted', 'the workspace is being read for another request', { status: 409, retryable: true })
    : undefined;
}

function notAwaited({ state }: Session): Refusal {
  return new Refusal('session_poisoned', `the session is ${state} and awaits no delta`, { status: 409 });
}

/**
 * Compares the workspace of a settled prompt with what it began with. Its processes are stopped while the session's own
 * user reads it, and no link is followed. No change makes the session idle again; anything else ends it, and only it. Source: dispatch.md §7.1.
 */
export async function takeDelta(
  session: Session,
  request: WorkspaceDeltaRequest,
  { host, log }: Pick<Instance, 'host' | 'log'>,
): Promise<WorkspaceDelta> {
  const problem = requestProblem(session, request);
  if (problem) throw problem;
  try {
    const { found, frozenAt } = await readUntilStopped(session, request.limits, host);
    const { relativeRoot } = session.order.workspace;
    if (session.state !== 'validating') throw notAwaited(session);
    const unchanged = found.entries + found.deleted === 0;
    if (unchanged) resume(session);
    else poison(session);
    return {
      deltaID: request.deltaID,
      runtimeSessionUID: session.fence.runtimeSessionUID ?? '',
      sessionGeneration: session.fence.runtimeSessionGeneration ?? 0,
      state: unchanged ? 'no_change' : 'read_only_modified',
      intent: request.intent,
      verifiedBaseline: request.verifiedBaseline,
      ...(relativeRoot ? { relativeRoot } : {}),
      entryCount: found.entries,
      changedFileCount: found.files,
      deletedEntryCount: found.deleted,
      symlinkEntryCount: found.links,
      ...(found.changedPaths.length > 0 ? { changedPaths: found.changedPaths } : {}),
      noFollowVerified: found.folderId === session.folder?.workspaceId,
      publicationSafe: unchanged,
      frozenAt,
    };
  } catch (error) {
    const cause = error instanceof Refusal ? error.cause : undefined;
    log.error('workspace not read', cause ?? error, { session: session.order.runtimeSessionID });
    poison(session);
    throw error;
  }
}

/** The end of the session stops it. */
async function readUntilStopped(session: Session, limits: WorkspaceDeltaRequest['limits'], host: { readonly sameUser: boolean }) {
  const stop = new AbortController();
  const done = readFrozen(session, limits, host, stop.signal);
  session.reading = { stop: () => stop.abort(), done: done.catch(() => undefined) };
  try {
    return await done;
  } catch (cause) {
    throw stop.signal.aborted ? notAwaited(session) : cause;
  } finally {
    delete session.reading;
  }
}

/** Stops the processes of a session, reads its workspace, and lets them go on if nothing was changed. Throws {@link Refusal}. */
async function readFrozen(
  { owner, folder, identity, order }: Session,
  limits: WorkspaceDeltaRequest['limits'],
  host: { readonly sameUser: boolean },
  stop: AbortSignal,
) {
  if (!owner || !folder) throw new Refusal('session_poisoned', 'the session has no workspace', { status: 409 });
  const user = host.sameUser ? undefined : identity;
  const child = new SessionUser(user);
  stop.addEventListener('abort', () => void child.end());
  // The record is a descriptor that a child gets when it starts: a comparison has its own child.
  const read = order.workspace.baseline.artifact
    ? (within: number) => compareWorkspace(folder, user, limits.maxEntries, within, stop)
    : (within: number) => readEmpty(folder, child, limits, within);
  try {
    for (const deadline = Date.now() + readWithin; Date.now() < deadline;) {
      if (!(await freeze(owner, deadline - Date.now(), child))) break;
      const [frozenAt, standstill] = [instant(Date.now()), standstillOf(owner, child)];
      const found = await read(Math.max(1, deadline - Date.now())).catch((cause: unknown) => {
        throw unreadable(cause);
      });
      // What was read while a process ran is read again.
      if (standstillOf(owner, child) !== standstill) continue;
      if (found.folderId !== folder.workspaceId) throw new Refusal('session_poisoned', replacedWorkspace);
      return { found, frozenAt };
    }
  } finally {
    await child.end();
  }
  throw new Refusal('session_poisoned', 'processes of the session cannot be stopped');
}

function resume(session: Session): void {
  if (session.owner) thaw(session.owner);
  move(session, 'idle');
}

/** A workspace that began empty: whatever it holds is new. */
async function readEmpty(
  { workspace, workspaceId }: SessionFolder,
  child: SessionUser,
  limits: WorkspaceDeltaRequest['limits'],
  within: number,
): Promise<CompareAnswer> {
  const order = { folder: workspace, excluded, reserved, maxEntries: limits.maxEntries, maxBytes: limits.maxBytes };
  const found = await child.scan(order, within);
  const refusal = foundProblem(found, workspaceId, limits);
  if (refusal) throw refusal;
  const { folderId, entries, files, links } = found;
  return { folderId, entries, files, links, deleted: 0, changedPaths: [] };
}

function foundProblem(found: ScanAnswer, workspaceId: string, limits: WorkspaceDeltaRequest['limits']): Refusal | undefined {
  if (found.folderId !== workspaceId) return undefined;
  if (found.exceeded) {
    const says = `the workspace has more than ${limits.maxEntries} entries or ${limits.maxBytes} bytes, or a path of more than 4096 bytes`;
    return new Refusal('session_poisoned', says, { status: 413 });
  }
  return found.reserved ? new Refusal('session_poisoned', 'the workspace has a reserved name', { status: 422 }) : undefined;
}

const replacedWorkspace = 'the workspace is not the folder that the session was made with';

/** A link in the place of a folder cannot be opened as one. */
function unreadable(cause: unknown): Refusal {
  if (cause instanceof Refusal) return cause;
  const says = cause instanceof WalkError ? cause.finding.says : undefined;
  if (says !== undefined && cause instanceof WalkError && (cause.code === 'refused' || cause.code === 'exceeded'))
    return new Refusal('session_poisoned', says, { status: cause.code === 'refused' ? 422 : 413 });
  const replaced = cause instanceof WalkError && ['ENOTDIR', 'ELOOP', 'ENOENT', 'ESTALE'].includes(String(cause.finding.found));
  return new Refusal('session_poisoned', replaced ? replacedWorkspace : 'the workspace cannot be read');
}
