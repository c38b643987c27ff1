import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { distFiles } from '../render/dist.js';
import { compareOutput } from '../render/output.js';
import { readPlatform } from '../render/platform.js';
import { readInput } from './files.js';

const says = {
  missing: 'is not there',
  stale: 'is not what synth writes',
  foreign: 'was not written by synth',
  'left-over': 'is no longer written by synth',
} as const;

export function check({ platform, out }: { readonly platform: string; readonly out: string }): void {
  const files = distFiles(readPlatform(readInput(platform), platform));
  const differences = compareOutput(out, files);
  for (const { path, kind } of differences) {
    process.stdout.write(`${out}/${path} ${says[kind]}\n`);
    const wanted = files.find((file) => file.path === path)?.text;
    if (kind === 'stale' && wanted !== undefined) process.stdout.write(lineDiff(readFileSync(join(out, path), 'utf8'), wanted));
  }
  if (differences.length === 0) process.stderr.write(`${out}: up to date\n`);
  else process.exitCode = 1;
}

const context = 3;
const mostLines = 200;

/** The lines that differ between two texts, with a little around them; common start and end are left out. */
function lineDiff(old: string, wanted: string): string {
  const [a, b] = [old.split('\n'), wanted.split('\n')];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const lines = [
    ...a.slice(Math.max(0, start - context), start).map((line) => `  ${line}`),
    ...a.slice(start, a.length - end).map((line) => `- ${line}`),
    ...b.slice(start, b.length - end).map((line) => `+ ${line}`),
    ...a.slice(a.length - end, a.length - end + context).map((line) => `  ${line}`),
  ];
  const shown = lines.length > mostLines ? [...lines.slice(0, mostLines), `  … ${lines.length - mostLines} more lines`] : lines;
  return `@@ line ${start + 1} @@\n${shown.join('\n')}\n`;
}
