import { isBareRef, isBranchRef, isSourceRef } from '../../domain/repository/refs.js';
import type { ResolveResponse } from '../../source/messages.js';
import { fetched, isObjectId } from './operation.js';
import type { GitOperation } from './operation.js';
import { SourceError } from './source-error.js';

type Resolved = Pick<ResolveResponse, 'sourceRef' | 'baselineOid'>;

/** Freezes a source to a full ref and a commit. Source: repository.md §1.4. */
export async function resolveRef(operation: GitOperation, sourceRef: string): Promise<Resolved> {
  if (sourceRef === '') return resolveDefault(operation);
  checkSourceRef(operation, sourceRef);
  if (isObjectId(sourceRef)) return resolveCommit(operation, sourceRef);
  return isBareRef(sourceRef) ? resolveBare(operation, sourceRef) : resolveFull(operation, sourceRef);
}

export function checkSourceRef({ at }: GitOperation, sourceRef: string): void {
  if (isSourceRef(sourceRef)) return;
  const allowed = 'a commit, refs/heads/<branch>, refs/tags/<tag>, or the name of a branch or tag';
  throw new SourceError('invalid_request', { at, field: 'sourceRef', found: sourceRef, allowed });
}

/** Characters that are not seen, or turn the text around them. The forge alone chose the name, which people read in events. */
const unseen = /[\p{Cf}\p{Zl}\p{Zp}\ufffd]/u;

async function resolveDefault(operation: GitOperation): Promise<Resolved> {
  const head = await operation.defaultBranch();
  const { at } = operation;
  if (!head) throw new SourceError('source_ref_absent', { at, field: 'sourceRef', says: 'the repository has no default branch' });
  if (isBranchRef(head.ref) && !unseen.test(head.ref)) return { sourceRef: head.ref, baselineOid: head.oid };
  throw new SourceError('source_ref_invalid', {
    at,
    field: 'sourceRef',
    says: 'the default branch has a name that is not allowed',
  });
}

/** The commit must be served to this credential: no earlier knowledge of it counts. */
async function resolveCommit(operation: GitOperation, oid: string): Promise<Resolved> {
  await proveCommit(operation, oid);
  return { sourceRef: oid, baselineOid: oid };
}

/** Fetches a commit without its tree. */
export async function proveCommit(operation: GitOperation, oid: string): Promise<void> {
  await operation.init(oid);
  await operation.fetch(oid, 'tree:0');
  const type = (await operation.run(['cat-file', '-t', fetched])).toString().trim();
  if (type === 'commit') return;
  throw new SourceError('source_ref_invalid', {
    at: operation.at,
    field: 'sourceRef',
    found: oid,
    allowed: 'the OID of a commit',
  });
}

const peeled = (ref: string): string => `${ref}^{}`;

async function resolveFull(operation: GitOperation, ref: string): Promise<Resolved> {
  const oid = await currentOid(operation, ref);
  if (oid !== undefined) return { sourceRef: ref, baselineOid: oid };
  throw absent(operation, ref);
}

/** What a full ref holds now, tags peeled. */
export async function currentOid(operation: GitOperation, ref: string): Promise<string | undefined> {
  const refs = await operation.listRefs(ref.startsWith('refs/tags/') ? [ref, peeled(ref)] : [ref]);
  return refs.get(peeled(ref)) ?? refs.get(ref);
}

async function resolveBare(operation: GitOperation, name: string): Promise<Resolved> {
  const [branch, tag] = [`refs/heads/${name}`, `refs/tags/${name}`];
  const refs = await operation.listRefs([branch, tag, peeled(tag)]);
  const ofTag = refs.get(peeled(tag)) ?? refs.get(tag);
  const ofBranch = refs.get(branch);
  if (ofBranch !== undefined && ofTag !== undefined) {
    const says = 'the repository has a branch and a tag of this name';
    const found = { at: operation.at, field: 'sourceRef', says, found: name, allowed: `${branch} or ${tag}` };
    throw new SourceError('source_ref_ambiguous', found);
  }
  if (ofBranch !== undefined) return { sourceRef: branch, baselineOid: ofBranch };
  if (ofTag !== undefined) return { sourceRef: tag, baselineOid: ofTag };
  throw absent(operation, name);
}

function absent({ at }: GitOperation, found: string): SourceError {
  return new SourceError('source_ref_absent', {
    at,
    field: 'sourceRef',
    says: 'the repository has no such branch or tag',
    found,
  });
}
