import type { Task, WorkspaceConfig } from '../api/index.js';
import type { Finding } from '../lib/errors.js';
import type { JsonObject } from '../lib/json.js';
import { promptId } from './digests.js';
import { sourceRefOf } from './repository/refs.js';
import { repositoryOf } from './repository/repository.js';
import type { Repository } from './repository/repository.js';
import { relativeRootOf } from './repository/sub-path.js';
import { EffectError, effectOf, pendingEffect, prepareOperationId, resolveOperationId } from './source-effects.js';
import type { EffectIdentity, EffectRecord } from './source-effects.js';
import type { AskedSource, RefusedDetail } from './source-refusals.js';

const defaultKey = 'token';

/** Which Secret a repository is read with. */
export interface SourceCredential {
  readonly name: string;
  readonly key: string;
}

interface CallRequest {
  readonly metadata: { readonly namespace: string; readonly operationId: string; readonly taskId: string };
  readonly source: Repository;
  readonly sourceRef: string;
  readonly credentialRef?: { readonly name: string; readonly kind: 'http-extra-header'; readonly role: 'SourceRead' };
}

/** A call of the publisher, and its record before it is made. */
export interface SourceCall<Request extends CallRequest = CallRequest> {
  readonly request: Request;
  readonly pending: EffectRecord;
}

type PrepareCall = SourceCall<CallRequest & { readonly baselineOid: string; readonly limits: Readonly<Record<string, never>> }>;

/** What a Task with a repository asks of the publisher. Pure: made of what is frozen, so each controller makes the same calls. */
export interface SourcePlan {
  readonly asked: AskedSource;
  readonly repository: Repository;
  readonly relativeRoot: string | undefined;
  readonly credential: SourceCredential | undefined;
  readonly resolve: SourceCall;
  readonly prepare: (resolved: ResolvedSource) => PrepareCall;
}

/** Response of `workspace.resolve` as it is on record. */
export interface ResolvedSource {
  readonly repositoryID: string;
  readonly sourceRef: string;
  readonly baselineOID: string;
}

/** Response of `workspace.prepare` as it is on record. */
export interface PreparedSource {
  readonly treeOID: string;
  readonly manifestDigest: `sha256:${string}`;
  readonly entryCount: number;
  readonly expandedBytes: number;
  readonly artifact: {
    readonly artifactID: string;
    readonly digest: `sha256:${string}`;
    readonly sizeBytes: number;
    readonly mediaType: string;
  };
  readonly notes?: readonly { readonly code: string; readonly count: number; readonly path?: string }[];
}

type Asking = Pick<Task, 'metadata' | 'status'>;

/**
 * The plan of a frozen `workspace`; `undefined` = it has no repository.
 * @param service `<namespace>/<name>` of the publisher's Service
 */
export function sourcePlanOf(
  task: Asking,
  workspace: JsonObject | null,
  { forges, service }: { readonly forges: readonly string[]; readonly service?: string | undefined },
): SourcePlan | { readonly problem: Finding } | undefined {
  const frozen: Partial<WorkspaceConfig> = workspace ?? {};
  const gitRepo = frozen.gitRepo?.trim() ?? '';
  if (gitRepo === '') return undefined;
  const at = `Task ${task.metadata.namespace ?? ''}/${task.metadata.name}`;
  const found = repositoryOf(gitRepo, forges);
  if ('problem' in found) return { problem: { at, field: 'spec.workspace.gitRepo', ...found.problem } };
  const { repository } = found;
  const { name, key = defaultKey } = frozen.readCredentialRef ?? {};
  const credential = name === undefined ? undefined : { name, key };
  const call = callsOf(task, repository, credential);
  const asked: AskedSource = {
    at,
    repositoryId: repository.id,
    forge: repository.id.split('/')[0] ?? '',
    branch: frozen.branch,
    ref: frozen.ref,
    credential: credential && { secret: credential.name, key: credential.key },
    service,
  };
  return {
    asked,
    repository,
    relativeRoot: relativeRootOf(frozen.subPath),
    credential,
    resolve: call('workspace.resolve', resolveOperationId, sourceRefOf(frozen), {}),
    prepare: ({ sourceRef, baselineOID }) =>
      call('workspace.prepare', prepareOperationId, sourceRef, { baselineOid: baselineOID, limits: {} }),
  };
}

