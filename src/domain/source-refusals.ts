import { describeFinding } from '../lib/errors.js';
import type { Finding } from '../lib/errors.js';
import { publisherPorts } from './publisher.js';

/** Why a Task cannot run on its repository, as `status.execution.reason` says it. */
type SourceReason = 'CredentialBlocked' | 'InvalidWorkspace' | 'WorkspaceUnsupported';

/** What the publisher says of a refused tree. `path` is escaped. */
export interface RefusedDetail {
  readonly reason: string;
  readonly path?: string | undefined;
  readonly limit?: number | undefined;
  readonly found?: number | undefined;
}

/** The part of a Task that its repository comes from. */
export interface AskedSource {
  /** `Task <namespace>/<name>` */
  readonly at: string;
  readonly repositoryId: string;
  /** Of the forge, with its port unless that is 443. */
  readonly forge: string;
  readonly branch?: string | undefined;
  readonly ref?: string | undefined;
  /** Secret and key of the credential; `undefined` = the repository is read anonymously. */
  readonly credential?: { readonly secret: string; readonly key: string } | undefined;
  /** `<namespace>/<name>` of the Service of the publisher. */
  readonly service?: string | undefined;
}

export interface SourceRefusal {
  readonly reason: SourceReason;
  readonly finding: Finding;
}

type Told = Omit<Finding, 'at'>;

interface Row {
  readonly reason: SourceReason;
  readonly told: (source: AskedSource, detail: RefusedDetail | undefined) => Told;
}

const gitRepo = 'spec.workspace.gitRepo';

/** The field that names the source; `gitRepo` when the Task takes the default branch. */
function refField({ ref = '', branch = '' }: AskedSource): { readonly field: string; readonly found?: string } {
  if (ref.trim() !== '') return { field: 'spec.workspace.ref', found: ref };
  return branch.trim() === '' ? { field: gitRepo } : { field: 'spec.workspace.branch', found: branch };
}

const user = (told: Row['told']): Row => ({ reason: 'InvalidWorkspace', told });
/** The author of the Task can do nothing about it. */
const platform = (says: string, remedy = 'tell the operator of the platform'): Row => ({
  reason: 'WorkspaceUnsupported',
  told: () => ({ field: gitRepo, says, remedy }),
});

const refAbsent = user((source) => ({
  ...refField(source),
  says:
    refField(source).field === gitRepo
      ? `${source.repositoryId} has no default branch`
      : `${source.repositoryId} does not have it`,
  allowed: 'a branch, tag or commit of the repository',
}));

/** One row for each reason for which a publisher refuses a tree. */
const treeRows: Readonly<Record<string, (detail: RefusedDetail) => Told>> = {
  submodule: ({ path }) => ({
    field: gitRepo,
    says: `a submodule at ${path ?? 'some path'}`,
    allowed: 'a tree without submodules',
  }),
  unsafe_link: ({ path }) => ({
    field: gitRepo,
    says: `the symbolic link ${path ?? ''} is not safe`,
    allowed: 'links to files and folders of the tree, without cycles',
  }),
  reserved_name: ({ path }) => ({
    field: gitRepo,
    says: `the name of ${path ?? 'an entry'} is reserved`,
    allowed: 'other names',
  }),
  path: ({ path }) => ({
    field: gitRepo,
    says: `the path ${path ?? 'of an entry'} cannot be used`,
    allowed: 'paths of at most 4096 bytes, with names of at most 255, without control characters, "\\" and space at their ends',
  }),
  encoding: ({ path }) => ({ field: gitRepo, says: `the path ${path ?? 'of an entry'} is not UTF-8`, allowed: 'paths in UTF-8' }),
  too_many_entries: (detail) => tooMuch('entries in the tree', '', detail),
  file_too_large: (detail) => tooMuch(`bytes in the file ${detail.path ?? ''}`, ' bytes', detail),
  tree_too_large: (detail) => tooMuch('bytes in all files together', ' bytes', detail),
};

