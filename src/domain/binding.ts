import type { Task } from '../api/index.js';
import { domainDigest } from './digests.js';
import type { Digest } from './digests.js';

/** The frozen, provider-neutral answer to "which workspace does this Task get". Source: workload.md §2.2. */
export interface WorkspaceBinding {
  readonly provider: string;
  readonly reusePolicy: string;
  readonly cleanupPolicy: string;
  readonly workspaceSlot: string;
  readonly sessionUID: string;
  readonly sessionKey: string;
  readonly templateNamespace: string;
  readonly templateName: string;
  readonly bindingDigest: Digest;
}

const fallbackProvider = 'agent-sandbox';

/** The provider a Task asks for: its own, the controller's default, or agent-sandbox. */
export function resolveProvider(task: Task, defaultProvider: string): string {
  return task.spec.execution?.workspace?.provider ?? (defaultProvider === '' ? fallbackProvider : defaultProvider);
}

/**
 * The binding of a Task that passed the gates; `undefined` = no workspace asked for, a plain pool.
 *
 * Same Task, default provider and Session UID, same binding: verification recomputes it. A Session UID is dropped unless the
 * Task reuses a session. Source: workload.md §2.2, §2.5.
 */
export function resolveBinding(task: Task, defaultProvider: string, sessionUID = ''): WorkspaceBinding | undefined {
  const workspace = task.spec.execution?.workspace;
  if (workspace?.enabled !== true) return undefined;
  const provider = resolveProvider(task, defaultProvider);
  const reusePolicy = workspace.reusePolicy ?? 'none';
  const session = reusePolicy === 'session' ? sessionUID.trim() : '';
  const template = provider === 'substrate' ? workspace.templateRef : undefined;
  const fields = {
    provider,
    reusePolicy,
    cleanupPolicy: workspace.cleanupPolicy ?? 'delete',
    workspaceSlot: slotOf(workspace.workspaceSlot),
    sessionUID: session,
    sessionKey: reusePolicy === 'session' ? `session:${session}` : `task:${task.metadata.uid ?? ''}`,
    templateNamespace: template ? (template.namespace?.trim() ?? task.metadata.namespace ?? '') : '',
    templateName: template?.name?.trim() ?? '',
  };
  return { ...fields, bindingDigest: domainDigest('execution-workspace-binding', fields) };
}

export function slotOf(slot: string | undefined): string {
  const trimmed = slot?.trim() ?? '';
  return trimmed === '' ? 'default' : trimmed;
}

/** What is wrong with a Session UID, in the words of `allowed`, or `undefined`. Surrounding blanks do not count. */
export function sessionUidProblem(sessionUID: string): string | undefined {
  const trimmed = sessionUID.trim();
  if (trimmed === '') return 'the immutable UID of a Session';
  if (!trimmed.isWellFormed()) return 'valid Unicode';
  if (Buffer.byteLength(trimmed) > 1024) return 'at most 1024 bytes';
  // eslint-disable-next-line no-control-regex -- control characters are what this looks for
  if (/[\u0000-\u001f\u007f]/.test(trimmed)) return 'no control characters';
  return undefined;
}
