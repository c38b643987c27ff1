import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** What the publisher counts. No series has a label that a request can grow. */
export interface PublisherMetrics {
  readonly operation: (operation: string, code: string, seconds: number) => void;
  readonly download: (code: string, bytes: number) => void;
  /** Once. Asked at each scrape. */
  readonly watch: (sizes: () => Sizes) => void;
  readonly expose: () => Promise<{ readonly contentType: string; readonly text: string }>;
}

interface Sizes {
  readonly runningOperations: number;
  readonly journalRecords: number;
  readonly journalBytes: number;
  readonly damagedRecords: number;
  readonly artifacts: number;
  readonly artifactBytes: number;
}

/** Series in a registry of their own. @default ofProcess: with those of the process */
export function createPublisherMetrics({ ofProcess = true }: { readonly ofProcess?: boolean } = {}): PublisherMetrics {
  const registry = new Registry();
  const registers = [registry];
  if (ofProcess) collectDefaultMetrics({ register: registry });
  const prefix = 'orka_workspaces_publisher';
  const operations = new Counter({
    name: `${prefix}_operations_total`,
    help: 'Operations by what they came to; ok is a success, replayed the answer of an earlier request.',
    labelNames: ['operation', 'code'],
    registers,
  });
  const seconds = new Histogram({
    name: `${prefix}_operation_seconds`,
    help: 'Seconds that an operation took.',
    labelNames: ['operation'],
    buckets: [0.01, 0.1, 0.5, 1, 5, 15, 60, 240],
    registers,
  });
  const downloads = new Counter({
    name: `${prefix}_downloads_total`,
    help: 'Requests for artifacts by what they came to; ok is a whole artifact.',
    labelNames: ['code'],
    registers,
  });
  const bytes = new Counter({ name: `${prefix}_download_bytes_total`, help: 'Bytes of artifacts that were sent.', registers });
  return {
    operation: (operation, code, took) => {
      operations.inc({ operation, code });
      seconds.observe({ operation }, took);
    },
    download: (code, sent) => {
      downloads.inc({ code });
      bytes.inc(sent);
    },
    watch: (sizes) => {
      for (const [name, help, of] of gauges)
        new Gauge({
          name: `${prefix}_${name}`,
          help,
          registers,
          collect() {
            this.set(of(sizes()));
          },
        });
    },
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

const gauges: readonly (readonly [string, string, (sizes: Sizes) => number])[] = [
  ['running_operations', 'Operations that have a slot.', ({ runningOperations }) => runningOperations],
  ['journal_records', 'Records of the journal.', ({ journalRecords }) => journalRecords],
  ['journal_bytes', 'Bytes of the journal.', ({ journalBytes }) => journalBytes],
  [
    'journal_damaged_records',
    'Records that were not as they were written and were removed.',
    ({ damagedRecords }) => damagedRecords,
  ],
  ['artifacts', 'Artifacts in the store.', ({ artifacts }) => artifacts],
  ['artifact_bytes', 'Bytes of the artifacts in the store.', ({ artifactBytes }) => artifactBytes],
];
