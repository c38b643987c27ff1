import path from 'node:path';
import { startProbes } from '../lib/probes.js';
import { operationPaths, sourceProtocol } from '../source/protocol.js';
import { publisherBounds } from '../source/protocol.js';
import type { PublisherCapabilities } from '../source/messages.js';
import { createArtifactServer } from './artifact-server.js';
import { ArtifactStore, usualStoreLimits } from './artifact-store.js';
import type { PublisherConfig } from './config.js';
import { DownloadLedger } from './download-ledger.js';
import { openFolder } from './durable.js';
import { closeServer } from '../lib/close-server.js';
import { listen } from './http.js';
import { Journal, usualJournalLimits } from './journal.js';
import type { Keys } from './keys.js';
import { codeOf } from './log.js';
import type { Log } from './log.js';
import { createPublisherMetrics } from './metrics.js';
import { createOperationServer } from './operation-server.js';
import { Operations } from './operations.js';
import type { SourceGit } from './source-git.js';

export interface PublisherPorts {
  readonly operations: number;
  readonly artifacts: number;
  readonly probes: number;
}

export interface PublisherOptions {
  readonly config: PublisherConfig;
  readonly keys: Keys;
  /** Of the journal, the artifacts and the ledger. It must exist. */
  readonly dataFolder: string;
  readonly git: SourceGit;
  /** 0 takes any that is free. */
  readonly ports: PublisherPorts;
  readonly log: Log;
  /** Milliseconds since 1970. @default that of the system */
  readonly clock?: () => number;
  /** Milliseconds between two times of removing what is old. @default one minute */
  readonly sweepInterval?: number;
}

export interface Publisher {
  readonly ports: PublisherPorts;
  /** Lets operations and downloads end for `grace` milliseconds, then ends them. */
  readonly stop: (grace: number) => Promise<void>;
}

const usualSlots = 4;
const usualOperationSeconds = 210;

/** Opens the folders and the three ports. */
export async function startPublisher(options: PublisherOptions): Promise<Publisher> {
  const { config, keys, dataFolder, git, log, clock = Date.now } = options;
  const limits = config.limits ?? {};
  const slots = limits.concurrentOperations ?? usualSlots;
  await openFolder(dataFolder);
  const { journal, store, ledger } = await openStorage(options);
  const timeout = (limits.operationSeconds ?? usualOperationSeconds) * 1000;
  const operations = new Operations({ journal, store, git, slots, timeout });
  const metrics = createPublisherMetrics();
  metrics.watch(() => ({
    runningOperations: operations.running,
    journalRecords: journal.size.records,
    journalBytes: journal.size.bytes,
    damagedRecords: journal.size.damaged,
    artifacts: store.size.artifacts,
    artifactBytes: store.size.bytes,
  }));
  const capabilities = capabilitiesOf(config, slots, await git.version());
  let isReady = true;
  const ready = () => isReady;
  const shared = { keys, metrics, log, clock };
  const operationServer = createOperationServer({ ...shared, operations, capabilities, ready });
  const artifactServer = createArtifactServer({ ...shared, store, ledger });
  const probes = await startProbes({ at: 'publisher', port: options.ports.probes, ready, metrics });
  const ports = {
    operations: await listen(operationServer, '--operation-port', options.ports.operations),
    artifacts: await listen(artifactServer, '--artifact-port', options.ports.artifacts),
    probes: probes.port,
  };
  const sweeper = setInterval(() => {
    Promise.all([journal.prune(), ledger.prune()]).catch((error: unknown) => {
      log.error('sweep failed', { code: codeOf(error) });
    });
  }, options.sweepInterval ?? 60_000);
  return {
    ports,
    stop: async (grace) => {
      isReady = false;
      clearInterval(sweeper);
      await Promise.all([
        operations.close(grace),
        closeServer(operationServer, grace + 1_000),
        closeServer(artifactServer, grace),
      ]);
      await git.close();
      keys.close();
      await probes.close();
    },
  };
}

async function openStorage({ config, dataFolder, clock = Date.now }: PublisherOptions): Promise<{
  readonly journal: Journal;
  readonly store: ArtifactStore;
  readonly ledger: DownloadLedger;
}> {
  const { journalRecords, journalBytes, artifactStoreBytes } = config.limits ?? {};
  const journal = await Journal.open(path.join(dataFolder, 'journal'), {
    clock,
    limits: {
      ...usualJournalLimits,
      ...(journalRecords === undefined ? {} : { records: journalRecords }),
      ...(journalBytes === undefined ? {} : { bytes: journalBytes }),
    },
  });
  const store = await ArtifactStore.open(path.join(dataFolder, 'artifacts'), {
    clock,
    limits: { ...usualStoreLimits, ...(artifactStoreBytes === undefined ? {} : { bytes: artifactStoreBytes }) },
  });
  return { journal, store, ledger: await DownloadLedger.open(path.join(dataFolder, 'downloads'), { clock }) };
}

/** Source: repository.md §3.1. */
function capabilitiesOf({ forges }: PublisherConfig, slots: number, gitVersion: string): PublisherCapabilities {
  return {
    protocol: sourceProtocol,
    networkIdentity: 'workspace-publisher',
    operations: Object.keys(operationPaths),
    authentication: ['controller-bearer', 'operation-capability'],
    credentialKinds: ['http-extra-header'],
    scmSchemes: ['https'],
    forges: forges.map(({ host, port = 443 }) => (port === 443 ? host : `${host}:${port}`)),
    gitVersion,
    redirectsAllowed: false,
    providerOrMcpAccess: false,
    pullRequestReconciliation: false,
    limits: { concurrentOperations: slots, requestBytes: publisherBounds.requestBody, artifactBytes: publisherBounds.artifact },
  };
}
