import { describe, expect, test } from '@jest/globals';
import { credentialMaterial, mayUseCredential } from '../../../src/domain/repository/credential.js';
import type { CredentialKind } from '../../../src/domain/repository/credential.js';
import { readVectors } from '../../support/vectors.js';
import type { Vector } from '../../support/vectors.js';

type Section<I, O> = { readonly vectors: readonly Vector<I, O>[] };
const { sections } = readVectors<{
  sections: {
    credentialMaterial: Section<{ kind: CredentialKind; value: string }, { accepted: boolean; material?: string }>;
    credentialRoles: Section<{ parentOperation: string }, Record<string, boolean>>;
  };
}>('repository');

describe('credentialMaterial:', () => {
  test.each(sections.credentialMaterial.vectors)('$name becomes the material of the reference', ({ input, output }) => {
    expect(credentialMaterial(input.value, input.kind)).toBe(output.material);
  });
});

describe('credentialRoles:', () => {
  test.each(sections.credentialRoles.vectors)('$name takes the kinds and roles of the reference', ({ input, output }) => {
    const answers = Object.keys(output).map((key) => {
      const [kind = '', role = ''] = key.split('/');
      return [key, mayUseCredential(input.parentOperation, kind, role)];
    });
    expect(Object.fromEntries(answers)).toEqual(output);
  });

  test.each(['', 'constructor', 'workspace.delete'])('the operation "%s" takes no credential', (operation) => {
    expect(mayUseCredential(operation, 'http-extra-header', '')).toBe(false);
  });
});

const basic = (text: string): string => `Authorization: Basic ${Buffer.from(text).toString('base64')}`;

test.each([
  ['a token with spaces around it', '\n tok \r\n', basic('x-access-token:tok')],
  ['two lines', 'a\nb', basic('x-access-token:a\nb')],
  ['a bearer header', 'authorization:  bearer  tok', 'Authorization: Bearer tok'],
  ['a basic header', `AUTHORIZATION: basic ${Buffer.from('u:p').toString('base64')}`, basic('u:p')],
  ['32 KiB', 'x'.repeat(32_768), basic(`x-access-token:${'x'.repeat(32_768)}`)],
])('%s is usable for Git', (_, value, material) => {
  expect(credentialMaterial(value)).toBe(material);
});

test.each([
  ['blank', ' \n\t'],
  ['more than 32 KiB', 'x'.repeat(32_769)],
  ['a NUL', 'a\0b'],
  ['a basic header without a colon', 'Authorization: Basic dXNlcg=='],
  ['a basic header that is not padded', 'Authorization: Basic dTpw='],
  ['a bearer header of two lines', 'Authorization: Bearer a\r\nX-Other: b'],
  ['a bearer header beyond ASCII', 'Authorization: Bearer tök'],
  ['no scheme', 'Authorization:'],
])('%s is not usable for Git', (_, value) => {
  expect(credentialMaterial(value)).toBeUndefined();
});

test('a forge token has one line', () => {
  expect(credentialMaterial('a\nb', 'forge-token')).toBeUndefined();
});
