import type { WorkspaceConfig } from '../../api/index.js';
import { nameOf } from '../plan.js';
import { sourceRefProblem } from '../repository/refs.js';
import { forgeProblem, readRepository, sameRepository } from '../repository/repository.js';
import type { RepositoryProblem } from '../repository/repository.js';
import { namesRepository } from '../repository/source.js';
import { subPathProblem } from '../repository/sub-path.js';
import { isEmpty, notAvailable, operatorSets } from './rule.js';
import type { AdmissionRule } from './rule.js';

type Field = keyof WorkspaceConfig;

/** What is wrong with a field of `spec.workspace`. */
interface Problem extends RepositoryProblem {
  readonly field: Field;
}

const publishing = notAvailable('publishing a changed workspace');
const needsRepository: readonly Field[] = ['branch', 'ref', 'subPath', 'sourceRepository', 'readCredentialRef'];
const needsWriteIntent: readonly Field[] = [
  'publicationGitRepo',
  'publicationRepository',
  'publicationReadCredentialRef',
  'publicationCredentialRef',
  'forgeCredentialRef',
  'pushBranch',
  'prBaseBranch',
  'createPR',
  'expectedRemoteSHA',
  'maxChangedFiles',
  'allowedPaths',
  'denyRepositoryControlPaths',
  'rejectBinaryFiles',
  'rejectSecretLikeContent',
];

/**
 * The repository that the work is about. Refused as an execution failure with reason `InvalidWorkspace`, before anything is asked for.
 * The list of forges comes last, so that a forge that is added never turns up another refusal. Sources: dispatch.md §2.6,
 * repository.md §1.1-1.4.
 */
export const preflightRules: readonly AdmissionRule[] = [
  repositoryRule('write-intent', ({ intent }) =>
    intent === 'write' ? { field: 'intent', found: intent, allowed: `read: ${publishing}` } : undefined,
  ),
  repositoryRule('repository-required', (workspace) => {
    const field = namesRepository(workspace) ? undefined : needsRepository.find((name) => isGiven(workspace[name]));
    return field && { field, found: workspace[field], allowed: `nothing: ${field} requires gitRepo` };
  }),
  repositoryRule('repository-url', (workspace) => {
    const read = repositoryIn(workspace);
    return read && 'problem' in read ? { field: 'gitRepo', ...read.problem } : undefined;
  }),
  repositoryRule('repository-identity', (workspace) => {
    const read = repositoryIn(workspace);
    const { sourceRepository: found } = workspace;
    if (!read || 'problem' in read || !found || sameRepository(read.repository, found)) return undefined;
    const { provider, id } = read.repository;
    return {
      field: 'sourceRepository',
      found,
      allowed: `nothing, or the identity of gitRepo: ${JSON.stringify({ provider, id })}`,
    };
  }),
  repositoryRule('source-ref', (workspace) => {
    const wrong = sourceRefProblem(workspace);
    return wrong && { field: wrong.field, ...wrong.problem };
  }),
  repositoryRule('sub-path', ({ subPath }) => {
    const problem = subPathProblem(subPath);
    return problem && { field: 'subPath', ...problem };
  }),
  repositoryRule('publication', (workspace) => {
    const field = needsWriteIntent.find((name) => isGiven(workspace[name]));
    const allowed = `nothing: ${field ?? ''} requires write workspace intent, and ${publishing}`;
    return field && { field, found: workspace[field], allowed };
  }),
  repositoryRule('forge', (workspace, forges) => {
    const read = repositoryIn(workspace);
    if (!read || 'problem' in read) return undefined;
    if (forges.length === 0)
      return {
        field: 'gitRepo',
        says: 'repositories are switched off in this installation',
        remedy: operatorSets('publisher.enabled: true and publisher.forges'),
      };
    const problem = forgeProblem(read.forge, forges);
    return problem && { field: 'gitRepo', ...problem };
  }),
];

const repositoryIn = (workspace: WorkspaceConfig) =>
  namesRepository(workspace) ? readRepository(workspace.gitRepo ?? '') : undefined;

/** A rule about `spec.workspace`; a Task without one passes. */
function repositoryRule(
  id: string,
  problemOf: (workspace: WorkspaceConfig, forges: readonly string[]) => Problem | undefined,
): AdmissionRule {
  return {
    id,
    check: ({ task, hosting }) => {
      const problem = task.spec.workspace && problemOf(task.spec.workspace, hosting.forges);
      return problem && { at: nameOf('Task', task), ...problem, field: `spec.workspace.${problem.field}` };
    },
  };
}

/** Tells a value from the absence of one: blank texts, empty lists and `false` say nothing. */
function isGiven(value: unknown): boolean {
  if (typeof value === 'string') return value.trim() !== '';
  return typeof value === 'object' && value !== null ? !isEmpty(value) : value !== undefined && value !== null && value !== false;
}
