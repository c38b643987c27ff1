import { expect, test } from '@jest/globals';
import { Progress } from '../../src/cli/progress.js';

test('progress is written every two seconds, and never in the first two', () => {
  let now = 0;
  const lines: string[] = [];
  const progress = new Progress(
    (line) => lines.push(line),
    () => now,
  );
  for (; now < 7000; now += 100) progress.at(() => `${now} ms`);
  expect(lines).toEqual(['2000 ms\n', '4000 ms\n', '6000 ms\n']);
});
