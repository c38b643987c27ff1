import { createTwoFilesPatch } from 'diff';

/** The lines that differ between two texts, as `diff -u` prints them. */
export function lineDiff(
  path: string,
  old: string,
  wanted: string,
  sides: { readonly old: string; readonly wanted: string },
): string {
  return createTwoFilesPatch(path, path, old, wanted, sides.old, sides.wanted, { context: 3 }).split('\n').slice(2).join('\n');
}

const mostLines = 200;

/** A text of at most 200 lines for a terminal. */
export function shortened(text: string): string {
  const lines = text.split('\n');
  return lines.length > mostLines ? `${lines.slice(0, mostLines).join('\n')}\n… ${lines.length - mostLines} more lines\n` : text;
}
