import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { issueArtifactCapability } from '../../src/source/artifact-capability.js';
import { artifactPath } from '../../src/source/protocol.js';
import { bareRepository, commitTree, credentialOf, readToken, testForge } from '../support/forge.js';
import type { TestForge } from '../support/forge.js';
import { limit } from '../support/pace.js';
import { TestPublisher, usualCall } from '../support/publisher.js';
import { prepareRequest, readCredential, resolveRequest, testSource } from '../support/source-git.js';
import type { TestSource } from '../support/source-git.js';

let forge: TestForge;
let source: TestSource;
let publisher: TestPublisher;
beforeEach(async () => {
  forge = await testForge();
  source = testSource(forge);
  publisher = await TestPublisher.create({ git: source.git });
}, limit(30_000));
afterEach(async () => {
  await publisher.remove();
  await source.close();
  await forge.close();
});

const credentialRef = { name: 'token', kind: 'http-extra-header', role: 'SourceRead' } as const;

test(
  'a private repository of a forge comes out as the artifact that its answer names, and its token stays nowhere',
  async () => {
    const baseline = commitTree(bareRepository(forge.root, 'acme/app.git'), [{ path: 'README.md', content: 'hello\n' }]);
    const { client } = publisher;
    const resolved = await client.resolve({ ...resolveRequest(forge, 'acme/app'), credentialRef }, readCredential, usualCall());
    expect(resolved).toMatchObject({ sourceRef: 'refs/heads/main', baselineOid: baseline });
    const wanted = prepareRequest(forge, 'acme/app', resolved.baselineOid, resolved.sourceRef);
    const request = { ...wanted, metadata: { ...wanted.metadata, operationId: 'workspace-prepare-1' }, credentialRef };
    const { artifact, entryCount } = await client.prepare(request, readCredential, usualCall());
    expect(entryCount).toBe(1);
    const { capability, requestDigest } = issueArtifactCapability(
      publisher.artifactSecret,
      {
        operation: 'download',
        objectDigest: artifact.digest,
        identity: { namespace: 'demo', taskID: 't' },
        contentLength: artifact.sizeBytes,
        mediaType: artifact.mediaType,
        operationID: 'runtime-workspace-download-1',
      },
      Date.now(),
    );
    const { status, body } = await publisher.artifact(artifactPath(artifact.digest), {
      'x-orka-artifact-capability': capability,
      'x-orka-artifact-request-digest': requestDigest,
      'x-orka-artifact-content-length': artifact.sizeBytes,
      'x-orka-artifact-media-type': artifact.mediaType,
    });
    expect([status, `sha256:${createHash('sha256').update(body).digest('hex')}`]).toEqual([200, artifact.digest]);
    expect(body.includes('hello\n')).toBe(true);
    const files = (await readdir(publisher.folder, { recursive: true, withFileTypes: true })).filter((file) => file.isFile());
    const texts = await Promise.all(files.map((file) => readFile(path.join(file.parentPath, file.name), 'utf8')));
    const encoded = readCredential.split(' ').at(-1) ?? '';
    for (const text of [...texts, ...publisher.lines])
      for (const secret of [readToken, encoded]) expect(text).not.toContain(secret);
    expect(await readdir(source.tempRoot)).toEqual([]);
  },
  limit(60_000),
);

test(
  'a wrong token is a refusal that is not tried again',
  async () => {
    commitTree(bareRepository(forge.root, 'acme/app.git'), [{ path: 'README.md', content: 'hello\n' }]);
    const call = publisher.client.resolve(
      { ...resolveRequest(forge, 'acme/app'), credentialRef },
      credentialOf('wrong'),
      usualCall(),
    );
    await expect(call).rejects.toMatchObject({ code: 'credential_refused', retryable: false, status: 422 });
  },
  limit(60_000),
);
