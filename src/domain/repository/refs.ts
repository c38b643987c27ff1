import type { WorkspaceConfig } from '../../api/index.js';
import type { RepositoryProblem } from './repository.js';

const objectId = /^([0-9a-f]{40}|[0-9a-f]{64})$/;
const zeroId = /^0+$/;
const longestRef = 1024;
const heads = 'refs/heads/';
const tags = 'refs/tags/';

const forbiddenCharacter = /[\p{Cc} \\~^:?*[]/u;
const forbiddenSequence = /^-|\.\.|@\{|\/\/|^\/|[/.]$/;
const forbiddenComponent = /(^|\/)(@|\.[^/]*|[^/]*\.lock)(\/|$)/;

/** The name rule of the publisher. It applies to branches and tags, with and without a prefix. Source: repository.md §1.4. */
function isStrictName(name: string): boolean {
  return (
    name !== '' &&
    name.isWellFormed() &&
    !forbiddenCharacter.test(name) &&
    !forbiddenSequence.test(name) &&
    !forbiddenComponent.test(name)
  );
}

const isStrictRef = (prefix: string, ref: string): boolean =>
  ref.startsWith(prefix) && Buffer.byteLength(ref) <= longestRef && isStrictName(ref.slice(prefix.length));

/** A commit by its object ID. An ID of zeros means "absent" in Git and is none here. */
const isObjectId = (text: string): boolean => objectId.test(text) && !zeroId.test(text);

/** A full `refs/heads/…` that the publisher takes. */
export const isBranchRef = (ref: string): boolean => isStrictRef(heads, ref);

/** A full `refs/tags/…` that the publisher takes. */
const isTagRef = (ref: string): boolean => isStrictRef(tags, ref);

/** A value of `sourceRef`: an object ID, a full branch or tag, or a bare name that is looked up as both. */
export function isSourceRef(ref: string): boolean {
  if (objectId.test(ref)) return isObjectId(ref);
  return ref.startsWith('refs/') ? isBranchRef(ref) || isTagRef(ref) : isBranchRef(`${heads}${ref}`);
}

/** The text of a source ref that needs a look-up as branch and as tag. */
export const isBareRef = (ref: string): boolean => !ref.startsWith('refs/') && !objectId.test(ref);

type RefFields = Pick<WorkspaceConfig, 'branch' | 'ref'>;

/** The source that a workspace asks for, as resolve takes it; `''` = the default branch. `ref` wins over `branch`. */
export function sourceRefOf({ branch = '', ref = '' }: RefFields): string {
  const [wanted, name] = [ref.trim(), branch.trim()];
  if (wanted !== '') return wanted;
  return name === '' || name.startsWith('refs/') ? name : `${heads}${name}`;
}

const nameForm =
  'no space, control character, "\\\\" or ~^:?*[, no "..", "@{" or "//", no part "@", ".x" or "x.lock", no "-" at the start and no "/" or "." at the end';

/** Why `branch` or `ref` cannot be fetched. Only the field that counts is asked. */
export function sourceRefProblem(
  workspace: RefFields,
): { readonly field: 'branch' | 'ref'; readonly problem: RepositoryProblem } | undefined {
  const source = sourceRefOf(workspace);
  if (source === '') return undefined;
  if ((workspace.ref ?? '').trim() !== '') {
    const allowed = `a commit of 40 or 64 lower-case hex digits that is not zero, refs/heads/<branch>, refs/tags/<tag>, or the name of a branch or tag: ${nameForm}`;
    return isSourceRef(source) ? undefined : { field: 'ref', problem: { found: workspace.ref, allowed } };
  }
  const found = workspace.branch;
  if (source.startsWith(tags))
    return { field: 'branch', problem: { found, allowed: 'the name of a branch; a tag belongs into spec.workspace.ref' } };
  return isBranchRef(source) ? undefined : { field: 'branch', problem: { found, allowed: `the name of a branch: ${nameForm}` } };
}
