import { CommanderError } from 'commander';
import { failureOf } from '../lib/failure.js';
import { systemWords } from '../lib/system-words.js';

/** Exit codes: 0 done, 1 refused or different, 2 the call or its input cannot be used, 70 a defect of ours (EX_SOFTWARE). */
const exitCodes = { usage: 2, defect: 70 } as const;

/** Says on standard error why a command failed, and returns the exit code. Commander has said its own errors already. */
export function reported(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
  const { text, defect } = failureOf(error);
  process.stderr.write(`error: ${text}\n`);
  return defect ? exitCodes.defect : exitCodes.usage;
}

/**
 * Ends the process when standard output cannot take the data. `… | head` has read enough, so that a closed pipe is no failure;
 * a full disk is one, because a part of the data is missing.
 */
export function watchOutputs(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit();
    process.stderr.write(`error: standard output: ${systemWords(error)}\n`);
    process.exit(exitCodes.usage);
  });
  process.stderr.on('error', () => {
    // A closed standard error changes nothing of the result.
  });
}
