import { lstatSync } from 'node:fs';
import path from 'node:path';
import type { WorkspaceDelta, WorkspaceDeltaRequest } from '../harness/deltas.js';
import { instant } from '../harness/instant.js';
import { equalJson } from '../lib/json.js';
import { freeze, thaw } from './processes.js';
import { poison } from './prompt.js';
import { Refusal } from './refusal.js';
import { move } from './session.js';
import type { Session } from './session.js';
import { giveBack, reclaim } from './session-folder.js';

/** Names that are never part of a workspace: agents keep their own state there. Source: dispatch.md §7.1. */
const excluded = new Set([
  ...['.git', '.orka-metadata', '.orka-supervisor', '.codex', '.claude', '.copilot', '.config', '.credentials', '.secrets'],
  ...['.ssh', '.gnupg', '.aws', '.azure', '.docker', '.kube'],
]);

/** Names that nobody may use in a workspace. */
const reserved = new Set([
  ...['.orka-artifacts', '.orka-credentials', '.orka-infrastructure', '.orka-publisher', '.orka-runtime-control'],
  '.orka-workspace-delta',
]);

/** Why a delta cannot be taken now, or ever; `undefined` = it can. */
function requestProblem({ state, last, order }: Session, request: WorkspaceDeltaRequest): Refusal | undefined {
  if (last?.promptID !== request.metadata.promptID || last?.digest !== request.promptSettlementDigest)
    return new Refusal('digest_conflict', 'the prompt that was settled last, and its settlement', { status: 409 });
  if (request.intent !== order.workspace.intent || !equalJson(request.verifiedBaseline, order.workspace.baseline))
    return new Refusal('digest_conflict', 'the intent and baseline of the session', { status: 409 });
  return state === 'validating' ? undefined : new Refusal('session_poisoned', 'a session that awaits its delta', { status: 409 });
}

/** What an empty workspace holds now. */
interface Found {
  entries: number;
  files: number;
  links: number;
  bytes: number;
  reserved: boolean;
}

/**
 * Compares the workspace of a settled prompt with the empty one that it began with. Its processes are stopped while it is read and no
 * link is followed. Nothing changed: the session is idle again. Anything else ends it, as it was to read only. Source: dispatch.md §7.1.
 */
export async function takeDelta(
  session: Session,
  request: WorkspaceDeltaRequest,
  host: { readonly sameUser: boolean; readonly poisonInstance: (why: string) => void },
): Promise<WorkspaceDelta> {
  const problem = requestProblem(session, request);
  if (problem) throw problem;
  const { owner, folder, identity } = session;
  if (!owner || !folder) throw new Refusal('session_poisoned', 'a session with a workspace', { status: 409 });
  if (!(await freeze(owner))) {
    poison(session);
    host.poisonInstance('processes of a session could not be stopped');
    throw new Refusal('session_poisoned', 'processes that can be stopped');
  }
  const frozenAt = instant(Date.now());
  const found: Found = { entries: 0, files: 0, links: 0, bytes: 0, reserved: false };
  try {
    reclaim(folder.root);
    scan(folder.workspace, found, request.limits);
    const user = host.sameUser ? undefined : identity;
    if (found.entries === 0) for (const lent of [folder.workspace, folder.root]) giveBack(lent, user);
  } catch (error) {
    poison(session);
    throw error instanceof Refusal ? error : new Refusal('session_poisoned', 'a workspace that can be read');
  }
  if (found.reserved) {
    poison(session);
    throw new Refusal('session_poisoned', 'a workspace without reserved names', { status: 422 });
  }
  if (found.entries === 0) {
    thaw(owner);
    move(session, 'idle');
  } else poison(session);
  return {
    deltaID: request.deltaID,
    runtimeSessionUID: session.fence.runtimeSessionUID ?? '',
    sessionGeneration: session.fence.runtimeSessionGeneration ?? 0,
    state: found.entries === 0 ? 'no_change' : 'read_only_modified',
    intent: request.intent,
    verifiedBaseline: request.verifiedBaseline,
    entryCount: found.entries,
    changedFileCount: found.files,
    deletedEntryCount: 0,
    symlinkEntryCount: found.links,
    noFollowVerified: true,
    publicationSafe: found.entries === 0,
    frozenAt,
  };
}

function scan(folder: string, found: Found, limits: { readonly maxEntries: number; readonly maxBytes: number }): void {
  for (const { name, kind } of reclaim(folder)) {
    if (excluded.has(name)) continue;
    const entry = path.join(folder, name);
    found.reserved ||= reserved.has(name);
    found.entries++;
    if (kind === 'file') {
      found.files++;
      found.bytes += lstatSync(entry).size;
    }
    if (kind === 'link') found.links++;
    if (found.entries > limits.maxEntries || found.bytes > limits.maxBytes)
      throw new Refusal('session_poisoned', `at most ${limits.maxEntries} entries and ${limits.maxBytes} bytes`, { status: 413 });
    if (kind === 'folder') scan(entry, found, limits);
  }
}
