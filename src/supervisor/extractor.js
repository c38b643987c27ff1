// The program that a supervisor runs to fill the workspace of a session, see session-user.ts: an order in its argument, an archive on stdin,
// one answer on stdout. The supervisor ends the archive only if it is the right one.

import { shownPath } from '../source/archive-rules.js';
import { becomeUser } from './become-user.js';
import { ArchiveError, Extraction } from './extract.js';
import { TarError } from './tar-reader.js';

/** @typedef {import('./identities.js').SessionIdentity} SessionIdentity */
/** @typedef {import('./session-user.js').ExtractOrder} ExtractOrder */

/** @param {unknown} error */
function failure(error) {
  if (error instanceof ArchiveError) return { refused: error.message };
  if (error instanceof TarError) return { refused: `the archive is malformed: ${error.message}` };
  const { code = 'unknown' } = /** @type {NodeJS.ErrnoException} */ (error);
  // Another try would end like this one: some file systems take less than the rules.
  if (code === 'ENAMETOOLONG') return { refused: 'a name or a link target is too long for the file system' };
  return { failed: shownPath(code) };
}

/** Descriptor of the record. The supervisor opened it: the session's user may not. */
const record = 3;

async function answer() {
  /** @type {{ readonly identity?: SessionIdentity, readonly order: ExtractOrder, readonly isRecorded: boolean }} */
  const { identity, order, isRecorded } = JSON.parse(process.argv[2] ?? '');
  try {
    // Each entry is made with its own mode.
    process.umask(0);
    if (identity) becomeUser(identity);
    const extraction = new Extraction(order, isRecorded ? record : undefined);
    for await (const part of process.stdin) extraction.push(part);
    return extraction.end();
  } catch (error) {
    return failure(error);
  }
}

process.stdout.write(`${JSON.stringify(await answer())}\n`, () => process.exit(0));
