/** The largest trees that may become a workspace cost the supervisor little memory, and are read in time. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { sessionWait } from '../../src/controller/task/attempt.js';
import type { Digest } from '../../src/lib/sha256.js';
import { archiveLimits } from '../../src/source/archive-rules.js';
import { workspaceMediaType } from '../../src/source/protocol.js';
import { downloadArtifact } from '../../src/supervisor/artifact-download.js';
import { madeWithin, removedWithin } from '../../src/supervisor/local-git.js';
import { compareAs, extractAs } from '../../src/supervisor/session-user.js';
import { extractWithin } from '../../src/supervisor/workspace.js';
import { archive, digestOfArchive, tree } from '../support/archive.js';
import { limit } from '../support/pace.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(fastFolder(), 'large-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

/** Memory, where the machine has enough of it: a disk takes longest for making and removing files, which is not what is tested. */
function fastFolder(): string {
  const memory = '/dev/shm';
  const free = existsSync(memory) ? statfsSync(memory) : { bavail: 0, bsize: 0 };
  return free.bavail * free.bsize > 2 ** 30 ? memory : tmpdir();
}

/** In a process of its own: the archive is not in the memory that is measured. */
const server = `
const [file, digest, type] = process.argv.slice(1);
const { createReadStream, statSync } = require('node:fs');
require('node:http').createServer((_, response) => {
  response.writeHead(200, { 'content-length': statSync(file).size, 'content-type': type, 'x-orka-artifact-digest': digest });
  createReadStream(file).pipe(response);
}).listen(0, '127.0.0.1', function () { process.stdout.write(String(this.address().port)); });
`;

/** Fills a folder and reads it twice. Returns by how many bytes the memory of this process grew at most. */
async function growth(file: string, digest: Digest, name: string): Promise<number> {
  const folder = path.join(root, name);
  mkdirSync(folder);
  const child = spawn(process.execPath, ['-e', server, file, digest, workspaceMediaType], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  const artifact = { digest, sizeBytes: statSync(file).size, mediaType: workspaceMediaType };
  const authorization = { capability: 'x', requestDigest: digest };
  const url = new URL(`http://127.0.0.1:${port.toString()}`);
  const start = process.memoryUsage().rss;
  let most = start;
  const timer = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 5);
  try {
    const feed: Parameters<typeof extractAs>[2] = (target, signal) =>
      downloadArtifact(url, artifact, authorization, target, signal);
    const record = path.join(root, `${name}-record`);
    const written = openSync(record, 'wx');
    await extractAs(undefined, { folder }, feed, limit(extractWithin), written);
    closeSync(written);
    const read = openSync(record, 'r');
    const order = { folder, maxEntries: archiveLimits.entries, mostPaths: 20 };
    expect(await compareAs(undefined, order, read, limit(20_000))).toMatchObject({ entries: 0, deleted: 0 });
    closeSync(read);
    return most - start;
  } finally {
    clearInterval(timer);
    child.kill();
  }
}

function written(name: string, bytes: Buffer): readonly [string, Digest] {
  const file = path.join(root, `${name}.tar`);
  writeFileSync(file, bytes);
  return [file, digestOfArchive(bytes)];
}

test('what a workspace may take leaves its agent 15 seconds of those that a controller waits for a session', () => {
  expect(extractWithin + madeWithin + removedWithin + 15_000).toBeLessThanOrEqual(sessionWait);
});

const block = Buffer.alloc(512, 'x');

test.each([
  [
    '96 files of 1 MiB',
    () => archive(Array.from({ length: 96 }, (_, i) => ({ path: `f${i}`, content: Buffer.alloc(2 ** 20, i) }))),
  ],
  [
    '100,000 entries, as many bytes as an archive may have',
    () => tree(Array.from({ length: 99_000 }, (_, i) => ({ path: `folder-${i % 1000}/file-${i}.txt`, content: block }))),
  ],
])(
  'a tree of %s costs the supervisor less than 32 MiB',
  async (_, build) => {
    await growth(...written('small', tree([{ path: 'a/b', content: 'x' }])), 'small');
    const large = written('large', build());
    expect(await growth(...large, 'large')).toBeLessThan(32 * 2 ** 20);
  },
  limit(60_000),
);