function tooMuch(what: string, unit: string, { found, limit }: RefusedDetail): Told {
  return {
    field: gitRepo,
    says: `too many ${what}`,
    ...(found === undefined ? {} : { foundKind: `${found}${unit}` }),
    ...(limit === undefined ? {} : { allowed: `at most ${limit}${unit}` }),
  };
}

/** What each code of the publisher, or of a call to it, says of a Task. Source: repository.md §2.3, §3.2. */
export const sourceRefusals: Readonly<Record<string, Row>> = {
  credential_refused: {
    reason: 'CredentialBlocked',
    told: ({ credential, forge }) =>
      credential
        ? {
            field: 'spec.workspace.readCredentialRef',
            says: `the forge ${forge} refuses the credential in key ${credential.key} of Secret ${credential.secret}`,
            allowed: 'a credential that may read the repository',
          }
        : {
            field: 'spec.workspace.readCredentialRef',
            says: `the forge ${forge} asks for a credential`,
            allowed: 'the Secret of a credential that may read the repository',
          },
  },
  repository_absent: user(({ repositoryId, credential }) => ({
    field: gitRepo,
    found: repositoryId,
    allowed: `a repository that ${credential ? 'its credential may read' : 'may be read without a credential'}: the forge finds none`,
  })),
  source_ref_absent: refAbsent,
  source_ref_invalid: refAbsent,
  source_ref_ambiguous: user((source) => ({
    ...refField(source),
    says: `${source.repositoryId} has a branch and a tag of that name`,
    allowed: 'refs/heads/<name> or refs/tags/<name>',
  })),
  source_moved: {
    reason: 'WorkspaceUnsupported',
    told: (source) => ({
      ...refField(source),
      says: 'it was changed between its look-up and its fetch',
      remedy: 'create the Task again, or name a commit',
    }),
  },
  tree_refused: user((source, detail) => {
    const row = detail && treeRows[detail.reason];
    return row ? row(detail) : { field: gitRepo, says: `a workspace cannot hold the tree of ${source.repositoryId}` };
  }),
  host_not_allowed: user(({ forge }) => ({
    field: gitRepo,
    found: forge,
    allowed: 'a forge that this platform lists (publisher.forges)',
  })),
  tls_failed: {
    reason: 'WorkspaceUnsupported',
    told: ({ forge }) => ({
      field: gitRepo,
      says: `the certificate of the forge ${forge} cannot be trusted`,
      remedy: 'the operator sets the CA of the forge in publisher.forges',
    }),
  },
  redirect_refused: user(({ repositoryId }) => ({
    field: gitRepo,
    found: repositoryId,
    says: 'the forge answers with a redirect, which is not followed',
    allowed: 'the URL that the forge redirects to, if its forge is listed',
  })),
  address_refused: {
    reason: 'WorkspaceUnsupported',
    told: ({ forge }) => ({
      field: gitRepo,
      says: `the forge ${forge} has an address that it may not have`,
      allowed: 'a public address; with private: true, an address of its peer (peer.cidr)',
      remedy: 'the operator sets private and peer of the forge in publisher.forges',
    }),
  },
  source_corrupt: user(({ repositoryId }) => ({
    field: gitRepo,
    found: repositoryId,
    says: 'its objects do not pass the checks of Git',
    allowed: 'a repository that passes git fsck --strict',
  })),
  scm_output_limit: user(({ repositoryId }) => ({
    field: gitRepo,
    found: repositoryId,
    says: 'the forge answers with more than the publisher reads',
    allowed: 'a smaller repository',
  })),
  scm_failure: platform('the forge could not be asked'),
  scm_timeout: platform('the forge did not answer in time'),
  scm_unavailable: platform('the forge cannot be reached'),
  busy: platform('the publisher had no room for another repository'),
  invalid_request: platform('the publisher does not take the request of the controller'),
  invalid_credential_ref: platform('the publisher does not take the credential reference of the controller'),
  unauthorized: platform('the publisher does not accept the keys of the controller'),
  request_too_large: platform('the request of the controller is too large for the publisher'),
  operation_conflict: platform('the publisher has another request under the operation of this Task', 'create the Task again'),
  internal_error: platform('the publisher failed'),
  workspace_archive_failed: platform('the publisher could not make the archive of the tree'),
  workspace_object_missing: platform('the publisher lost the archive of the tree', 'create the Task again'),
  workspace_object_corrupt: platform('the publisher made another archive of the same tree', 'create the Task again'),
  operation_interrupted: platform('the publisher was interrupted'),
  git_unavailable: platform(
    'the publisher has no Git that it can use',
    'the operator takes an image of the publisher with Git, or names the program with its flag --git',
  ),
  storage_full: platform('the publisher has no room for the archive of the tree'),
  journal_full: platform('the publisher has no room for another operation'),
  journal_unavailable: platform('the publisher cannot store its operations'),
  unreachable: {
    reason: 'WorkspaceUnsupported',
    told: ({ service }) => ({
      field: gitRepo,
      says: `the publisher cannot be reached${service === undefined ? '' : ` (Service ${service})`}`,
      remedy: 'tell the operator of the platform',
    }),
  },
  timeout: platform('the publisher did not answer in time'),
  aborted: platform('the controller stopped waiting for the publisher'),
  protocol: platform('the publisher gave an answer that the controller cannot read'),
  credential_changed: {
    reason: 'CredentialBlocked',
    told: ({ credential }) => ({
      field: 'spec.workspace.readCredentialRef',
      says: `Secret ${credential?.secret ?? ''} was changed after the Task was bound`,
      remedy: 'create the Task again to use the present credential',
    }),
  },
  credential_unread: platform('the controller could not read the Secret of the credential'),
  abandoned: platform('the call to the publisher was given up'),
};

