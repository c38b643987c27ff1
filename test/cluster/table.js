// Columns for people.

/** @param {readonly (readonly string[])[]} rows @param {string} [indent] @returns {string} */
export function table(rows, indent = '') {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows
    .map((row) => `${indent}${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd())
    .join('\n');
}
