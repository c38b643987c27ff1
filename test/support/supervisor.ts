import { chmodSync, copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createHarnessClient } from '../../src/harness/client.js';
import type { HarnessClient, PromptStream } from '../../src/harness/client.js';
import type { PromptEvent } from '../../src/harness/events.js';
import type { Fence } from '../../src/harness/fence.js';
import type { Limits, Status } from '../../src/harness/introspection.js';
import type { Operation } from '../../src/harness/metadata.js';
import type { Lease } from '../../src/harness/prompts.js';
import { sha256Hex } from '../../src/lib/sha256.js';
import { readConfig } from '../../src/supervisor/config.js';
import { createLog } from '../../src/supervisor/log.js';
import type { Provider } from '../../src/supervisor/provider.js';
import { usualTiming } from '../../src/supervisor/session.js';
import type { Timing } from '../../src/supervisor/session.js';
import { startSupervisor } from '../../src/supervisor/supervisor.js';
import type { StopGrace, Supervisor } from '../../src/supervisor/supervisor.js';
import { childReporter } from '../../src/supervisor/worker.js';
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
  /** A Task whose session exists. `misbehave`: what its agent does before a prompt, see `acp-agent.js`. */
  readonly session: (taskUID: string, misbehave?: string) => Promise<TaskOrders>;
  /** What the agent of a Task's session does before a prompt, see `acp-agent.js`. */
  readonly misbehave: (taskUID: string, plan: string) => void;
  /** User of the session that was made last. */
  readonly latestUid: () => number;
  /** User of the first. */
  readonly firstUid: number;
  readonly start: (task: TaskOrders, text: string, options?: StartOptions) => Promise<PromptStream>;
  /** Events of a prompt, to its end. */
  readonly run: (task: TaskOrders, text: string) => Promise<readonly PromptEvent[]>;
  readonly close: () => Promise<void>;
}

interface StartOptions {
  readonly leaseLife?: number;
  /** What the order is made of, where it is sent again. */
  readonly operation?: Operation;
  readonly lease?: Lease;
  readonly signal?: AbortSignal;
}

/** An address of this machine that no other test listens on. */
export const ownAddress = `127.0.${1 + (process.pid % 250)}.${1 + (Math.floor(process.pid / 250) % 250)}`;

let ranges = 0;

/** Users that no other supervisor on this machine gives at the same time: the kernel counts and we kill by user. */
export function freshUsers(): number {
  return 100_000 + (process.pid % 5_000) * 1_000 + 100 * ranges++;
}

export async function scriptedSupervisor(
  options: {
    readonly policy?: Policy;
    readonly env?: Record<string, string>;
    readonly timing?: Partial<Timing>;
    readonly stopGrace?: StopGrace;
    /** See {@link Provider.worker}. The agent has one if it misbehaves as `start:worker`. */
    readonly worker?: string;
  } = {},
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
  const firstUid = freshUsers();
  const config = readConfig(
    {
      ...made.env,
      ORKA_ACP_LISTEN_ADDRESS: '127.0.0.1:0',
      ORKA_ACP_POD_UID: 'pod-uid-1',
      ORKA_ACP_FIRST_SESSION_UID: String(firstUid),
      ORKA_ACP_LAST_SESSION_UID: String(firstUid + 99),
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
  /** By the name that a session's folder begins with. */
  const misbehaviours = new Map<string, string>();
  const provider: Provider = {
    command: [process.execPath, '--import', childReporter, agent],
    ...(options.worker === undefined ? {} : { worker: options.worker }),
    files: () => ({}),
    env: ({ home, proxyCredential }): Record<string, string> => {
      const found = [...misbehaviours].find(([name]) => home.includes(name));
      return found ? { TEST_AGENT: found[1], TEST_CREDENTIAL: proxyCredential } : {};
    },
    routes: {},
  };
  const supervisor = await startSupervisor(config, testCredentials, provider, {
    log,
    sameUser: !switchesUsers,
    timing: { ...usualTiming, ...options.timing },
    stopGrace: options.stopGrace ?? { prompts: 500, settlement: 500 },
  });
  const host = options.env?.['ORKA_ACP_LISTEN_ADDRESS']?.split(':')[0] ?? '127.0.0.1';
  const url = `http://${host}:${supervisor.port}`;
  const client = createHarnessClient({ baseUrl: url, credentials: testCredentials });

  const misbehave = (taskUID: string, plan: string) => {
    misbehaviours.set(sha256Hex(`${taskOrders(taskUID, made).sessionUID}:1`), plan);
  };

  const start = (
    task: TaskOrders,
    text: string,
    { leaseLife, operation, lease = task.lease(1, leaseLife), signal }: StartOptions = {},
  ) => {
    const life = Math.min(30_000, leaseLife ?? 30_000) - 1000;
    const order = {
      runtimeSessionID: task.runtimeSessionID,
      lease,
      mcpAuthorization: task.authorization(lease),
      input: { content: [{ type: 'text', text }] as const },
      limits: config.limits,
    };
    const prompted = operation ?? task.operation('start-prompt', config.fence, { prompt: true, life });
    return client.prompt(prompted, order, signal ? { signal } : {});
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
    misbehave,
    session: async (taskUID, plan) => {
      const task = taskOrders(taskUID, made);
      if (plan !== undefined) misbehave(taskUID, plan);
      await client.createSession(task.operation('create-session', config.fence), task.session);
      return task;
    },
    firstUid,
    latestUid: () => {
      const record = readFileSync(path.join(baseDir, '.orka-session-identity-high-water'), 'utf8');
      return firstUid + (JSON.parse(record) as { allocated: number }).allocated - 1;
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
