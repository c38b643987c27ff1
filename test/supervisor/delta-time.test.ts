import { expect, test } from '@jest/globals';
import { deltaTries, deltaWait } from '../../src/controller/task/settling.js';
import { readWithin } from '../../src/supervisor/delta.js';

test('a controller waits longer for a delta than a supervisor takes for one', () => {
  expect(deltaTries * deltaWait).toBeGreaterThanOrEqual(readWithin + 5_000);
});
