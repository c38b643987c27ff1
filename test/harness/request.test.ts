import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { requestDigest } from '../../src/domain/digests.js';
import { decodeText, WireError } from '../../src/lib/decode.js';
import { fenceMismatch, fenceMismatches } from '../../src/harness/fence.js';
import type { Fence } from '../../src/harness/fence.js';
import { instant, milliseconds, nanoseconds, notAfter } from '../../src/lib/instant.js';
import { drainRequest } from '../../src/harness/introspection.js';
import { sealRequest } from '../../src/harness/metadata.js';
import { PathError, paths } from '../../src/harness/paths.js';
import { classify } from '../../src/harness/replay.js';
import type { OperationRecord } from '../../src/harness/replay.js';

const fence: Fence = {
  runtimeInstanceID: 'a18bb2fc-12c3-4e4f-8140-980c680925d2.b3ff79f9-2a50-422f-9459-20d7d7630f90',
  supervisorBootID: 'b3ff79f9-2a50-422f-9459-20d7d7630f90',
  controllerEpoch: 3,
  runtimePoolUID: 'b258d454-868b-46f2-b4b2-0ccb9ce0cfa1',
  runtimePoolGeneration: 1,
  runtimeProfileDigest: 'sha256:e3efa1c6f281cbdd1d9fba98a0e363fddba9e334ab922993f111b2856209a737',
  profileDigestSchemaVersion: 1,
};
const operation = { fence, operationID: 'runtime-pool-drain-1', expiresAt: '2026-11-29T16:51:42.365895599Z' };

test('a request that the reference sent gets the same digest', () => {
  const { metadata, body } = sealRequest(operation, { reason: 'runtime_pool_scale_to_zero' });
  expect(metadata.requestDigest).toBe('sha256:137247c054ffe2a6c62ee4c749c6cb068fc27f2324ae95a30aaaa7bccc73fd29');
  expect(requestDigest(body)).toBe(metadata.requestDigest);
  expect(decodeText(drainRequest, body).reason).toBe('runtime_pool_scale_to_zero');
});

test('an unknown member, a duplicate one and a second document are refused with their place', () => {
  const { body } = sealRequest(operation, { reason: 'x' });
  expect(() => decodeText(drainRequest, body.replace('"reason"', '"raeson"'))).toThrow('raeson');
  expect(() => decodeText(drainRequest, body.replace('"reason"', '"reason":"a","reason"'))).toThrow(WireError);
  expect(() => decodeText(drainRequest, `${body}{}`)).toThrow(WireError);
  expect(() => decodeText(drainRequest, body.replace('"controllerEpoch":3', '"controllerEpoch":0'))).toThrow(
    'metadata.fence.controllerEpoch',
  );
});

test('a fence names the first component in which it differs, in the order of the contract', () => {
  const other: Fence = {
    runtimeInstanceID: 'x',
    supervisorBootID: 'x',
    controllerEpoch: 4,
    runtimePoolUID: 'x',
    runtimePoolGeneration: 2,
    runtimeSessionUID: 'x',
    runtimeSessionGeneration: 2,
    runtimeProfileDigest: `sha256:${'0'.repeat(64)}`,
    profileDigestSchemaVersion: 1,
  };
  const names = Object.keys(other) as (keyof Fence)[];
  const full: Fence = { ...fence, runtimeSessionUID: 's', runtimeSessionGeneration: 1 };
  const found = names.map((_, i) =>
    fenceMismatch({ ...full, ...Object.fromEntries(names.slice(i).map((name) => [name, other[name]])) }, full, { session: true }),
  );
  expect(found.slice(0, 8)).toEqual(fenceMismatches.slice(0, 8));
  expect(fenceMismatch(full, fence, { session: false })).toBeUndefined();
});

test('replay: other fence, expired, unknown, other digest, phase, repeated, in this order', () => {
  const now = '2026-11-29T16:51:00Z';
  const { metadata } = sealRequest(operation, { reason: 'x' });
  const record = (phase: OperationRecord['phase'], requestDigestText = metadata.requestDigest): OperationRecord => ({
    operationID: metadata.operationID,
    requestDigest: requestDigestText,
    phase,
    recordedAt: now,
    updatedAt: now,
  });
  const late = '2026-11-29T16:51:42.365895599Z';
  expect(classify(metadata, { ...fence, controllerEpoch: 4 }, record('applied'), late)).toEqual({
    class: 'stale_fence',
    fenceMismatch: 'controller_epoch',
  });
  expect(classify(metadata, fence, record('applied'), late).class).toBe('expired');
  expect(classify(metadata, fence, undefined, now).class).toBe('fresh');
  expect(classify(metadata, fence, record('settled', `sha256:${'0'.repeat(64)}`), now).class).toBe('digest_conflict');
  expect(classify(metadata, fence, record('accepted'), now).class).toBe('already_accepted');
  expect(classify(metadata, fence, record('settled'), now).class).toBe('settled');
  expect(classify(metadata, fence, record('applied'), now).class).toBe('duplicate');
});

test('an id that would change a path is refused before anything is sent', () => {
  for (const id of ['', '..', '.', 'a/b', 'a b', 'a%2e', 'ü', 'a?b', 'a#b', 'x'.repeat(254)])
    expect(() => paths.session(id)).toThrow(PathError);
  expect(paths.delta('runtime-session-1-g1', 'delta-1')).toBe(
    '/v2/runtime-sessions/runtime-session-1-g1/workspace-deltas/delta-1',
  );
});

test('instants keep nine digits, lose only zeros, and know no 31 June', () => {
  expect(instant(Date.UTC(2026, 0, 1))).toBe('2026-01-01T00:00:00Z');
  expect(instant(Date.UTC(2026, 0, 1, 0, 0, 0, 120))).toBe('2026-01-01T00:00:00.12Z');
  expect(nanoseconds('2026-06-31T00:00:00Z')).toBeUndefined();
  expect(notAfter('2026-01-01T00:00:00.123456788Z', '2026-01-01T00:00:00.123456789Z')).toBe(true);
  expect(notAfter('2026-01-01T00:00:00.123456789Z', '2026-01-01T00:00:00.123456788Z')).toBe(false);
  expect(nanoseconds('2026-01-01T02:00:00+02:00')).toBe(nanoseconds('2026-01-01T00:00:00Z'));
  fc.assert(
    fc.property(
      fc.date({ min: new Date(0), max: new Date('9999-01-01'), noInvalidDate: true }),
      (date) => milliseconds(instant(date.getTime())) === date.getTime(),
    ),
  );
});
