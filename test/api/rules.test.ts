import { describe, expect, test } from '@jest/globals';

import { kinds, runtimePoolKind, taskKind, validate, validateUpdate } from '../../src/api/index.js';
import { celRows, ruleName, rulesOf } from './cel-rows.js';
import type { CelRow, CelRuleName } from './cel-rows.js';
import { edited, fullPool, smokeTask } from './samples.js';

const ask = (row: CelRow, object: object) => (row.from ? validateUpdate(row.kind, row.from, object) : validate(row.kind, object));

describe.each(celRows)('$kind.kind: $says', (row) => {
  test('an object that keeps the rule is accepted', () => {
    expect(ask(row, row.accepted)).toEqual([]);
  });

  test('an object that breaks the rule is refused at the member to blame', () => {
    const ids = /\[\d+\]/g;
    expect(ask(row, row.refused)).toContainEqual(
      expect.objectContaining({ field: row.field, allowed: row.says, rule: `cel:${row.field.replaceAll(ids, '')}` }),
    );
  });

  if (row.from) {
    test('a new object is not asked', () => {
      expect(validate(row.kind, row.refused)).not.toContainEqual(expect.objectContaining({ allowed: row.says }));
    });
  }
});

test('every rule of every kind has its row, a rule about a transition one with a stored object', () => {
  const rows = celRows.map(({ kind, field, says, from }) => ({
    name: ruleName(kind, field, says),
    transition: from !== undefined,
  }));
  const byName = (a: CelRuleName, b: CelRuleName) => (a.name < b.name ? -1 : 1);
  expect([...rows].sort(byName)).toEqual(kinds.flatMap(rulesOf).sort(byName));
});

describe('rules about transitions', () => {
  test('a member that appears is a change', () => {
    expect(validateUpdate(taskKind, smokeTask, edited(smokeTask, 'spec.sessionRef', { name: 's' }))).toHaveLength(1);
  });

  test('a member of another order is no change', () => {
    const turned = edited(fullPool, 'spec.trustDomain', { identity: fullPool.spec.trustDomain.identity, namespace: 'a' });
    expect(validateUpdate(runtimePoolKind, fullPool, turned)).toEqual([]);
  });

  test('a default that the stored object has and the new one leaves out is no change', () => {
    const short = edited(fullPool, 'spec.runtime.profile.protocolVersion', undefined);
    expect(validateUpdate(runtimePoolKind, fullPool, short)).toEqual([]);
  });

  test('an absent list and an empty one are a change', () => {
    const absent = edited(smokeTask, 'spec.agentRuntime.allowedTools', undefined);
    const empty = edited(smokeTask, 'spec.agentRuntime.allowedTools', []);
    expect(validateUpdate(taskKind, absent, empty)).toMatchObject([{ field: 'spec.agentRuntime' }]);
  });

  test('items of a list with keys are compared with the item of the same keys', () => {
    const second = { ...fullPool.status?.capacity?.reservations?.[0], taskUID: 'other' };
    const turned = edited(fullPool, 'status.capacity.reservations', [second, ...(fullPool.status?.capacity?.reservations ?? [])]);
    expect(validateUpdate(runtimePoolKind, fullPool, turned)).toEqual([]);
  });
});
