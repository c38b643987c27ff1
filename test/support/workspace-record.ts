import { entriesBelow, lineOf, RecordWriter } from '../../src/supervisor/tree.js';
import { openFolder } from '../../src/supervisor/walk.js';

/** Records what a folder holds, read from the disk: what an extraction of the same tree records without reading. */
export function recordFolder(folder: string, file: number): void {
  const record = new RecordWriter(file);
  for (const found of entriesBelow(openFolder(folder), 100_000)) record.add(lineOf(found, true));
  record.end();
}
