import { fieldGaps } from '../domain/field-gaps.js';
import { jittered } from '../kube/backoff.js';
import type { KubeClient } from '../kube/client.js';
import { sleep, systemClock } from '../kube/clock.js';
import type { Clock } from '../kube/clock.js';
import { publishedSchemas, schemaOf } from '../kube/published-schemas.js';
import type { JsonObject } from '../lib/json.js';
import { remembered } from '../lib/remember.js';
import { objectsOf } from '../render/compile.js';
import type { CompiledPool } from '../render/compile.js';
import { watchedKinds } from './world.js';

export interface ServedFieldsOptions {
  /** The provider serves other schemas than before. */
  readonly onChange: () => void;
  /** The schemas could not be read; the next look follows. */
  readonly onError: (error: unknown) => void;
  readonly clock?: Clock;
}

/** Compares what a class is compiled to with the schemas that the installed provider serves. */
export interface ServedFields {
  /**
   * Fields that the provider would drop, or demands; none while its schemas could not be read, since a strict apply refuses them too, later and less
   * clearly.
   */
  readonly gapsOf: (compiled: CompiledPool) => readonly string[];
  /** The first look is over, with or without an answer. */
  readonly looked: Promise<void>;
  readonly stop: () => Promise<void>;
}

const { apiVersion } = watchedKinds.warmPools;
/** Milliseconds between looks, while a class has gaps or nothing could be read, and otherwise. */
const [soon, later] = [5_000, 300_000];

/** Begins to read the provider's schemas, and reads them again from time to time: a provider may be upgraded at any time. */
export function watchServedFields(
  client: KubeClient,
  { onChange, onError, clock = systemClock }: ServedFieldsOptions,
): ServedFields {
  const stopping = new AbortController();
  const { signal } = stopping;
  let schemas: readonly JsonObject[] = [];
  let text = '';
  let found = false;

  const gaps = remembered((compiled: CompiledPool, served: readonly JsonObject[]) => gapsIn(compiled, served));

  async function look(): Promise<void> {
    try {
      const read = await publishedSchemas(client, apiVersion, { signal });
      const next = JSON.stringify(read);
      if (next === text) return;
      [schemas, text, found] = [read, next, false];
      onChange();
    } catch (error) {
      if (!signal.aborted) onError(error);
    }
  }

  const looked = look();
  async function run(): Promise<void> {
    await looked;
    let last = clock.elapsed();
    while (!signal.aborted) {
      // Whether a class has gaps is known only once it was asked for.
      await sleep(clock, jittered(soon), signal);
      if (!found && schemas.length > 0 && clock.elapsed() - last < later) continue;
      await look();
      last = clock.elapsed();
    }
  }

  const running = run();
  return {
    gapsOf: (compiled) => {
      const now = gaps(compiled, schemas);
      found ||= now.length > 0;
      return now;
    },
    looked,
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

function gapsIn(compiled: CompiledPool, schemas: readonly JsonObject[]): readonly string[] {
  return objectsOf(compiled.workspace).flatMap(({ manifest }) => {
    const served = manifest.apiVersion === apiVersion ? schemaOf(schemas, manifest) : undefined;
    return served ? fieldGaps(manifest, served) : [];
  });
}
