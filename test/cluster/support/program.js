// What the programs that a person starts have in common.

import { describe } from '../failure.js';

/**
 * Runs a program to its end. A signal ends it at once, and says what to do; whatever it throws is told, and makes it fail.
 *
 * @param {() => Promise<unknown>} main
 * @param {{ readonly what?: string, readonly tell?: (error: unknown) => string }} [words] `what` is run again after a signal; `tell`: the text of an error
 */
export async function runProgram(main, { what = 'it', tell = describe } = {}) {
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.once(signal, () => {
      console.error(`\ninterrupted: running ${what} again cleans up first`);
      process.exit(130);
    });
  }
  try {
    await main();
  } catch (error) {
    console.error(`\n${tell(error)}`);
    process.exitCode = 1;
  }
}
