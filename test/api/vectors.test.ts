import { readFileSync } from 'node:fs';

import { describe, expect, test } from '@jest/globals';

import { agentKind, runtimePoolKind, taskKind, validate } from '../../src/api/index.js';

interface Vector {
  readonly name: string;
  readonly input: { readonly agent?: unknown; readonly task?: unknown };
  readonly output: { readonly created?: unknown };
}

/** Place-holders for the time of a run become a time. */
function vectors(file: string): readonly Vector[] {
  const text = readFileSync(new URL(`../vectors/${file}.json`, import.meta.url), 'utf8').replaceAll(
    /<RFC 3339[^>]*>/g,
    '2026-01-31T12:00:00.123456789Z',
  );
  return (JSON.parse(text) as { readonly vectors: readonly Vector[] }).vectors;
}

/** The vectors bypass the schema on purpose; these are the ones that could not be stored. */
const refusedBySchema: Readonly<Record<string, readonly string[]>> = {
  'plans/codex-effort-upper-and-space Agent': ['spec.runtime.defaultReasoningEffort enum'],
  'admission/accepted-empty-on-detach Task': ['spec.execution.workspace.onDetach enum'],
  'admission/A-type-container-unknown-provider-first Task': ['spec.execution.workspace.provider enum'],
  'admission/A-cleanup-unknown Task': ['spec.execution.workspace.cleanupPolicy enum'],
  'admission/A-before-B-cleanup-unknown-beats-templateRef Task': ['spec.execution.workspace.cleanupPolicy enum'],
  'admission/0-runtime-type-unknown Agent': ['spec.runtime.type enum'],
};

const objects = ['plans', 'admission', 'pool-ensure'].flatMap((file) =>
  vectors(file).flatMap(({ name, input, output }) => [
    { at: `${file}/${name} Task`, kind: taskKind, object: input.task },
    { at: `${file}/${name} Agent`, kind: agentKind, object: input.agent },
    { at: `${file}/${name} RuntimePool`, kind: runtimePoolKind, object: output.created },
  ]),
);

describe('an object of the vectors', () => {
  test.each(objects.filter(({ object }) => object !== undefined && object !== null))('$at', ({ at, kind, object }) => {
    expect(validate(kind, object).map(({ field, rule }) => `${field} ${rule}`)).toEqual(refusedBySchema[at] ?? []);
  });
});
