import { describe, expect, test } from '@jest/globals';
import { canonicalizeText } from '../../src/lib/canonical-json.js';
import type { Digest } from '../../src/lib/sha256.js';
import {
  artifactOperationId,
  artifactRequestDigest,
  issueArtifactCapability,
  verifyArtifactCapability,
} from '../../src/source/artifact-capability.js';
import type { ArtifactRequest, PresentedArtifact } from '../../src/source/artifact-capability.js';
import { operationRequestDigest, signOperation, verifyOperation } from '../../src/source/operation-capability.js';
import type { OperationRequest } from '../../src/source/operation-capability.js';
import { artifactId, artifactPath, operationPaths } from '../../src/source/protocol.js';
import type { Operation } from '../../src/source/protocol.js';
import { CapabilityError } from '../../src/source/signed-claims.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

interface Section<I, O> {
  readonly vectors: readonly Vector<I, O>[];
}
type Accepted = { readonly accepted: boolean };
const { sections } = readVectors<{
  readonly sections: {
    readonly publisherCapability: Section<
      OperationRequest & { readonly body: string; readonly path: string; readonly secret: string; readonly issuedAt: string },
      {
        readonly canonicalBody: string;
        readonly canonicalClaims: string;
        readonly capability: string;
        readonly requestDigest: string;
      }
    >;
    readonly publisherCapabilityVerification: Section<
      { readonly capability: string; readonly expected: OperationRequest; readonly now: string; readonly secret: string },
      Accepted
    >;
    readonly artifactOperation: Section<
      Parameters<typeof artifactOperationId>[0] & { readonly artifact: { readonly digest: Digest } },
      Accepted & { readonly operationID: string }
    >;
    readonly artifactCapability: Section<
      ArtifactRequest,
      Accepted & {
        readonly artifactID: string;
        readonly capability: string;
        readonly path: string;
        readonly requestDigest: string;
      }
    >;
    readonly artifactCapabilityVerification: Section<
      { readonly capability: string; readonly now: string; readonly presented: PresentedArtifact; readonly secret: string },
      Accepted
    >;
  };
}>('repository');

const isKnown = (operation: string): operation is Operation => Object.hasOwn(operationPaths, operation);

describe('golden capabilities of operations', () => {
  test.each(sections.publisherCapability.vectors)('$name has the digest of its request', ({ input, output }) => {
    expect(canonicalizeText(input.body)).toBe(output.canonicalBody);
    expect(operationRequestDigest(input.path, input.body)).toBe(output.requestDigest);
  });

  // Operations of a publication are not part of this version.
  const known = sections.publisherCapability.vectors.filter(({ input }) => isKnown(input.operation));
  test.each(known)('$name is signed to the byte', ({ input, output }) => {
    const requestDigest = operationRequestDigest(input.path, input.body);
    const { operation, metadata, secret } = input;
    expect(signOperation(secret, { operation, metadata, requestDigest }, Date.parse(input.issuedAt))).toBe(output.capability);
  });

  test.each(sections.publisherCapabilityVerification.vectors)('$name is verified as the reference does', ({ input, output }) => {
    const verify = () => verifyOperation(input.secret, input.capability, input.expected, Date.parse(input.now));
    if (output.accepted) expect(verify()).toMatchObject({ operation: input.expected.operation });
    else expect(verify).toThrow(CapabilityError);
  });
});

describe('golden capabilities of artifacts', () => {
  test.each(sections.artifactCapability.vectors)('$name is issued as the reference does', ({ input, output }) => {
    const issue = () => issueArtifactCapability('a'.repeat(32), input, Date.parse('2026-09-01T10:00:00Z'), 120_000);
    if (!output.accepted) {
      expect(issue).toThrow();
      return;
    }
    expect(issue()).toEqual({ capability: output.capability, requestDigest: output.requestDigest });
    expect(artifactRequestDigest(input)).toBe(output.requestDigest);
    expect(artifactPath(input.objectDigest)).toBe(output.path);
    expect(artifactId(input.objectDigest)).toBe(output.artifactID);
  });

  test.each(sections.artifactCapabilityVerification.vectors)('$name is verified as the reference does', ({ input, output }) => {
    const verify = () => verifyArtifactCapability(input.secret, input.capability, input.presented, Date.parse(input.now));
    if (output.accepted) expect(verify()).toMatchObject({ requestDigest: input.presented.requestDigest });
    else expect(verify).toThrow(CapabilityError);
  });

  // What is no transfer of the reference has no id there. Here nobody asks for one.
  const accepted = sections.artifactOperation.vectors.filter(({ output }) => output.accepted);
  test.each(accepted)('$name has the operation id of the reference', ({ input, output }) => {
    expect(artifactOperationId({ ...input, digest: input.artifact.digest })).toBe(output.operationID);
  });
});

const request: OperationRequest = {
  operation: 'workspace.resolve',
  metadata: { namespace: 'demo', operationId: 'op-1', taskId: 't' },
  requestDigest: `sha256:${'1'.repeat(64)}`,
};
const secret = 'k'.repeat(43);

test('a capability that was made for longer than five minutes is not signed', () => {
  expect(() => signOperation(secret, request, 0, 300_001)).toThrow(/valid for at most 300 s/);
});

test.each([
  ['of another namespace', { ...request, metadata: { ...request.metadata, namespace: 'other' } }],
  ['of another Task', { ...request, metadata: { ...request.metadata, taskId: 'other' } }],
  ['of another operation', { ...request, operation: 'workspace.prepare' as const }],
])('a capability does not pass for a request %s', (_, other) => {
  const capability = signOperation(secret, request, 1_000);
  expect(verifyOperation(secret, capability, request, 1_000)).toMatchObject(request);
  expect(() => verifyOperation(secret, capability, other, 1_000)).toThrow(/for another request/);
});

test('no single character of a capability can be changed', () => {
  const capability = signOperation(secret, request, 1_000);
  for (let at = 0; at < capability.length; at++) {
    const changed = `${capability.slice(0, at)}${capability[at] === 'A' ? 'B' : 'A'}${capability.slice(at + 1)}`;
    expect(() => verifyOperation(secret, changed, request, 1_000)).toThrow(CapabilityError);
  }
});

test('an error about a capability holds neither the secret nor the capability', () => {
  const capability = signOperation(secret, request, 1_000);
  const errors = [secret, 'x'.repeat(32)].map((key) => {
    try {
      return verifyOperation(key, capability, request, 99_000_000);
    } catch (error) {
      return String(error);
    }
  });
  for (const text of errors) {
    expect(text).not.toContain(secret);
    expect(text).not.toContain(capability);
  }
});
