import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { promptId, sessionWorkspaceDigest } from '../../src/domain/digests.js';
import {
  abandonedEffects,
  downloadOperationId,
  effectEnded,
  EffectError,
  effectId,
  effectOf,
  effectRequestDigest,
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
import type { JsonObject } from '../../src/lib/json.js';

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

describe('the golden value of', () => {
  test('a resolve', () => {
    expect(pending).toMatchObject({
      id: 'external-effect:sha256:fe437aa1faff55cc98244fce10e8bf2fee2622dd51a30ceb0e5fcb3c34c7d932',
      requestDigest: 'sha256:934a4b59e127d1dfb574b3ab71c40b9cdb6a85c10f13d8dd1d3c5c7869ea7256',
      operationID: 'workspace-resolve-prompt-11111111-1111-1111-1111-111111111111-1',
      state: 'Pending',
      attempts: 0,
    });
  });

  test('a prepare', () => {
    const prepare = { ...identity, kind: 'workspace.prepare', operationId: prepareOperationId(prompt) } as const;
    const { credentialRef: _credential, ...anonymous } = request;
    const metadata = { namespace: 'demo', operationId: prepare.operationId, taskId: taskUID };
    const body = { ...anonymous, metadata, baselineOid: 'a'.repeat(40), limits: {} };
    expect(effectId(prepare)).toBe('external-effect:sha256:99c42aa8f409fa5f3e546aa47c71d50633651c5f4f56c808b8aa94f0e708ddf2');
    expect(effectRequestDigest(prepare, body)).toBe('sha256:f5de6d1b29945c81be3ed26ffaa1ccea7481c4ddb3d21645532d0c535daa8a2e');
  });
});

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
