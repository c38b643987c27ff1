import { describe, expect, test } from '@jest/globals';
import { redacted } from '../../src/domain/redaction.js';
import { sourceRefusal, sourceRefusals, sourceTrouble } from '../../src/domain/source-refusals.js';
import type { AskedSource } from '../../src/domain/source-refusals.js';
import { describeFinding } from '../../src/lib/errors.js';
import { publisherCodes, treeRefusals } from '../../src/source/errors.js';

const source: AskedSource = {
  at: 'Task team-a/t1',
  repositoryId: 'git.example/acme/app',
  forge: 'git.example',
  branch: 'main',
  credential: { secret: 'read', key: 'token' },
};
const text = (code: string, of: AskedSource = source, detail?: Parameters<typeof sourceRefusal>[2]) =>
  describeFinding(sourceRefusal(code, of, detail).finding);

test('every code of the publisher has a row, and so has every failed call', () => {
  const codes = [...Object.keys(publisherCodes), 'unreachable', 'timeout', 'aborted', 'protocol'];
  expect(codes.filter((code) => !Object.hasOwn(sourceRefusals, code))).toEqual([]);
});

test('every code that may pass has a sentence for the time until then', () => {
  const passing = Object.entries(publisherCodes).filter(([, { retryable }]) => retryable);
  for (const [code] of passing) expect(sourceTrouble(code, source)).toMatch(/^the (forge|publisher) /);
});

test.each(Object.keys(sourceRefusals))('%s names the field, and holds nothing that a Task may not show', (code) => {
  expect(text(code)).toMatch(/^Task team-a\/t1: spec\.workspace\./);
  expect(redacted(text(code))).toBe(text(code));
});

test.each([
  ['credential_refused', 'CredentialBlocked'],
  ['repository_absent', 'InvalidWorkspace'],
  ['source_ref_absent', 'InvalidWorkspace'],
  ['source_ref_ambiguous', 'InvalidWorkspace'],
  ['tree_refused', 'InvalidWorkspace'],
  ['host_not_allowed', 'InvalidWorkspace'],
  ['tls_failed', 'WorkspaceUnsupported'],
  ['scm_failure', 'WorkspaceUnsupported'],
  ['one_of_a_newer_publisher', 'WorkspaceUnsupported'],
])('%s is %s', (code, reason) => {
  expect(sourceRefusal(code, source).reason).toBe(reason);
});

describe('a source that is absent names', () => {
  test.each<[string, Partial<AskedSource>, string]>([
    ['the ref, which wins', { ref: 'v1' }, 'spec.workspace.ref: git.example/acme/app does not have it: found "v1"'],
    ['the branch', {}, 'spec.workspace.branch: git.example/acme/app does not have it: found "main"'],
    [
      'the repository without a default branch',
      { branch: undefined },
      'spec.workspace.gitRepo: git.example/acme/app has no default branch',
    ],
  ])('%s', (_, change, says) => {
    expect(text('source_ref_absent', { ...source, ...change })).toContain(says);
  });
});

describe('a refused credential names', () => {
  test('Secret and key', () => {
    expect(text('credential_refused')).toContain('key token of Secret read');
  });

  test('the field where there is none', () => {
    expect(text('credential_refused', { ...source, credential: undefined })).toContain(
      'spec.workspace.readCredentialRef: the forge git.example asks for a credential',
    );
  });
});

describe('what only the operator can change says what is allowed:', () => {
  test.each([
    [
      'address_refused',
      'with private: true, an address of its peer (peer.cidr); the operator sets private and peer of the forge',
    ],
    ['git_unavailable', 'the operator takes an image of the publisher with Git, or names the program with its flag --git'],
  ])('%s', (code, says) => {
    expect(text(code)).toContain(says);
  });
});

describe('a refused tree says', () => {
  test.each<[string, string]>([
    ['submodule', 'a submodule at a/b: allowed: a tree without submodules'],
    ['unsafe_link', 'the symbolic link a/b is not safe'],
    ['reserved_name', 'the name of a/b is reserved'],
    ['path', 'the path a/b cannot be used'],
    ['encoding', 'the path a/b is not UTF-8'],
    ['too_many_entries', 'too many entries in the tree: found 7, allowed: at most 5'],
    ['file_too_large', 'too many bytes in the file a/b: found 7 bytes, allowed: at most 5 bytes'],
    ['tree_too_large', 'too many bytes in all files together: found 7 bytes, allowed: at most 5 bytes'],
  ])('%s', (reason, says) => {
    expect(text('tree_refused', source, { reason, path: 'a/b', limit: 5, found: 7 })).toContain(says);
  });

  test('each reason that the publisher has', () => {
    const plain = text('tree_refused');
    for (const reason of treeRefusals) expect(text('tree_refused', source, { reason })).not.toBe(plain);
  });
});
