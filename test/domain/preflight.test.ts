import { describe, expect, test } from '@jest/globals';
import type { Task, WorkspaceConfig } from '../../src/api/index.js';
import { admit } from '../../src/domain/admission/admit.js';
import { assess } from '../../src/domain/admission/assess.js';
import type { Hosting } from '../../src/domain/admission/rule.js';
import { available } from '../../src/domain/available.js';
import { workspaceSource } from '../../src/domain/repository/source.js';
import { describeFinding } from '../../src/lib/errors.js';
import { agent, poolClass, task } from '../support/objects.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

type Workspace = WorkspaceConfig;
const { sections } = readVectors<{
  sections: { preflight: { vectors: readonly Vector<{ workspace: Workspace | null }, { accepted: boolean }>[] } };
}>('repository');

/** Write intent that the reference accepts: this version publishes nothing. */
const deviations: readonly string[] = ['write-minimal', 'write-glob-dot-slash', 'write-pr', 'write-push-to-base-branch'];

const hosting: Hosting = {
  agentSandboxEnabled: true,
  workspaceDispatchEnabled: true,
  defaultProvider: '',
  forges: ['github.com', 'git.example:8443'],
  available,
};
const withWorkspace = (workspace: Workspace): Task => task({ workspace });
const refused = (workspace: Workspace, forges = hosting.forges) =>
  admit({ task: withWorkspace(workspace), agent: agent(), hosting: { ...hosting, forges } });
const text = (refusal: ReturnType<typeof refused>): string => (refusal ? describeFinding(refusal.finding) : 'admitted');
const gitRepo = 'https://github.com/acme/app.git';

describe('the gate of repositories', () => {
  test.each(sections.preflight.vectors)('decides as the golden value: $name', ({ name, input, output }) => {
    const refusal = refused(input.workspace ?? {});
    expect(refusal === undefined).toBe(output.accepted && !deviations.includes(name));
    if (refusal) expect(refusal).toMatchObject({ gate: 'preflight', reason: 'InvalidWorkspace', projection: 'execution' });
  });

  test.each(deviations)('refuses what the reference accepts by the name of write intent: %s', (name) => {
    const vector = sections.preflight.vectors.find((one) => one.name === name);
    expect(text(refused(vector?.input.workspace ?? {}))).toBe(
      'Task team-a/t1: spec.workspace.intent: found "write", allowed: read: publishing a changed workspace is not available in this version',
    );
  });
});

describe('without gitRepo', () => {
  test.each<Workspace>([
    { branch: 'main' },
    { ref: 'v1' },
    { subPath: 'a' },
    { sourceRepository: { provider: 'github', id: 'github.com/acme/app' } },
    { readCredentialRef: { name: 'read' } },
    { gitRepo: ' ', branch: 'main' },
  ])('%j is refused by the name of its field', (workspace) => {
    const field = Object.keys(workspace).at(-1) ?? '';
    expect(refused(workspace)).toMatchObject({ rule: 'repository-required', finding: { field: `spec.workspace.${field}` } });
    expect(text(refused(workspace))).toContain(`nothing: ${field} requires gitRepo`);
  });

  test.each<Workspace>([{}, { intent: 'read' }, { gitRepo: '' }, { branch: '', ref: ' ', createPR: false, allowedPaths: [] }])(
    '%j says nothing and is admitted',
    (workspace) => {
      expect(text(refused(workspace))).toBe('admitted');
    },
  );
});