/** What a Task says when its source is refused for good. A code that is not known is one of a newer publisher. */
export function sourceRefusal(code: string, source: AskedSource, detail?: RefusedDetail): SourceRefusal {
  const row = rowOf(code) ?? platform(`the publisher refuses the repository (${code})`);
  return { reason: row.reason, finding: { at: source.at, ...row.told(source, detail) } };
}

/**
 * What a Task says whose tree its instance refuses. `says`: the rule and the path. The publisher asks the same rules of the whole tree, so that
 * in a part of it the links out of that part are what is left.
 */
export function refusedWorkspace(
  { at, repositoryId }: AskedSource,
  says: string,
  relativeRoot: string | undefined,
): SourceRefusal {
  const of = relativeRoot === undefined ? { field: gitRepo } : { field: 'spec.workspace.subPath', found: relativeRoot };
  const allowed =
    relativeRoot === undefined ? 'a commit whose tree does not have it' : 'a folder of the repository whose links stay inside it';
  return {
    reason: 'InvalidWorkspace',
    finding: { at, ...of, says: `no workspace of ${repositoryId} can be made: ${says}`, allowed },
  };
}

/** What a Task says whose archive does not come to its instance. */
export function failedDownload({ at, service }: AskedSource, says: string): SourceRefusal {
  const server = `port ${publisherPorts.artifacts} (artifacts) of the publisher${service === undefined ? '' : `, Service ${service}`}`;
  const failed = `its instance could not download the archive of the repository from ${server}: ${says}`;
  const remedy = 'tell the operator of the platform';
  return { reason: 'WorkspaceUnsupported', finding: { at, field: gitRepo, says: failed, remedy } };
}

/** What went wrong with a call that is made again, without object and remedy. */
export function sourceTrouble(code: string, source: AskedSource): string {
  const { says, field } = rowOf(code)?.told(source, undefined) ?? {};
  return says ?? describeFinding({ at: field ?? gitRepo, says: code });
}

function rowOf(code: string): Row | undefined {
  return Object.hasOwn(sourceRefusals, code) ? sourceRefusals[code] : undefined;
}
