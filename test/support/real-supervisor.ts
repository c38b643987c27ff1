import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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
import type { Runtime, RuntimeOptions } from './harness-orders.js';
import { startModelFixture } from './model-fixture.js';
import type { ModelFixture } from './model-fixture.js';
import { limit } from './pace.js';
import { freshUsers, ownAddress } from './supervisor.js';

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
  /** User of its first session. */
  readonly firstUid: number;
  readonly close: () => Promise<void>;
}

const main = new URL('../../lib/supervisor/main.js', import.meta.url).pathname;
const codexConfig = new URL('../../images/acp-codex/codex.toml', import.meta.url).pathname;
/** The rights of the container in a Pod, no more. */
const podRights = ['--bounding-set=-all,+chown,+kill,+setgid,+setuid', '--inh-caps=-all', '--no-new-privs', '--'];

/** Arguments that tell the supervisor where Codex is; `modules`: where every user can read it. */
export function codexAgent(modules: string): readonly string[] {
  return ['--codex-modules', modules, '--codex-config', codexConfig, '--node', process.execPath];
}

/** Modules in which the scripted agent stands where Codex' adapter is expected. */
export function scriptedModules(folder: string): string {
  const adapter = path.join(folder, 'node_modules/@agentclientprotocol/codex-acp');
  mkdirSync(path.join(adapter, 'dist'), { recursive: true });
  writeFileSync(path.join(adapter, 'package.json'), '{"type":"module"}');
  copyFileSync(new URL('acp-agent.js', import.meta.url), path.join(adapter, 'dist/index.js'));
  chmodSync(path.join(adapter, 'dist/index.js'), 0o644);
  return path.join(folder, 'node_modules');
}

export interface RealSupervisorOptions extends RuntimeOptions {
  /** Where its sessions are, beyond its own life. @default - a new folder */
  readonly sessions?: string;
  /** Beside what every supervisor gets. */
  readonly env?: Readonly<Record<string, string>>;
  /** @default - a free one */
  readonly port?: number;
  /** First of a hundred users. @default - ones that nobody else gives */
  readonly firstUid?: number;
}

/** `agent`: arguments that tell where the agent is. Needs root, as users are switched. */
export async function startRealSupervisor(
  agent: readonly string[],
  options: RealSupervisorOptions = {},
): Promise<RealSupervisor> {
  const adapterDigests = { adapter: `sha256:${'a'.repeat(64)}` };
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
  const firstUid = options.firstUid ?? freshUsers();
  const fixture = await startModelFixture(delivery.credentials.providerToken);
  const port = options.port ?? (await freePort());
  const process_ = spawn(
    '/usr/bin/setpriv',
    [...podRights, ...[process.execPath, main, '--adapter-digests', digests, ...agent]],
    {
      env: {
        ...made.env,
        ORKA_ACP_LISTEN_ADDRESS: `${ownAddress}:${port}`,
        ORKA_ACP_POD_UID: 'pod-uid-1',
        ORKA_ACP_FIRST_SESSION_UID: String(firstUid),
        ORKA_ACP_LAST_SESSION_UID: String(firstUid + 99),
        ORKA_ACP_CONTROLLER_EPOCH: '3',
        ORKA_ACP_RUNTIME_POOL_UID: 'pool-uid-1',
        ORKA_ACP_RUNTIME_POOL_GENERATION: '2',
        ORKA_ACP_PROVIDER_PROXY_BASE_URL: fixture.url,
        ORKA_ACP_SESSION_BASE_DIR: options.sessions ?? mkdtempSync(path.join(folder, 'sessions-')),
        ORKA_ACP_CREDENTIAL_BOOTSTRAP_NONCE: delivery.nonce,
        ORKA_ACP_CREDENTIAL_BOOTSTRAP_PUBLIC_KEY: bootstrapPublicKey(delivery.signingSeed),
        ...options.env,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let logged = '';
  process_.stderr.on('data', (part: Buffer) => (logged += part.toString()));
  const client = createHarnessClient({ baseUrl: `http://${ownAddress}:${port}`, credentials: delivery.credentials });

  async function close(): Promise<void> {
    client.close();
    const ended = process_.exitCode !== null || process_.signalCode !== null;
    const exit = ended ? undefined : new Promise((resolve) => process_.once('exit', resolve));
    process_.kill('SIGTERM');
    await Promise.race([exit, sleep(limit(10_000), undefined, { ref: false })]);
    process_.kill('SIGKILL');
    await fixture.close();
    rmSync(folder, { recursive: true, force: true });
  }

  try {
    await eventuallyAnswers(() => client.health());
  } catch (cause) {
    await close();
    throw new Error(`the supervisor does not answer; was it built? ${logged}`, { cause });
  }
  return {
    process: process_,
    client,
    fixture,
    runtime: made,
    delivery,
    log: () => logged,
    folder,
    firstUid,
    close,
  };
}

/** It stays free, since nobody else listens on this address, or connects from it. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, ownAddress, () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => {
        resolve(port);
      });
    });
  });
}
