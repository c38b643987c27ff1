import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { bootstrapPublicKey } from '../../src/harness/bootstrap.js';
import { createHarnessClient } from '../../src/harness/client.js';
import type { HarnessClient } from '../../src/harness/client.js';
import { eventuallyAnswers } from './eventually.js';
import { runtime } from './harness-orders.js';
import type { Policy, Runtime } from './harness-orders.js';
import { startModelFixture } from './model-fixture.js';
import type { ModelFixture } from './model-fixture.js';

/** The built supervisor as a process of its own, as it runs in a Pod, before its credentials have come. */
export interface RealSupervisor {
  readonly process: ChildProcess;
  readonly client: HarnessClient;
  readonly fixture: ModelFixture;
  readonly runtime: Runtime;
  /** What it is to be seeded with. */
  readonly delivery: {
    readonly signingSeed: string;
    readonly nonce: string;
    readonly credentials: { readonly controllerToken: string; readonly capabilitySecret: string; readonly providerToken: string };
  };
  readonly log: () => string;
  /** Everything that it writes lies below. */
  readonly folder: string;
  readonly close: () => Promise<void>;
}

const main = new URL('../../lib/supervisor/main.js', import.meta.url).pathname;
const codexConfig = new URL('../../images/acp-codex/codex.toml', import.meta.url).pathname;
/** The rights of the container in a Pod, no more. */
const podRights = ['--bounding-set=-all,+chown,+kill,+setgid,+setuid', '--inh-caps=-all', '--no-new-privs', '--'];

/** `modules`: where every user can read Codex. Needs root, as users are switched. */
export async function startRealSupervisor(
  modules: string,
  options: { readonly policy?: Policy; readonly maxTurns?: number; readonly systemPrompt?: string } = {},
): Promise<RealSupervisor> {
  const adapterDigests = { 'codex-acp': `sha256:${'a'.repeat(64)}` };
  const made = runtime(adapterDigests, options);
  const delivery = {
    signingSeed: 's'.repeat(43),
    nonce: 'bm9uY2Utbm9uY2U',
    credentials: { controllerToken: 'c'.repeat(43), capabilitySecret: 'k'.repeat(43), providerToken: 'upstream-token-1f6f2b' },
  };
  const folder = mkdtempSync(path.join(tmpdir(), 'supervisor-'));
  chmodSync(folder, 0o755);
  const digests = path.join(folder, 'adapter-digests.json');
  writeFileSync(digests, JSON.stringify(adapterDigests));
  const fixture = await startModelFixture(delivery.credentials.providerToken);
  const port = await freePort();
  const process_ = spawn(
    '/usr/bin/setpriv',
    [
      ...podRights,
      ...[process.execPath, main, '--adapter-digests', digests, '--codex-modules', modules],
      ...['--codex-config', codexConfig, '--node', process.execPath],
    ],
    {
      env: {
        ...made.env,
        ORKA_ACP_LISTEN_ADDRESS: `127.0.0.1:${port}`,
        ORKA_ACP_POD_UID: 'pod-uid-1',
        ORKA_ACP_FIRST_SESSION_UID: '20000',
        ORKA_ACP_CONTROLLER_EPOCH: '3',
        ORKA_ACP_RUNTIME_POOL_UID: 'pool-uid-1',
        ORKA_ACP_RUNTIME_POOL_GENERATION: '2',
        ORKA_ACP_PROVIDER_PROXY_BASE_URL: fixture.url,
        ORKA_ACP_SESSION_BASE_DIR: mkdtempSync(path.join(folder, 'sessions-')),
        ORKA_ACP_CREDENTIAL_BOOTSTRAP_NONCE: delivery.nonce,
        ORKA_ACP_CREDENTIAL_BOOTSTRAP_PUBLIC_KEY: bootstrapPublicKey(delivery.signingSeed),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let logged = '';
  process_.stderr.on('data', (part: Buffer) => (logged += part.toString()));
  const client = createHarnessClient({ baseUrl: `http://127.0.0.1:${port}`, credentials: delivery.credentials });
  await eventuallyAnswers(() => client.health());
  return {
    process: process_,
    client,
    fixture,
    runtime: made,
    delivery,
    log: () => logged,
    folder,
    close: async () => {
      client.close();
      const ended = process_.exitCode !== null || process_.signalCode !== null;
      const exit = ended ? undefined : new Promise((resolve) => process_.once('exit', resolve));
      process_.kill('SIGTERM');
      await Promise.race([exit, sleep(10_000, undefined, { ref: false })]);
      process_.kill('SIGKILL');
      await fixture.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => {
        resolve(port);
      });
    });
  });
}
