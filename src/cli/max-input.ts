import { quantityValue } from '../lib/quantity.js';
import { InputError, usualLimit } from './files.js';
import type { InputLimit } from './files.js';

const flag = '--max-input';
/** What Node can hold as one text. */
const most = 500 * 1024 * 1024;
const billionths = 1_000_000_000n;

/** The limit that a command's `--max-input` sets: a quantity such as `100Mi`. */
export function maxInput(command: string, given: string | undefined): InputLimit {
  if (given === undefined) return { bytes: usualLimit, flag };
  const bytes = Number((quantityValue(given) ?? 0n) / billionths);
  if (bytes < 1 || bytes > most)
    throw new InputError('input-invalid', {
      at: command,
      field: flag,
      found: given,
      allowed: 'a size from 1 to 500Mi, such as 100Mi',
    });
  return { bytes, flag };
}
