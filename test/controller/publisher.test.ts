import { expect, test } from '@jest/globals';
import { Publisher } from '../../src/controller/publisher.js';
import type { PublisherAccess } from '../../src/controller/publisher-keys.js';
import { verifyArtifactCapability } from '../../src/source/artifact-capability.js';
import { artifactPath } from '../../src/source/protocol.js';
import { workspaceMediaType } from '../../src/source/protocol.js';
import { authority } from '../support/certificates.js';

const { cert } = authority('test').issue('publisher');
const secret = (letter: string) => letter.repeat(43);
/** Nobody listens there. */
const access: PublisherAccess = {
  url: 'https://127.0.0.1:1',
  ca: cert,
  controllerToken: secret('a'),
  capabilitySecret: secret('b'),
  artifactSecret: secret('c'),
};
const digest = `sha256:${'d'.repeat(64)}` as const;
const request = {
  metadata: { namespace: 'team-a', operationId: 'workspace-resolve-1', taskId: 'uid-1' },
  source: { provider: 'github', id: 'git.example/a', url: 'https://git.example/a' },
  sourceRef: '',
};
const call = () => ({ signal: new AbortController().signal, timeout: 5_000 });

test('a publisher that cannot be reached has its keys read again', async () => {
  let forgotten = 0;
  const publisher = new Publisher({
    access: () => Promise.resolve({ ...access }),
    forget: () => {
      forgotten += 1;
    },
  });
  await expect(publisher.resolve(request, undefined, call())).rejects.toMatchObject({ code: 'unreachable', retryable: true });
  expect(forgotten).toBe(1);
  publisher.close();
});

test('keys that cannot be read are a failure that may pass', async () => {
  const access_ = () => Promise.reject(new Error('forbidden'));
  const publisher = new Publisher({ access: access_, forget: () => undefined });
  await expect(publisher.resolve(request, undefined, call())).rejects.toMatchObject({ code: 'unreachable', retryable: true });
});

test('a download is permitted with the secret for artifacts', async () => {
  const publisher = new Publisher({ access: () => Promise.resolve(access), forget: () => undefined });
  const download = {
    operation: 'download',
    objectDigest: digest,
    identity: { namespace: 'team-a', taskID: 'uid-1' },
    contentLength: 2048,
    mediaType: workspaceMediaType,
    operationID: 'runtime-workspace-download-1-a1-g1',
  } as const;
  const now = Date.UTC(2030, 0, 1);
  const { capability, requestDigest } = await publisher.authorize(download, now);
  const presented = {
    method: 'GET',
    path: artifactPath(digest),
    objectDigest: digest,
    contentLength: 2048,
    mediaType: workspaceMediaType,
    requestDigest,
  };
  expect(verifyArtifactCapability(access.artifactSecret, capability, presented, now + 1_000).request).toEqual(download);
  expect(() => verifyArtifactCapability(access.capabilitySecret, capability, presented, now + 1_000)).toThrow();
});
