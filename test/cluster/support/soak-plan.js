// What a soak does and when: a function of its seed.

export const faults = /** @type {const} */ ([
  'controller killed',
  'Pod deleted',
  'agent killed',
  'supervisor killed',
  'Task deleted',
  'pool deleted',
  'class drifted',
  'API server restarted',
  'Lease taken',
]);

/** @typedef {(typeof faults)[number]} FaultName */
/** @typedef {{ readonly at: number, readonly fault: FaultName, readonly target: number }} PlannedFault `at`: milliseconds since the begin; `target`: which of those that there are then, 0 to 1 */
/** @typedef {{ readonly at: number, readonly name: string, readonly order: string, readonly asksAgain: boolean, readonly timeout: string }} PlannedTask `order`: what its prompt says before it asks for a word; `asksAgain`: its agent may ask its model again */

/** How often each happens, beside the others. @type {Readonly<Record<FaultName, number>>} */
const weights = {
  'controller killed': 3,
  'Pod deleted': 4,
  'agent killed': 4,
  'supervisor killed': 3,
  'Task deleted': 4,
  'pool deleted': 4,
  'class drifted': 2,
  'API server restarted': 1,
  // The Deployment starts a controller that ends by itself ever later.
  'Lease taken': 1,
};

const orders = /** @type {const} */ ([
  { order: '', weight: 10, asksAgain: false },
  { order: 'Wait 4 seconds.', weight: 5, asksAgain: false },
  { order: 'Wait 12 seconds.', weight: 3, asksAgain: false },
  { order: 'Take 6 seconds.', weight: 3, asksAgain: false },
  { order: 'Never answer.', weight: 1, asksAgain: false },
  { order: 'Fail with 429.', weight: 1, asksAgain: true },
  { order: 'Fail with 500.', weight: 1, asksAgain: true },
  { order: 'Break the connection.', weight: 1, asksAgain: true },
]);

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). @param {number} seed */
function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * @param {number} seed
 * @param {number} minutes
 * @returns {{ readonly faults: readonly PlannedFault[], readonly tasks: readonly PlannedTask[] }} both in the order of time
 */
export function planSoak(seed, minutes) {
  const end = minutes * 60_000;
  const [when, what] = [randomOf(seed), randomOf(seed ^ 0x5bd1e995)];
  /** @template T @param {readonly (readonly [one: T, weight: number])[]} choices @returns {T} */
  function choose(choices) {
    let left = what() * choices.reduce((sum, [, weight]) => sum + weight, 0);
    const found = choices.find(([, weight]) => (left -= weight) < 0) ?? choices[0];
    return /** @type {T} */ (found?.[0]);
  }
  /** @type {PlannedFault[]} */
  const planned = [];
  for (let at = 8_000 + when() * 4_000; at < end; at += 6_000 + when() * 8_000)
    planned.push({ at, fault: choose(faults.map((one) => /** @type {const} */ ([one, weights[one]]))), target: what() });
  /** @type {PlannedTask[]} */
  const tasks = [];
  for (let at = 0; at < end; at += 2_500 + when() * 4_000) {
    const { order, asksAgain } = choose(orders.map((one) => /** @type {const} */ ([one, one.weight])));
    tasks.push({ at, name: `soak-${tasks.length + 1}`, order, asksAgain, timeout: order.startsWith('Never') ? '20s' : '2m' });
  }
  return { faults: planned, tasks };
}
