import { chmodSync, copyFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createHarnessClient } from '../../src/harness/client.js';
import type { HarnessClient, PromptStream } from '../../src/harness/client.js';
import type { PromptEvent } from '../../src/harness/events.js';
import type { Fence } from '../../src/harness/fence.js';
import type { Limits, Status } from '../../src/harness/introspection.js';
import { readConfig } from '../../src/supervisor/config.js';
import { createLog } from '../../src/supervisor/log.js';
import { startSupervisor } from '../../src/supervisor/supervisor.js';
import type { Supervisor } from '../../src/supervisor/supervisor.js';
import { collect, runtime, taskOrders } from './harness-orders.js';
import type { Policy, Runtime, TaskOrders } from './harness-orders.js';

export const testCredentials = {
  controllerToken: 'c'.repeat(43),
  capabilitySecret: 'k'.repeat(43),
  providerToken: 'upstream-token-1f6f2b',
};

/** Sessions get users of their own where the tests may switch users. */
export const switchesUsers = process.getuid?.() === 0;

/** A supervisor in this process with a scripted agent, see `acp-agent.js`. */
export interface ScriptedSupervisor {
  readonly url: string;
  readonly client: HarnessClient;
  readonly supervisor: Supervisor;
  readonly runtime: Runtime;
  readonly fence: Fence;
  readonly limits: Limits;
  readonly log: () => string;
  readonly status: () => Promise<Status>;
  /** Names of the session folders that are there. */
  readonly folders: () => readonly string[];
  readonly baseDir: string;
  /** A Task whose session exists. */
  readonly session: (taskUID: string) => Promise<TaskOrders>;
  readonly start: (task: TaskOrders, text: string, options?: StartOptions) => Promise<PromptStream>;
  /** Events of a prompt, to its end. */
  readonly run: (task: TaskOrders, text: string) => Promise<readonly PromptEvent[]>;
  readonly close: () => Promise<void>;
}

interface StartOptions {
  readonly leaseLife?: number;
}

export async function scriptedSupervisor(
  options: { readonly policy?: Policy; readonly env?: Record<string, string> } = {},
): Promise<ScriptedSupervisor> {
  const folder = mkdtempSync(path.join(tmpdir(), 'supervisor-'));
  chmodSync(folder, 0o755);
  const agent = path.join(folder, 'agent.mjs');
  copyFileSync(new URL('acp-agent.js', import.meta.url), agent);
  chmodSync(agent, 0o644);
  const baseDir = mkdtempSync(path.join(folder, 'sessions-'));
  const adapterDigests = { scripted: `sha256:${'a'.repeat(64)}` };
  const digests = path.join(folder, 'adapter-digests.json');
  writeFileSync(digests, JSON.stringify(adapterDigests));
  const made = runtime(adapterDigests, options.policy ? { policy: options.policy } : {});
  const config = readConfig(
    {
      ...made.env,
      ORKA_ACP_LISTEN_ADDRESS: '127.0.0.1:0',
      ORKA_ACP_POD_UID: 'pod-uid-1',
      ORKA_ACP_FIRST_SESSION_UID: '20000',
      ORKA_ACP_CONTROLLER_EPOCH: '3',
      ORKA_ACP_RUNTIME_POOL_UID: 'pool-uid-1',
      ORKA_ACP_RUNTIME_POOL_GENERATION: '2',
      ORKA_ACP_PROVIDER_PROXY_BASE_URL: 'http://127.0.0.1:1',
      ORKA_ACP_SESSION_BASE_DIR: baseDir,
      ...options.env,
    },
    digests,
  );
  let logged = '';
  const log = createLog((line) => (logged += line));
  const provider = { command: [process.execPath, agent], files: () => ({}), env: () => ({}), routes: {} } as const;
  const supervisor = await startSupervisor(config, testCredentials, provider, { log, sameUser: !switchesUsers, stopGrace: 1000 });
  const url = `http://127.0.0.1:${supervisor.port}`;
  const client = createHarnessClient({ baseUrl: url, credentials: testCredentials });

  const start = (task: TaskOrders, text: string, { leaseLife }: StartOptions = {}) => {
    const lease = task.lease(1, leaseLife);
    const life = Math.min(30_000, leaseLife ?? 30_000) - 1000;
    return client.prompt(task.operation('start-prompt', config.fence, { prompt: true, life }), {
      runtimeSessionID: task.runtimeSessionID,
      lease,
      mcpAuthorization: task.authorization(lease),
      input: { content: [{ type: 'text', text }] },
      limits: config.limits,
    });
  };

  return {
    url,
    client,
    supervisor,
    runtime: made,
    fence: config.fence,
    limits: config.limits,
    log: () => logged,
    status: () =>
      client.status({ runtimeProfileDigest: config.profileDigest, runtimeInstanceID: config.fence.runtimeInstanceID }),
    folders: () => readdirSync(baseDir).filter((name) => name.startsWith('session-')),
    baseDir,
    session: async (taskUID) => {
      const task = taskOrders(taskUID, made);
      await client.createSession(task.operation('create-session', config.fence), task.session);
      return task;
    },
    start,
    run: async (task, text) => collect(await start(task, text)),
    close: async () => {
      client.close();
      await supervisor.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
