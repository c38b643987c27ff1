import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { repositoryOf, sameRepository } from '../../../src/domain/repository/repository.js';
import { describeFinding } from '../../../src/lib/errors.js';
import { readVectors } from '../../support/vectors.js';
import type { Vector } from '../../support/vectors.js';

type Section<I, O> = { readonly vectors: readonly Vector<I, O>[] };
const { sections } = readVectors<{
  sections: {
    repositoryUrl: Section<{ url: string }, { accepted: boolean; id?: string; url?: string }>;
    publisherRepository: Section<{ url: string; allowFile: boolean; allowedHosts: string[] | null }, { accepted: boolean }>;
  };
}>('repository');

/** The reference asks no list at admission; these are the hosts of its vectors. */
const hosts = [
  'github.com',
  'gitlab.com',
  'git.example.com',
  '10.0.0.5',
  '192.168.0.5',
  '8.8.8.8',
  'localhost',
  'kubernetes.default.svc',
  '127.0.0.1',
  '0.0.0.0',
  '169.254.169.254',
];

/** `file` is a switch for tests of the reference, which we do not have. */
const deviations: readonly string[] = ['repository-28'];

describe('repositoryUrl:', () => {
  test.each(sections.repositoryUrl.vectors)('$name is read as the reference reads it', ({ input, output }) => {
    const read = repositoryOf(input.url, hosts);
    expect('repository' in read).toBe(output.accepted);
    if ('repository' in read) expect(read.repository).toEqual({ provider: 'github', id: output.id, url: output.url });
  });
});

describe('publisherRepository:', () => {
  test.each(sections.publisherRepository.vectors)(
    '$name is accepted or refused as the reference does',
    ({ name, input, output }) => {
      const accepted = output.accepted && !deviations.includes(name);
      expect('repository' in repositoryOf(input.url, input.allowedHosts ?? hosts)).toBe(accepted);
    },
  );
});

const idOf = (url: string, ...forges: string[]): string | undefined => {
  const read = repositoryOf(url, forges);
  return 'repository' in read ? read.repository.id : undefined;
};

describe('a port', () => {
  test.each([
    ['https://git.example:8443/a.git', ['git.example:8443'], 'git.example:8443/a'],
    ['https://git.example:443/a.git', ['git.example'], 'git.example/a'],
    ['https://git.example/a.git', ['git.example:443'], 'git.example/a'],
    ['https://git.example:8443/a.git', ['git.example'], undefined],
    ['https://git.example/a.git', ['git.example:8443'], undefined],
    ['https://git.example:08443/a', ['git.example:8443'], undefined],
    ['https://git.example:/a', ['git.example'], undefined],
    ['https://git.example:65536/a', ['git.example:65536'], undefined],
    ['https://GIT.example:8443/A', ['Git.Example:8443'], 'git.example:8443/A'],
  ])('%s with the forges %j has the identity %s', (url, forges, id) => {
    expect(idOf(url, ...forges)).toBe(id);
  });
});

test.each([
  ['an address in a form that only resolvers know', 'https://127.1/a', '127.1'],
  ['an address as a number', 'https://2130706433/a', '2130706433'],
  ['a hexadecimal address', 'https://0x7f.0.0.1/a', '0x7f.0.0.1'],
  ['an octal address', 'https://0177.0.0.1/a', '0177.0.0.1'],
  ['an IPv4 address inside IPv6', 'https://[::ffff:127.0.0.1]/a', '[::ffff:127.0.0.1]'],
  ['a link-local address', 'https://[fe80::1]/a', '[fe80::1]'],
  ['a zone', 'https://[fe80::1%25eth0]/a', '[fe80::1%25eth0]'],
  ['a dot at the end of the host', 'https://git.example./a', 'git.example.'],
  ['a host that is not ASCII', 'https://gıt.example/a', 'gıt.example'],
  ['an escaped dot segment', 'https://git.example/%2e%2e/a', 'git.example'],
  ['a lower-case escape', 'https://git.example/%c3%a4', 'git.example'],
  ['an escape that is not needed', 'https://git.example/%61', 'git.example'],
  ['a character that needs an escape', 'https://git.example/a b', 'git.example'],
  ['an escaped line feed', 'https://git.example/a%0Ab', 'git.example'],
  ['an escaped backslash', 'https://git.example/a%5Cb', 'git.example'],
  ['bytes that are not UTF-8', 'https://git.example/%FF', 'git.example'],
  ['nothing but .git in a folder', 'https://git.example/a/.git', 'git.example'],
  ['spaces around it', ' https://git.example/a ', 'git.example'],
  ['a line feed', 'https://git.example/a\n', 'git.example'],
  ['an identity that no status holds', `https://git.example/${'a'.repeat(512)}`, 'git.example'],
])('a URL with %s is refused', (_, url, forge) => {
  expect(idOf(url, forge)).toBeUndefined();
});

test('an escape that is needed is part of the identity in plain text', () => {
  expect(idOf('https://git.example/caf%C3%A9/a%20b.git', 'git.example')).toBe('git.example/café/a b');
});

test.each([
  'https://user:hunter2@git.example/a',
  'https://git.example/a?token=hunter2',
  'hunter2@git.example:a',
  'https://git.example/a#hunter2',
])('what may be a credential in %s is not shown', (url) => {
  const read = repositoryOf(url, ['git.example']);
  expect(describeFinding({ at: '', ...('problem' in read ? read.problem : {}) })).not.toContain('hunter2');
  expect(read).toHaveProperty('problem');
});

test('a host that is not listed names the list and the key of the operator', () => {
  const read = repositoryOf('https://git.example/a', ['github.com', 'git.corp:8443']);
  expect(read).toEqual({
    problem: {
      found: 'git.example:443',
      allowed: 'a repository of github.com, git.corp:8443',
      remedy: expect.stringContaining('publisher.forges'),
    },
  });
});

test('two spellings of one identity never exist for two repositories', () => {
  const segment = fc.string({ minLength: 1, unit: fc.constantFrom('a', 'b', '.', '%', ' ', 'é', '-') });
  fc.assert(
    fc.property(
      fc.array(segment, { minLength: 1, maxLength: 3 }),
      fc.array(segment, { minLength: 1, maxLength: 3 }),
      (one, other) => {
        const [a, b] = [one, other].map((parts) => `https://git.example/${parts.map(encodeURIComponent).join('/')}`);
        const [idA, idB] = [idOf(a ?? '', 'git.example'), idOf(b ?? '', 'git.example')];
        return idA === undefined || idA !== idB || a?.replace(/\.git$/, '') === b?.replace(/\.git$/, '');
      },
    ),
  );
});

test.each([
  ['github.com/acme/app', 'github.com/Acme/App', true],
  ['git.example/acme/app', 'git.example/Acme/app', false],
  ['git.example/acme/app', 'git.example/acme/app', true],
])('%s and %s: the same repository is %s', (one, other, same) => {
  expect(sameRepository({ provider: 'github', id: one }, { provider: 'github', id: other })).toBe(same);
  expect(sameRepository({ provider: 'github', id: one }, { provider: 'gitlab', id: other })).toBe(false);
});
