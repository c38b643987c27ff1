// A publisher's artifact store and port in a process of their own, from lib/: what they cost in memory is not seen beside a test runner.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { createArtifactServer } from '../../lib/publisher/artifact-server.js';
import { ArtifactStore } from '../../lib/publisher/artifact-store.js';
import { DownloadLedger } from '../../lib/publisher/download-ledger.js';

const [folder = '', bytes = '0', artifactSecret = ''] = process.argv.slice(2);
const store = await ArtifactStore.open(`${folder}/artifacts`);
const ledger = await DownloadLedger.open(`${folder}/downloads`);

/** Writes an archive as git's side does: in parts. */
async function make(sizeBytes) {
  const reservation = await store.reserve();
  const hash = createHash('sha256');
  const file = createWriteStream(reservation.target, { flags: 'wx' });
  const part = Buffer.alloc(64 * 1024);
  for (let at = 0; at < sizeBytes; at += part.length) {
    part.writeUInt32LE(at % 2 ** 32);
    const piece = part.subarray(0, Math.min(part.length, sizeBytes - at));
    hash.update(piece);
    if (!file.write(Buffer.from(piece))) await once(file, 'drain');
  }
  file.end();
  await once(file, 'finish');
  const digest = `sha256:${hash.digest('hex')}`;
  await reservation.admit({ digest, sizeBytes });
  await reservation.release();
  return digest;
}

const highest = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1024;

const nothing = () => undefined;
const server = createArtifactServer({
  keys: { current: { artifactSecret } },
  store,
  ledger,
  metrics: { download: nothing },
  log: { info: nothing, error: nothing },
  clock: Date.now,
});
server.listen(0, '127.0.0.1', async () => {
  const digest = await make(Number(bytes));
  process.send({ digest, port: server.address().port });
});
process.on('message', () => process.send({ highest: highest() }));
