/** The process inside a sandbox: hardens itself, waits for its credentials, serves until it is told to end. Source: dispatch.md §6.1. */
import { awaitCredentials, bootstrapPhase } from './bootstrap.js';
import { readConfig, readListenAddress } from './config.js';
import { takeCredentials } from './credentials.js';
import { harden } from './hardening.js';
import { createLog } from './log.js';
import { readOptions } from './options.js';
import { startSupervisor } from './supervisor.js';

const log = createLog();
const stop = new AbortController();

async function main(): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      stop.abort(signal);
    });
  }
  harden();
  const options = readOptions(process.argv.slice(2));
  const phase = bootstrapPhase(process.env);
  // What is wrong with the settings shows before anybody sends a credential.
  const config = readConfig(process.env, options.adapterDigests);
  const planned = process.env['ORKA_ACP_RUNTIME_PROFILE_DIGEST'];
  if (planned !== undefined && planned !== config.profileDigest)
    log.error('this image makes another profile than was planned', 'the controller will not use it', {
      planned,
      found: config.profileDigest,
    });
  const provider = options.provider(config.profile.providerKind);
  if (phase) log.info('awaiting credentials');
  const credentials = phase
    ? await awaitCredentials(phase, readListenAddress(process.env), stop.signal)
    : takeCredentials(process.env);
  const supervisor = await startSupervisor(config, credentials, provider, { log, sameUser: options.sameUser });
  await new Promise<void>((resolve) => {
    if (stop.signal.aborted) resolve();
    stop.signal.addEventListener('abort', () => {
      resolve();
    });
  });
  const clean = await supervisor.stop();
  log.info('stopped', { clean });
  process.exit(clean ? 0 : 1);
}

main().catch((error: unknown) => {
  if (stop.signal.aborted) {
    log.info('stopped before it served');
    process.exit(0);
  }
  log.error('not started', error);
  process.exit(1);
});
