import { expect, test } from '@jest/globals';
import { remembered } from '../../src/lib/remember.js';

function counted() {
  let calls = 0;
  const sum = remembered((object: { readonly a: number }, b: number) => {
    calls++;
    return object.a + b;
  });
  return { sum, calls: () => calls };
}

test('the same arguments are computed once', () => {
  const { sum, calls } = counted();
  const object = { a: 1 };
  expect([sum(object, 2), sum(object, 2), calls()]).toEqual([3, 3, 1]);
});

test('another object is another argument, however equal', () => {
  const { sum, calls } = counted();
  expect([sum({ a: 1 }, 2), sum({ a: 1 }, 2), calls()]).toEqual([3, 3, 2]);
});

test('only the last of the other arguments is remembered', () => {
  const { sum, calls } = counted();
  const object = { a: 1 };
  expect([sum(object, 2), sum(object, 3), sum(object, 2), calls()]).toEqual([3, 4, 3, 3]);
});
