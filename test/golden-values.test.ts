import { describe, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { ExecutionSpecSchema } from '../src/api/index.js';
import { structural } from '../src/api/structural.js';
import { validateNode } from '../src/api/validate.js';
import { childName } from '../src/domain/names.js';
import { canonicalJson } from '../src/lib/canonical-json.js';
import { compile } from '../src/render/compile.js';
import { poolClass } from './support/objects.js';
import { readVectors } from './support/vectors.js';

const page = readFileSync('ARCHITECTURE.md', 'utf8').split('## Golden values\n')[1] ?? '';
/** What stands in backticks in the section about golden values. */
const listed = new Set([...page.matchAll(/`([^`\n]+)`/g)].map(([, text = '']) => text));
const files = readdirSync('test/vectors').filter((name) => name.endsWith('.json'));
const vectors = new Set(
  files.flatMap((name) =>
    [...readFileSync(`test/vectors/${name}`, 'utf8').matchAll(/"name":"([^"]+)"/g)].map(([, vector = '']) => vector),
  ),
);

/** Names of vectors in the list of deviations of a test. */
function deviationsOf(file: string): readonly string[] {
  const [, list = ''] = /^const deviations[^=]*= ([[{][^]*?)[\]}];$/m.exec(readFileSync(file, 'utf8')) ?? [];
  return [...list.matchAll(/'([\w-]+)'(?=[:,\]]|$)/g)].flatMap(([, name = '']) => (vectors.has(name) ? [name] : []));
}

describe('ARCHITECTURE.md lists', () => {
  test.each([
    ['test/domain/admission.test.ts', 9],
    ['test/domain/snapshot.test.ts', 2],
    ['test/render/runtime-pool.test.ts', 2],
    ['test/supervisor/bootstrap.test.ts', 3],
    ['test/harness/capability.test.ts', 1],
    ['test/domain/repository/repository.test.ts', 1],
    ['test/domain/preflight.test.ts', 4],
  ])('every deviation of %s', (file, count) => {
    const names = deviationsOf(file);
    expect(names.length).toBeGreaterThanOrEqual(count);
    expect(names.filter((name) => !listed.has(name))).toEqual([]);
  });

  test('how many deviations the test of attestation has', () => {
    expect(deviationsOf('test/domain/attestation.test.ts')).toHaveLength(9);
    expect(page).toContain('the nine vectors that `test/domain/attestation.test.ts` lists');
  });
});

/** Sections of repository.json that no test reads, each with the reason. */
const unread: Readonly<Record<string, string>> = {
  expectedRemote: 'write: the commit that the target branch must hold',
  pullRequestBody: 'write: pull requests',
  publicationPath: 'write: paths that may be published',
  allowedPaths: 'write: change policies',
  controlPaths: 'write: change policies',
  secretLike: 'write: change policies',
  publicationIds: 'write: publications',
  branchClaim: 'write: claims of branches',
  publicationStates: 'write: publications',
  prepareRequest: 'write: the request of a publication',
  publisherOperations: 'write: requests of a publication',
  commit: 'write: commits',
  egressProxyEnvironment: 'no proxy comes from the environment: git has only one of our own, on loopback',
};

test('each section of repository.json is read by a test, or is listed with the reason why not', () => {
  const readers = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && name !== 'golden-values.test.ts')
    .map((name) => readFileSync(`test/${name}`, 'utf8'))
    .filter((text) => text.includes("'repository')"));
  const { sections } = readVectors<{ sections: Record<string, unknown> }>('repository');
  const silent = Object.keys(sections).filter(
    (name) => !readers.some((text) => new RegExp(`\\b${name}\\.vectors\\b`).test(text)),
  );
  expect(silent.sort()).toEqual(Object.keys(unread).sort());
});

describe('deviations without a vector are real:', () => {
  test('a pool has no preStop', () => {
    expect(JSON.stringify(compile(poolClass()))).not.toContain('preStop');
  });

  test('an integer above 2^53 is refused', () => {
    expect(() => canonicalJson([2 ** 53])).toThrow(/2\^53/);
  });

  test('a slot with spaces around it is refused', () => {
    expect(validateNode(structural(ExecutionSpecSchema), { workspace: { workspaceSlot: ' a ' } })).toMatchObject([
      { field: 'workspace.workspaceSlot' },
    ]);
  });

  test('a base of 2 and a suffix of 60 characters fill a name', () => {
    expect(childName('bb', 's'.repeat(60))).toBe(`bb-${'s'.repeat(60)}`);
  });
});
