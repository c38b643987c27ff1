import { chmodSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import type { Credentials } from '../harness/bootstrap.js';
import { createAuthority } from './authority.js';
import { closeServer, startListening } from './bootstrap.js';
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
  /** Drains, answers what is under way, ends every session; `true` = proven that nothing is left. */
  readonly stop: (reason?: string) => Promise<boolean>;
}

export interface SupervisorOptions {
  readonly log: Log;
  /** Agents keep the supervisor's user. Only for tests. @default false */
  readonly sameUser?: boolean;
  /** @default {@link usualTiming} */
  readonly timing?: Timing;
  /** Milliseconds that running requests get when it stops. @default 45000 */
  readonly stopGrace?: number;
}

/** Starts to serve. The provider token goes to the proxy and nowhere else. Throws if the session folder is not usable. */
export async function startSupervisor(
  config: SupervisorConfig,
  credentials: Credentials,
  provider: Provider,
  { log, sameUser = false, timing = usualTiming, stopGrace = 45_000 }: SupervisorOptions,
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
    await closeServer(server, stopGrace);
    const clean = await instance.close();
    await proxy.close();
    identities.close();
    return clean;
  }

  return {
    port: (server.address() as AddressInfo).port,
    stop: (reason = 'process_shutdown') => (stopped ??= stop(reason)),
  };
}
