import { expect, test } from '@jest/globals';
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Digest } from '../../src/lib/sha256.js';
import { issueArtifactCapability } from '../../src/source/artifact-capability.js';
import { artifactPath } from '../../src/source/protocol.js';
import { workspaceMediaType } from '../../src/source/protocol.js';
import { limit } from '../support/pace.js';

const secret = 'a'.repeat(43);
const mebibyte = 1024 * 1024;

/** The most memory that a process had which stored an artifact of so many bytes and served it twice. */
async function highestFor(sizeBytes: number): Promise<number> {
  const folder = await mkdtemp(path.join(tmpdir(), 'orka-memory-'));
  const child = fork('test/bench/artifact-process.js', [folder, String(sizeBytes), secret], { execArgv: [] });
  try {
    const [{ digest, port }] = (await once(child, 'message')) as [{ readonly digest: Digest; readonly port: number }];
    for (const operationID of ['first', 'second']) {
      const identity = { namespace: 'demo', taskID: 't' };
      const { capability, requestDigest } = issueArtifactCapability(
        secret,
        {
          operation: 'download',
          objectDigest: digest,
          identity,
          contentLength: sizeBytes,
          mediaType: workspaceMediaType,
          operationID,
        },
        Date.now(),
      );
      const headers = {
        'x-orka-artifact-capability': capability,
        'x-orka-artifact-request-digest': requestDigest,
        'x-orka-artifact-content-length': sizeBytes,
        'x-orka-artifact-media-type': workspaceMediaType,
      };
      const outgoing = get({ host: '127.0.0.1', port, path: artifactPath(digest), headers, agent: false });
      const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
      expect(answer.statusCode).toBe(200);
      const hash = createHash('sha256');
      for await (const part of answer as AsyncIterable<Buffer>) hash.update(part);
      expect(`sha256:${hash.digest('hex')}`).toBe(digest);
    }
    child.send('report');
    const [{ highest }] = (await once(child, 'message')) as [{ readonly highest: number }];
    return highest;
  } finally {
    child.kill();
    await rm(folder, { recursive: true });
  }
}

test(
  'an artifact of 96 MiB costs less than 32 MiB more than a small one',
  async () => {
    const small = await highestFor(mebibyte);
    const large = await highestFor(96 * mebibyte);
    expect(large - small).toBeLessThan(32 * mebibyte);
  },
  limit(60_000),
);
