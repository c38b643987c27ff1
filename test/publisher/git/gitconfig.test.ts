import { expect, test } from '@jest/globals';
import { credentialConfig, networkConfig } from '../../../src/publisher/git/gitconfig.js';
import { readVectors } from '../../support/vectors.js';
import type { Vector } from '../../support/vectors.js';

interface Sections {
  readonly gitconfig: {
    readonly vectors: readonly Vector<{ readonly header: string; readonly url: string }, { readonly gitconfig: string }>[];
  };
}
const { sections } = readVectors<{ readonly sections: Sections }>('repository');

test.each(sections.gitconfig.vectors)('$name: the file of a credential is that of the contract', ({ input, output }) => {
  expect(credentialConfig(input.url, input.header)).toBe(output.gitconfig);
});

test('without a credential the file has no header, and still neither follows redirects nor skips certificates', () => {
  expect(credentialConfig('https://github.com/acme/app.git', undefined)).toBe(
    '[http]\n\tfollowRedirects = false\n\tsslVerify = true\n',
  );
});

test('the way out is a proxy, and a forge may have authorities of its own', () => {
  const proxy = 'http://user:word@127.0.0.1:8080';
  expect(networkConfig(proxy, undefined)).toBe(`[http]\n\tproxy = "${proxy}"\n\tproxyAuthMethod = basic\n`);
  expect(networkConfig(proxy, '/tmp/a "b".pem')).toContain('\tsslCAInfo = "/tmp/a \\"b\\".pem"\n');
});
