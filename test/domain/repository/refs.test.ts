import { describe, expect, test } from '@jest/globals';
import { isBareRef, isBranchRef, isSourceRef, sourceRefOf, sourceRefProblem } from '../../../src/domain/repository/refs.js';
import { readVectors } from '../../support/vectors.js';
import type { Vector } from '../../support/vectors.js';

type Section<I, O> = { readonly vectors: readonly Vector<I, O>[] };
interface Accepted {
  readonly accepted: boolean;
}
const { sections } = readVectors<{
  sections: {
    sourceRef: Section<{ ref: string }, Accepted & { bare?: boolean; canonical?: string }>;
    strictRef: Section<{ ref: string }, { source: Accepted; branch: Accepted }>;
    branches: Section<{ branch?: string; ref?: string }, Accepted & { sourceRef?: string }>;
  };
}>('repository');

describe('sourceRef:', () => {
  test.each(sections.sourceRef.vectors)('$name is read as the reference reads it', ({ input: { ref }, output }) => {
    expect(isSourceRef(ref)).toBe(output.accepted);
    if (output.accepted) expect([sourceRefOf({ ref }), isBareRef(ref)]).toEqual([output.canonical, output.bare]);
  });
});

describe('strictRef:', () => {
  test.each(sections.strictRef.vectors)('$name is a branch or a source as the reference says', ({ input: { ref }, output }) => {
    expect(isBranchRef(ref)).toBe(output.branch.accepted);
    // A bare name is a source ref until it was looked up.
    expect(isSourceRef(ref) && !isBareRef(ref)).toBe(output.source.accepted);
  });
});

describe('branches:', () => {
  const ofSource = sections.branches.vectors.filter(({ name }) => name.startsWith('source-'));

  test.each(ofSource)('$name becomes what the reference sends to resolve', ({ input, output }) => {
    expect(sourceRefProblem(input) === undefined).toBe(output.accepted);
    if (output.accepted) expect(sourceRefOf(input)).toBe(output.sourceRef);
  });
});

test.each([
  [{ branch: 'main' }, 'refs/heads/main'],
  [{ branch: ' refs/heads/main ' }, 'refs/heads/main'],
  [{ branch: 'a..b', ref: 'v1' }, 'v1'],
  [{ branch: '', ref: ' ' }, ''],
  [{}, ''],
])('%j is fetched as "%s"', (workspace, ref) => {
  expect(sourceRefOf(workspace)).toBe(ref);
  expect(sourceRefProblem(workspace)).toBeUndefined();
});

test.each([
  'refs/tags/v1',
  'refs/notes/x',
  'x.lock',
  '.x',
  '-x',
  '@',
  'a b',
  'a/',
  'a//b',
  '/a',
  'a\u0000b',
  'a\ud800',
  'refs/heads/',
  'x'.repeat(1014),
])('the branch %j is refused', (branch) => {
  expect(sourceRefProblem({ branch })).toMatchObject({ field: 'branch', problem: { found: branch } });
});

test('a tag as branch is told to use ref', () => {
  expect(sourceRefProblem({ branch: 'refs/tags/v1' })?.problem.allowed).toContain('spec.workspace.ref');
  expect(sourceRefProblem({ ref: 'refs/tags/v1' })).toBeUndefined();
});
