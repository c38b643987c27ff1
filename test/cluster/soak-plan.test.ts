import { expect, test } from '@jest/globals';
import { faults, planSoak } from './support/soak-plan.js';

test('the same seed makes the same plan', () => {
  expect(planSoak(7, 15)).toEqual(planSoak(7, 15));
});

test('another seed makes another plan', () => {
  expect(planSoak(8, 15)).not.toEqual(planSoak(7, 15));
});

test('a quarter of an hour has every fault, and a Task every few seconds', () => {
  const plan = planSoak(1, 15);
  expect(new Set(plan.faults.map(({ fault }) => fault))).toEqual(new Set(faults));
  expect(plan.tasks.length).toBeGreaterThan(120);
  expect(plan.tasks.length).toBeLessThan(360);
});
