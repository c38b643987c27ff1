import { expect, test } from '@jest/globals';
import { Progress } from '../../src/cli/progress.js';

function linesOf(much: boolean): readonly string[] {
  let now = 0;
  const lines: string[] = [];
  const progress = new Progress(
    (line) => lines.push(line),
    () => now,
  );
  for (; now < 7000; now += 100) progress.at(much, () => `${now} ms`);
  return lines;
}

test('progress is written every two seconds, and never in the first two', () => {
  expect(linesOf(true)).toEqual(['2000 ms\n', '4000 ms\n', '6000 ms\n']);
});

test('little work is silent, however long a slow machine takes', () => {
  expect(linesOf(false)).toEqual([]);
});
