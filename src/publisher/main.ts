/** The one process that runs git against forges. Reads its settings, serves, and ends within thirty seconds of a signal. Source: repository.md §3. */
import path from 'node:path';
import { readConfig } from './config.js';
import { createSourceGit, defaultArchiveLimits } from './git/source.js';
import type { SourceLog } from './git/source.js';
import { Keys } from './keys.js';
import { createLog } from './log.js';
import type { Log, LogFacts } from './log.js';
import { startPublisher } from './publisher.js';
import type { PublisherPorts } from './publisher.js';

export interface PublisherSettings {
  readonly configFile: string;
  readonly keysFolder: string;
  /** Survives a restart of the process, if it can. */
  readonly dataFolder: string;
  /** Of what lives as long as an operation. */
  readonly tempFolder: string;
  readonly gitBinary: string;
  readonly ports: PublisherPorts;
}

/** Milliseconds that operations may still take after a signal; with what follows it is less than a Pod's thirty seconds. */
const grace = 25_000;

/** Serves until a signal comes; the exit code. */
export async function runPublisher(settings: PublisherSettings, log: Log = createLog()): Promise<number> {
  process.umask(0o077);
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve);
  });
  const config = await readConfig(settings.configFile);
  const keys = await Keys.open(settings.keysFolder, { log });
  const { cacheBytes } = config.limits ?? {};
  const git = createSourceGit({
    forges: config.forges,
    tempRoot: path.join(settings.tempFolder, 'git'),
    cacheRoot: path.join(settings.dataFolder, 'cache'),
    ...(cacheBytes === undefined ? {} : { cacheBytes }),
    limits: defaultArchiveLimits,
    gitBinary: settings.gitBinary,
    log: sourceLog(log),
  });
  const { dataFolder, ports } = settings;
  const publisher = await startPublisher({ config, keys, dataFolder, git, ports, log });
  log.info('serving', { port: publisher.ports.operations });
  await stopped;
  log.info('stopping');
  await publisher.stop(grace);
  log.info('stopped');
  return 0;
}

/** Keeps of what git's side tells only the members that a line may have. */
function sourceLog(log: Log): SourceLog {
  const facts = ({ operationId, code, milliseconds }: Readonly<Record<string, unknown>> = {}): LogFacts => ({
    ...(typeof operationId === 'string' ? { operationId } : {}),
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof milliseconds === 'number' ? { milliseconds } : {}),
  });
  return {
    info: (event, about) => {
      log.info(event, facts(about));
    },
    warn: (event, about) => {
      log.error(event, facts(about));
    },
  };
}
