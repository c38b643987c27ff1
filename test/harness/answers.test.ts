import { describe, expect, test } from '@jest/globals';
import { decodeText } from '../../src/lib/decode.js';
import { errorResponse } from '../../src/harness/errors.js';
import { cancelPromptResponse } from '../../src/harness/prompts.js';
import { classification, operationRecord } from '../../src/harness/replay.js';

const protocol = 'orka.harness.v2';
const at = '2026-11-29T16:51:00Z';

describe('the answer to a cancellation', () => {
  const settlement = { terminalEvent: 'cancelled', outcome: 'cancelled', stopReason: 'cancelled', settledAt: at };
  const unknown = { terminalEvent: 'outcome_unknown', outcome: 'outcome_unknown', settledAt: at };
  const answer = (change: object) =>
    JSON.stringify({
      ...{ protocol, classification: { class: 'fresh' }, barrierState: 'settled', settlementProven: true, settlement },
      ...{ invalidatedPermissionRequests: 0, liveDescendantCount: 0, forcedTermination: false, ...change },
    });
  const unproven = { barrierState: 'outcome_unknown', settlementProven: false, settlement: unknown };

  test.each([
    ['a settlement', {}],
    ['a forced one', { barrierState: 'forced_terminated', forcedTermination: true }],
    ['one that nobody knows, with what is left', { ...unproven, liveDescendantCount: 3, forcedTermination: true }],
    ['a failure without a stop reason', { settlement: { terminalEvent: 'failed', outcome: 'failed', settledAt: at } }],
  ])('takes %s', (_, change) => {
    expect(decodeText(cancelPromptResponse, answer(change))).toMatchObject({ protocol });
  });

  test.each([
    ['proof while processes are left', { liveDescendantCount: 1 }],
    ['a settled barrier without proof', { settlementProven: false }],
    ['proof of what nobody knows', { ...unproven, settlementProven: true }],
    ['a known outcome without proof', { ...unproven, settlement }],
    ['a barrier that hides force', { forcedTermination: true }],
    ['another outcome than that of the terminal event', { settlement: { ...settlement, outcome: 'succeeded' } }],
    ['another stop reason than that of the terminal event', { settlement: { ...settlement, stopReason: 'end_turn' } }],
    ['a success without its stop reason', { settlement: { terminalEvent: 'completed', outcome: 'succeeded', settledAt: at } }],
  ])('refuses %s', (_, change) => {
    expect(() => decodeText(cancelPromptResponse, answer(change))).toThrow('allowed');
  });
});

describe('a classification', () => {
  test.each([
    { class: 'fresh' },
    { class: 'expired' },
    { class: 'stale_fence', fenceMismatch: 'controller_epoch' },
    { class: 'duplicate', phase: 'applied' },
    { class: 'already_accepted', phase: 'accepted' },
    { class: 'settled', phase: 'settled', terminalEvent: 'failed' },
    { class: 'digest_conflict', phase: 'recorded' },
    { class: 'digest_conflict', phase: 'settled', terminalEvent: 'failed' },
  ])('has the members of its class: %j', (found) => {
    expect(decodeText(classification, JSON.stringify(found))).toEqual(found);
  });

  test.each([
    { class: 'fresh', phase: 'applied' },
    { class: 'stale_fence' },
    { class: 'duplicate' },
    { class: 'duplicate', phase: 'settled', terminalEvent: 'failed' },
    { class: 'settled', phase: 'settled' },
    { class: 'digest_conflict' },
  ])('has no others, and none is missing: %j', (found) => {
    expect(() => decodeText(classification, JSON.stringify(found))).toThrow('allowed');
  });

  test('of an error agrees with its code', () => {
    const error = (code: string, found: object) =>
      JSON.stringify({ protocol, code, message: 'm', classification: found, retryable: false });
    const [duplicate, stale] = [
      { class: 'duplicate', phase: 'applied' },
      { class: 'stale_fence', fenceMismatch: 'controller_epoch' },
    ];
    expect(decodeText(errorResponse, error('invalid_request', duplicate)).code).toBe('invalid_request');
    expect(decodeText(errorResponse, error('stale_fence', stale)).code).toBe('stale_fence');
    expect(() => decodeText(errorResponse, error('digest_conflict', duplicate))).toThrow('invalid_request');
    expect(() => decodeText(errorResponse, error('settled', { class: 'fresh' }))).toThrow('fresh');
  });
});

test('an operation has a terminal event once it is settled, and not before', () => {
  const sum = `sha256:${'a'.repeat(64)}`;
  const operation = {
    operationID: 'o',
    requestDigest: sum,
    phase: 'settled',
    terminalEvent: 'completed',
    recordedAt: at,
    updatedAt: at,
  };
  expect(decodeText(operationRecord, JSON.stringify(operation))).toEqual(operation);
  for (const change of [{ terminalEvent: undefined }, { phase: 'applied' }])
    expect(() => decodeText(operationRecord, JSON.stringify({ ...operation, ...change }))).toThrow('settled');
});
