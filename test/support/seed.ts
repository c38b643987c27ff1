/**
 * Properties see the same values in every run, so that a failure is about the change that it appears with. `ORKA_TEST_SEED=random` looks for
 * new ones, and a number looks at one again.
 */
import fc from 'fast-check';

const wanted = process.env['ORKA_TEST_SEED'] ?? '1';
if (wanted !== 'random') fc.configureGlobal({ seed: Number(wanted) });
