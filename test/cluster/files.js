// Writing files that others read.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';

/**
 * Gives a file its content, whole at once, and does not touch it when it has it: programs watch their configuration.
 *
 * @param {string} file
 * @param {string} content
 * @param {number} [mode]
 */
export function put(file, content, mode = 0o644) {
  try {
    if (readFileSync(file, 'utf8') === content) return;
  } catch {
    // Not there yet.
  }
  writeFileSync(`${file}.part`, content, { mode });
  renameSync(`${file}.part`, file);
}