describe('with gitRepo', () => {
  test.each<[string, Workspace, string]>([
    ['another identity', { sourceRepository: { provider: 'github', id: 'github.com/acme/lib' } }, 'sourceRepository'],
    ['another provider', { sourceRepository: { provider: 'gitlab', id: 'github.com/acme/app' } }, 'sourceRepository'],
    ['a tag as branch', { branch: 'refs/tags/v1' }, 'branch'],
    ['a branch that only the loose rule takes', { branch: 'x.lock' }, 'branch'],
    ['another namespace of references', { ref: 'refs/pull/1/head' }, 'ref'],
    ['a commit of zeros', { ref: '0'.repeat(40) }, 'ref'],
    ['a way out of the repository', { subPath: '../x' }, 'subPath'],
    ['a forge that is not listed', { gitRepo: 'https://gitlab.com/a/b' }, 'gitRepo'],
    ['a port that is not listed', { gitRepo: 'https://github.com:8443/a/b' }, 'gitRepo'],
    ['a user in the URL', { gitRepo: 'https://u:hunter2@github.com/a/b' }, 'gitRepo'],
    ['http', { gitRepo: 'http://github.com/a/b' }, 'gitRepo'],
  ])('%s is refused by the name of its field', (_, change, field) => {
    const refusal = refused({ gitRepo, ...change });
    expect(refusal).toMatchObject({ gate: 'preflight', finding: { field: `spec.workspace.${field}` } });
    expect(text(refusal)).toContain('allowed: ');
    expect(text(refusal)).not.toContain('hunter2');
  });

  test('an identity that does not follow from the URL is told the one that does', () => {
    expect(text(refused({ gitRepo, sourceRepository: { provider: 'github', id: 'github.com/acme/lib' } }))).toContain(
      'allowed: nothing, or the identity of gitRepo: {"provider":"github","id":"github.com/acme/app"}',
    );
  });

  test('a port that is listed is part of the identity', () => {
    const workspace = {
      gitRepo: 'https://git.example:8443/a.git',
      sourceRepository: { provider: 'github', id: 'git.example:8443/a' },
    };
    expect(text(refused(workspace))).toBe('admitted');
  });

  test.each<Workspace>([
    { publicationGitRepo: gitRepo },
    { publicationRepository: { provider: 'github', id: 'github.com/acme/app' } },
    { publicationReadCredentialRef: { name: 'r' } },
    { publicationCredentialRef: { name: 'p' } },
    { forgeCredentialRef: { name: 'f' } },
    { pushBranch: 'x' },
    { prBaseBranch: 'main' },
    { createPR: true },
    { expectedRemoteSHA: 'a'.repeat(40) },
    { maxChangedFiles: 1 },
    { allowedPaths: ['a'] },
    { denyRepositoryControlPaths: true },
    { rejectBinaryFiles: true },
    { rejectSecretLikeContent: true },
  ])('%j requires write intent', (change) => {
    const [field = ''] = Object.keys(change);
    expect(refused({ gitRepo, ...change })).toMatchObject({ rule: 'publication', finding: { field: `spec.workspace.${field}` } });
    expect(text(refused({ gitRepo, ...change }))).toContain(
      `nothing: ${field} requires write workspace intent, and publishing a changed workspace is not available in this version`,
    );
  });
});

describe('the operator', () => {
  test('is named where no forge is listed', () => {
    expect(text(refused({ gitRepo }, []))).toBe(
      'Task team-a/t1: spec.workspace.gitRepo: repositories are switched off in this installation; the operator of the platform sets publisher.enabled: true and publisher.forges in platform.yaml and applies it',
    );
  });

  test('is named where the forge is not one of the list', () => {
    expect(text(refused({ gitRepo }, ['git.example']))).toBe(
      'Task team-a/t1: spec.workspace.gitRepo: found "github.com:443", allowed: a repository of git.example; the operator of the platform adds the forge to publisher.forges in platform.yaml and applies it',
    );
  });

  test('is asked last, so that a forge that is added turns up no other refusal', () => {
    expect(refused({ gitRepo, subPath: '..', pushBranch: 'x' }, [])?.rule).toBe('sub-path');
    expect(refused({ gitRepo, pushBranch: 'x' }, [])?.rule).toBe('publication');
  });
});

const artifacts = {
  namespace: 'orka-publisher',
  podLabels: { 'orka.ai/network-role': 'workspace-publisher' },
  url: 'http://orka-publisher.orka-publisher.svc:8080',
  port: 8080,
};

describe('a class', () => {
  const spec = poolClass();
  const assessed = (workspace: Workspace, network = spec.network) =>
    assess({ task: withWorkspace(workspace), agent: agent(), hosting, poolClass: { ...spec, network } });

  test('without a place to download from runs no repository, and the operator is named', () => {
    expect(assessed({ gitRepo })).toMatchObject({
      refusal: {
        gate: 'plan',
        reason: 'InvalidRuntimeProfile',
        finding: { remedy: expect.stringContaining('publisher.enabled') },
      },
    });
    expect(assessed({ intent: 'read' })).toHaveProperty('plan');
  });

  test('with one plans the same pool with a repository as without', () => {
    const network = { ...spec.network, artifacts };
    const plans = [assessed({ gitRepo }, network), assessed({}, network)];
    expect(plans[0]).toHaveProperty('plan');
    expect(plans[0]).toEqual(plans[1]);
  });
});

test('the source of a workspace is its repository, ref, directory and credential', () => {
  const repository = { provider: 'github', id: 'github.com/acme/app', url: gitRepo };
  expect(workspaceSource({ gitRepo, branch: 'main', subPath: 'a/b', readCredentialRef: { name: 'read' } })).toEqual({
    repository,
    sourceRef: 'refs/heads/main',
    relativeRoot: 'a/b',
    credential: { name: 'read', key: 'token' },
  });
  expect(workspaceSource({ gitRepo, subPath: '.' })).toEqual({ repository, sourceRef: '' });
  expect(workspaceSource({ intent: 'read' })).toBeUndefined();
  expect(workspaceSource(undefined)).toBeUndefined();
});
