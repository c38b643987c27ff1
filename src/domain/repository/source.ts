import type { WorkspaceConfig } from '../../api/index.js';
import { isBlank } from '../../lib/text.js';
import { sourceRefOf } from './refs.js';
import { readRepository } from './repository.js';
import type { Repository } from './repository.js';
import { relativeRootOf } from './sub-path.js';

/** What is fetched for a Task. */
export interface WorkspaceSource {
  readonly repository: Repository;
  /** As resolve takes it; `''` = the default branch. */
  readonly sourceRef: string;
  /** The directory that the session sees; absent = the whole repository. */
  readonly relativeRoot?: string;
  /** Secret in the namespace of the Task; absent = the repository is read without a credential. */
  readonly credential?: { readonly name: string; readonly key: string };
}

/** Tells whether a workspace names a repository; a blank URL is none. */
export const namesRepository = (workspace: WorkspaceConfig | undefined): boolean => !isBlank(workspace?.gitRepo ?? '');

/** The source of an admitted workspace; `undefined` = it has no repository. */
export function workspaceSource(workspace: WorkspaceConfig | undefined): WorkspaceSource | undefined {
  if (!workspace || !namesRepository(workspace)) return undefined;
  const read = readRepository(workspace.gitRepo ?? '');
  if ('problem' in read) return undefined;
  const relativeRoot = relativeRootOf(workspace.subPath);
  const { readCredentialRef: reference } = workspace;
  return {
    repository: read.repository,
    sourceRef: sourceRefOf(workspace),
    ...(relativeRoot === undefined ? {} : { relativeRoot }),
    ...(reference ? { credential: { name: reference.name, key: reference.key ?? 'token' } } : {}),
  };
}
