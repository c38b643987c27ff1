import type { Task, WorkspaceConfig } from '../api/index.js';
import { nameOf } from '../domain/plan.js';
import { readRepository } from '../domain/repository/repository.js';
import { namesRepository } from '../domain/repository/source.js';
import { relativeRootOf } from '../domain/repository/sub-path.js';

interface Slip {
  readonly field: 'gitRepo' | 'branch' | 'ref' | 'subPath';
  readonly says: string;
}

/** What is well-formed in `spec.workspace` and probably not meant. Only the forge can tell, so each is a note and no refusal. */
export function sourceSlips(task: Task): readonly string[] {
  const { workspace } = task.spec;
  if (!workspace || !namesRepository(workspace)) return [];
  const slips = [urlSlip(workspace), refSlip(workspace), branchSlip(workspace), subPathSlip(workspace)];
  return slips.flatMap((slip) => (slip ? [`${nameOf('Task', task)}: spec.workspace.${slip.field}: ${slip.says}`] : []));
}

const wholeId = /^([0-9a-f]{40}|[0-9a-f]{64})$/i;
/** What Git shows of an object ID. Shorter words are more often names, and so are words of letters or of digits alone. */
const shortId = /^(?=.*\d)(?=.*[a-f])[0-9a-f]{7,63}$/i;

function urlSlip({ gitRepo = '' }: WorkspaceConfig): Slip | undefined {
  const read = readRepository(gitRepo);
  if ('problem' in read) return undefined;
  const [host, ...segments] = read.repository.id.split('/');
  const page = segments.findIndex((segment, index) => index >= 2 && (segment === 'tree' || segment === 'blob'));
  if (page !== -1 && page < segments.length - 1) {
    const path = segments.slice(0, page).filter((segment) => segment !== '-');
    const says = `this looks like the page of a ${segments[page] === 'tree' ? 'folder' : 'file'} in a browser`;
    return {
      field: 'gitRepo',
      says: `${says}; the repository is probably https://${[host, ...path].join('/')}.git, its branch belongs into branch and its folder into subPath`,
    };
  }
  if (host !== 'github.com' || segments.length === 2) return undefined;
  return { field: 'gitRepo', says: 'a repository of github.com has two segments, https://github.com/<owner>/<repository>.git' };
}

function refSlip({ ref = '' }: WorkspaceConfig): Slip | undefined {
  const text = ref.trim();
  if (wholeId.test(text))
    return text === text.toLowerCase()
      ? undefined
      : { field: 'ref', says: `a commit is written in lower case, ${text.toLowerCase()}; this is looked up as a branch or tag` };
  if (!shortId.test(text)) return undefined;
  return {
    field: 'ref',
    says: 'this looks like a shortened commit and is looked up as a branch or tag; a commit is written with all its 40 or 64 digits',
  };
}

/** A branch beside a `ref` is not used, which another note says. */
function branchSlip({ branch = '', ref = '' }: WorkspaceConfig): Slip | undefined {
  const name = branch.trim().replace(/^refs\/heads\//, '');
  if (ref.trim() !== '' || !(wholeId.test(name) || shortId.test(name))) return undefined;
  return {
    field: 'branch',
    says: 'this looks like a commit and is looked up as a branch; a commit belongs into spec.workspace.ref',
  };
}

function subPathSlip({ subPath }: WorkspaceConfig): Slip | undefined {
  if (!(relativeRootOf(subPath) ?? '').toLowerCase().split('/').includes('.git')) return undefined;
  return { field: 'subPath', says: 'no repository has a folder .git among its files' };
}
