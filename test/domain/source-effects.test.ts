import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { domainDigest, promptId, sessionWorkspaceDigest } from '../../src/domain/digests.js';
import {
  abandonedEffects,
  downloadOperationId,
  effectEnded,
  EffectError,
  effectOf,
  effectResponseDigest,
  effectStates,
  effectSucceeded,
  effectSuccessors,
  inFlight,
  pendingEffect,
  prepareOperationId,
  resolveOperationId,
  withEffect,
} from '../../src/domain/source-effects.js';
import type { EffectIdentity, EffectRecord, EffectState } from '../../src/domain/source-effects.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

const taskUID = '11111111-1111-1111-1111-111111111111';
const prompt = promptId(taskUID, 1);
const identity: EffectIdentity = {
  kind: 'workspace.resolve',
  namespace: 'demo',
  aggregateId: taskUID,
  operationId: resolveOperationId(prompt),
};
const request: JsonObject = {
  metadata: { namespace: 'demo', operationId: identity.operationId, taskId: taskUID },
  source: { provider: 'github', id: 'github.com/acme/app', url: 'https://github.com/acme/app.git' },
  sourceRef: 'refs/heads/main',
  credentialRef: { name: 'read', kind: 'http-extra-header', role: 'SourceRead' },
};
const pending = pendingEffect(identity, request);
const [early, later] = ['2030-01-01T00:00:00Z', '2030-01-01T00:01:00Z'];

interface Effect {
  readonly identity: EffectIdentity;
  readonly request: JsonObject;
}
interface Recorded {
  readonly domain: string;
  readonly value: Json;
}
interface SessionWorkspace {
  readonly sourceRef: string;
  readonly workspace: {
    readonly intent: string;
    readonly relativeRoot?: string;
    readonly baseline: { readonly repositoryIdentity: string; readonly revision: string; readonly treeDigest: string };
  };
}
const { sections } = readVectors<{
  sections: {
    externalEffect: { vectors: readonly Vector<Effect, { readonly id: string; readonly digest: string }>[] };
    recordDigests: { vectors: readonly Vector<Recorded | SessionWorkspace, { readonly digest: string }>[] };
  };
}>('repository');
const effects = sections.externalEffect.vectors;
const records = sections.recordDigests.vectors;

test.each(effects)('the golden identity and digest of $name', ({ input, output }) => {
  const { id, requestDigest, operationID } = pendingEffect(input.identity, input.request);
  expect({ id, digest: requestDigest }).toEqual({ id: output.id, digest: output.digest });
  const operation = input.identity.kind === 'workspace.resolve' ? resolveOperationId : prepareOperationId;
  expect(operationID).toBe(operation(prompt));
});

test.each(records)('the golden digest of the record $name', ({ input, output }) => {
  const digest = 'workspace' in input ? sessionWorkspaceDigest(flat(input)) : domainDigest(input.domain, input.value);
  expect(digest).toBe(output.digest);
});

function flat({ sourceRef, workspace }: SessionWorkspace): Parameters<typeof sessionWorkspaceDigest>[0] {
  const { intent, baseline, relativeRoot = '' } = workspace;
  return { intent, relativeRoot, sourceRef, ...baseline };
}

test('a download has an operation for each attempt and generation', () => {
  expect(downloadOperationId(prompt, 1, 2)).toBe(`runtime-workspace-download-${prompt}-a1-g2`);
});

test('the digest of a workspace with a repository differs from that of one without', () => {
  const workspace = { intent: 'read', relativeRoot: '', repositoryIdentity: 'github.com/acme/app', revision: 'a'.repeat(40) };
  const digest = (treeDigest: string) => sessionWorkspaceDigest({ ...workspace, sourceRef: 'refs/heads/main', treeDigest });
  expect(digest(`sha256:${'1'.repeat(64)}`)).not.toBe(digest(`sha256:${'2'.repeat(64)}`));
});

describe('an effect', () => {
  const to: Record<EffectState, (record: EffectRecord) => EffectRecord> = {
    Pending: () => {
      throw new EffectError('transition', { at: 'nothing goes back' });
    },
    InFlight: (record) => inFlight(record, 4, later),
    Succeeded: (record) => effectSucceeded(record, { baselineOID: 'a'.repeat(40) }),
    Failed: (record) => effectEnded(record, 'Failed', 'source_ref_absent'),
    OutcomeUnknown: (record) => effectEnded(record, 'OutcomeUnknown', 'timeout'),
  };

  test.each(effectStates.flatMap((from) => effectStates.map((next) => [from, next] as const)))(
    'that is %s goes to %s only where the table says so',
    (from, next) => {
      const go = () => to[next]({ ...pending, state: from }).state;
      if (effectSuccessors[from].includes(next)) expect(go()).toBe(next);
      else expect(go).toThrow(EffectError);
    },
  );

  test('that is over never moves, whatever is tried', () => {
    const steps = fc.array(fc.constantFrom(...effectStates), { maxLength: 12 });
    fc.assert(
      fc.property(steps, (tried) => {
        let record: EffectRecord = pending;
        let ended: EffectRecord | undefined;
        for (const next of tried) {
          try {
            record = to[next](record);
          } catch {
            // Refused, and still what it was.
          }
          if (ended) expect(record).toEqual(ended);
          if (effectSuccessors[record.state].length === 0) ended = record;
        }
      }),
    );
  });

  test('that is taken up again by its controller keeps its time', () => {
    const first = inFlight(pending, 3, early);
    expect(first).toMatchObject({ state: 'InFlight', controllerEpoch: 3, attempts: 1, startedAt: early });
    expect(inFlight(first, 3, later)).toEqual(first);
  });

  test('that another controller takes over counts one more', () => {
    const taken = inFlight(inFlight(pending, 3, early), 4, later);
    expect(taken).toMatchObject({ controllerEpoch: 4, attempts: 2, startedAt: later, operationID: pending.operationID });
  });

  test('that succeeded has the digest of its response', () => {
    const response = { repositoryID: 'github.com/acme/app', sourceRef: 'refs/heads/main', baselineOID: 'a'.repeat(40) };
    const done = effectSucceeded(inFlight(pending, 3, early), response);
    expect(done).toMatchObject({ state: 'Succeeded', response, responseDigest: effectResponseDigest(response) });
  });

  test('is found by its operation, and refused for another request', () => {
    const other = pendingEffect(identity, { ...request, sourceRef: 'refs/heads/other' });
    expect(effectOf([], pending)).toBeUndefined();
    expect(effectOf([pending], pending)).toBe(pending);
    expect(() => effectOf([pending], other)).toThrow(/requestDigest/);
  });

  test('takes the place of its own record', () => {
    const flying = inFlight(pending, 3, early);
    expect(withEffect([], pending)).toEqual([pending]);
    expect(withEffect([pending], flying)).toEqual([flying]);
  });

  test('under way in a Task that is over has an unknown outcome', () => {
    const [first, second] = abandonedEffects([inFlight(pending, 3, early), effectSucceeded(inFlight(pending, 3, early), {})]);
    expect([first?.state, second?.state]).toEqual(['OutcomeUnknown', 'Succeeded']);
  });
});
