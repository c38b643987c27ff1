import { TestEnvironment } from 'jest-environment-node';

import { pace, paceOfTest } from './pace.js';

/**
 * Scales the time limit of every test and hook to the machine, at the moment when it starts.
 */
export default class PacedEnvironment extends TestEnvironment {
  /** A hook runs many times: its limit on a quiet machine is remembered. @type {WeakMap<object, number>} */
  #quiet = new WeakMap();

  /**
   * @param {import('@jest/types').Circus.Event} event
   * @param {import('@jest/types').Circus.State} state
   */
  handleTestEvent(event, state) {
    if (event.name === 'test_fn_start') this.#scale(event.test, state.testTimeout);
    if (event.name === 'hook_start') this.#scale(event.hook, state.testTimeout);
  }

  /**
   * @param {{ timeout?: number | null | undefined }} limited
   * @param {number} usual
   */
  #scale(limited, usual) {
    const quiet = this.#quiet.get(limited) ?? limited.timeout ?? usual;
    this.#quiet.set(limited, quiet);
    const now = pace();
    Object.assign(this.global, { [paceOfTest]: now });
    limited.timeout = Math.round(quiet * now);
  }
}
