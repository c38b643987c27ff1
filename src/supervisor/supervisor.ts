import { chmodSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Credentials } from '../harness/bootstrap.js';
import { createAuthority } from './authority.js';
import { closeServer } from '../lib/close-server.js';
import { startListening } from './bootstrap.js';
import type { SupervisorConfig } from './config.js';
import { openIdentities } from './identities.js';
import { createInstance } from './instance.js';
import type { Log } from './log.js';
import type { Provider } from './provider.js';
import { startProviderProxy } from './provider-proxy.js';
import { createSupervisorServer } from './server.js';
import { protectSharedFolders, removeLeftSessions } from './session-folder.js';
import { usualTiming } from './session.js';
import type { Timing } from './session.js';

export interface Supervisor {
  /** Port that it listens on. */
  readonly port: number;
  /** Drains, lets prompts end and their deltas be taken, ends every session; `true` = proven that nothing is left. */
  readonly stop: (reason?: string) => Promise<boolean>;
}

export interface SupervisorOptions {
  readonly log: Log;
  /** Agents keep the supervisor's user. Only for tests. @default false */
  readonly sameUser?: boolean;
  /** @default {@link usualTiming} */
  readonly timing?: Timing;
  /** @default {@link usualStopGrace} */
  readonly stopGrace?: StopGrace;
}

/** Milliseconds that sessions get when the supervisor stops. */
export interface StopGrace {
  /** For running prompts to end by themselves. */
  readonly prompts: number;
  /** After that, for prompts to be ended and for deltas to be taken. */
  readonly settlement: number;
}

/** Both fit into the grace period of the Pod, which is 120 s. */
const usualStopGrace: StopGrace = { prompts: 90_000, settlement: 15_000 };
/** Milliseconds for the last answers. */
const closeGrace = 2_000;
const lookEvery = 50;

/** Starts to serve. The provider token goes to the proxy and nowhere else. Throws if the session folder is not usable. */
export async function startSupervisor(
  config: SupervisorConfig,
  credentials: Credentials,
  provider: Provider,
  { log, sameUser = false, timing = usualTiming, stopGrace = usualStopGrace }: SupervisorOptions,
): Promise<Supervisor> {
  const identities = openIdentities(config.sessionBaseDir, config.identities);
  // Sessions pass through to their own folder; they cannot see each other's names.
  chmodSync(config.sessionBaseDir, 0o711);
  if (!sameUser) protectSharedFolders();
  await removeLeftSessions(config.sessionBaseDir);
  const proxy = await startProviderProxy(config.upstream, credentials.providerToken, provider.routes);
  const instance = createInstance({ config, provider, proxy, identities, sameUser, timing }, log);
  const { controllerToken, capabilitySecret } = credentials;
  const server = createSupervisorServer(instance, createAuthority({ controllerToken, capabilitySecret }, config));
  await startListening(server, config.listen);
  log.info('serving', { instance: config.fence.runtimeInstanceID, profile: config.profileDigest });
  let stopped: Promise<boolean> | undefined;

  async function stop(reason: string): Promise<boolean> {
    instance.drain(reason);
    // Requests about a session that still settles come over new connections: the server listens until then.
    if (!(await settledWithin(stopGrace.prompts))) {
      const seconds = Math.round(stopGrace.prompts / 1000);
      instance.failPrompts('process_shutdown', `its Pod was told to end, and the prompt did not end within ${seconds} s`);
      await settledWithin(stopGrace.settlement);
    }
    await closeServer(server, closeGrace);
    const clean = await instance.close();
    await proxy.close();
    identities.close();
    return clean;
  }

  async function settledWithin(grace: number): Promise<boolean> {
    const end = performance.now() + grace;
    while (instance.isSettling()) {
      if (performance.now() >= end) return false;
      await sleep(lookEvery);
    }
    return true;
  }

  return {
    port: (server.address() as AddressInfo).port,
    stop: (reason = 'process_shutdown') => (stopped ??= stop(reason)),
  };
}
