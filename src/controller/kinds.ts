import { crd, kinds } from '../api/index.js';
import { kindGaps } from '../domain/kind-gaps.js';
import type { KubeClient } from '../kube/client.js';
import { jittered } from '../kube/backoff.js';
import { sleep, systemClock } from '../kube/clock.js';
import type { Clock } from '../kube/clock.js';
import { kindPresent } from '../kube/discovery.js';
import { publishedSchemas, schemaOf } from '../kube/published-schemas.js';
import { valueAt } from '../lib/json.js';
import type { JsonObject } from '../lib/json.js';

export interface KindCheckOptions {
  /** Told when the gaps are others than before; first after the first comparison. */
  readonly onChange: (gaps: readonly string[]) => void;
  /** The schemas could not be read; it is tried again. */
  readonly onError: (error: unknown) => void;
  readonly clock?: Clock;
}

/** Compares the kinds that the cluster serves with those that this controller works with. */
export interface KindCheck {
  /** Of the last comparison; none before the first. */
  readonly gaps: () => readonly string[];
  readonly stop: () => Promise<void>;
}

/** Milliseconds until another look at kinds that were not as needed, or not read. */
const lookEvery = 5_000;

/** Begins to compare; looks again until nothing is missing. */
export function checkKinds(client: KubeClient, { onChange, onError, clock = systemClock }: KindCheckOptions): KindCheck {
  const stopping = new AbortController();
  const { signal } = stopping;
  let gaps: readonly string[] = [];
  let told: string | undefined;

  /** @returns whether everything is as needed */
  async function look(): Promise<boolean> {
    try {
      gaps = await readGaps(client, signal);
    } catch (error) {
      if (!signal.aborted) onError(error);
      return false;
    }
    const text = gaps.join('\n');
    if (told !== text) onChange(gaps);
    told = text;
    return gaps.length === 0;
  }

  async function run(): Promise<void> {
    while (!signal.aborted && !(await look())) await sleep(clock, jittered(lookEvery), signal);
  }

  const running = run();
  return {
    gaps: () => gaps,
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

/** The API server publishes the schemas of its kinds to every account. */
async function readGaps(client: KubeClient, signal: AbortSignal): Promise<readonly string[]> {
  const gaps: string[] = [];
  const published = new Map<string, readonly JsonObject[]>();
  for (const kind of kinds) {
    const root = `${kind.group}/${kind.version}`;
    const schemas = published.get(root) ?? (await publishedSchemas(client, root, { signal }));
    published.set(root, schemas);
    const served = schemaOf(schemas, { apiVersion: root, kind: kind.kind });
    // A server without a published schema may still serve the kind.
    if (!served && (await kindPresent(client, { apiVersion: root, kind: kind.kind }, { signal }))) continue;
    const needed = valueAt(crd(kind), ['spec', 'versions', '0', 'schema', 'openAPIV3Schema']);
    gaps.push(...kindGaps(kind.kind, needed, served));
  }
  return gaps;
}