function callsOf({ metadata, status }: Asking, source: Repository, credential: SourceCredential | undefined) {
  const { namespace = '', uid = '' } = metadata;
  const prompt = promptId(uid, status?.execution?.attempt ?? 1);
  return <More extends object>(
    kind: EffectIdentity['kind'],
    operation: (promptID: string) => string,
    sourceRef: string,
    more: More,
  ): SourceCall<CallRequest & More> => {
    const operationId = operation(prompt);
    const request = {
      metadata: { namespace, operationId, taskId: uid },
      source,
      sourceRef,
      ...more,
      ...(credential ? { credentialRef: { name: credential.name, kind: 'http-extra-header', role: 'SourceRead' } as const } : {}),
    };
    const pending = pendingEffect({ kind, namespace, aggregateId: uid, operationId }, request as unknown as JsonObject);
    return { request, pending };
  };
}

/** How far a Task has come with its repository. */
export type SourceStanding =
  /** The version of its Secret is not on record. */
  | { readonly is: 'unfrozen' }
  | { readonly is: 'unresolved' }
  | { readonly is: 'unprepared'; readonly resolved: ResolvedSource }
  | { readonly is: 'ready'; readonly resolved: ResolvedSource; readonly prepared: PreparedSource; readonly startedAt: number }
  /** Refused for good, or given up. */
  | { readonly is: 'over'; readonly code: string; readonly detail: RefusedDetail | undefined; readonly givenUp: boolean };

/** Reads the records of a Task. */
export function sourceStanding(plan: SourcePlan, execution: NonNullable<Task['status']>['execution']): SourceStanding {
  if (plan.credential && execution?.readCredentialResourceVersion === undefined) return { is: 'unfrozen' };
  const records = effectsOf(execution);
  const resolve = recordOf(records, plan.resolve.pending);
  if ('is' in resolve) return resolve;
  if (resolve.response === undefined) return { is: 'unresolved' };
  const resolved = resolve.response as unknown as ResolvedSource;
  const prepare = recordOf(records, plan.prepare(resolved).pending);
  if ('is' in prepare) return prepare;
  if (prepare.response === undefined) return { is: 'unprepared', resolved };
  const prepared = prepare.response as unknown as PreparedSource;
  return { is: 'ready', resolved, prepared, startedAt: Date.parse(prepare.startedAt ?? '') || 0 };
}

/** The record of a call, or why there will be no response to it. */
function recordOf(
  records: readonly EffectRecord[],
  wanted: EffectRecord,
): EffectRecord | Extract<SourceStanding, { is: 'over' }> {
  try {
    const record = effectOf(records, wanted) ?? wanted;
    const givenUp = record.state === 'OutcomeUnknown';
    return record.state === 'Failed' || givenUp
      ? { is: 'over', code: record.code ?? 'abandoned', detail: record.detail, givenUp }
      : record;
  } catch (error) {
    if (!(error instanceof EffectError)) throw error;
    return { is: 'over', code: 'operation_conflict', detail: undefined, givenUp: false };
  }
}

/** The records of the calls of a Task. */
export function effectsOf(execution: NonNullable<Task['status']>['execution']): readonly EffectRecord[] {
  return (execution?.effects ?? []) as unknown as readonly EffectRecord[];
}

/** A Task that asks for a repository which is not prepared yet. It takes no slot. */
export function awaitsSource({ spec, status }: Task): boolean {
  if ((spec.workspace?.gitRepo ?? '').trim() === '') return false;
  return !effectsOf(status?.execution).some(({ kind, state }) => kind === 'workspace.prepare' && state === 'Succeeded');
}
