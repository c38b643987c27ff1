import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { distFiles } from '../render/dist.js';
import { compareOutput } from '../render/output.js';
import { readPlatform } from '../render/platform.js';
import { inputName, readInput } from './files.js';
import { lineDiff, shortened } from './line-diff.js';

const says = {
  missing: 'is not there',
  stale: 'is not what synth writes',
  foreign: 'was not written by synth',
  'left-over': 'is no longer written by synth',
} as const;

const sides = { old: 'committed', wanted: 'rendered' };

export function check({ platform, out }: { readonly platform: string; readonly out: string }): void {
  const files = distFiles(readPlatform(readInput(platform), inputName(platform)), inputName(platform));
  const differences = compareOutput(out, files);
  for (const { path, kind } of differences) {
    const shown = join(out, path);
    process.stdout.write(`${shown} ${says[kind]}\n`);
    const wanted = files.find((file) => file.path === path)?.text;
    if (kind === 'stale' && wanted !== undefined)
      process.stdout.write(shortened(lineDiff(shown, readFileSync(shown, 'utf8'), wanted, sides)));
  }
  if (differences.length === 0) process.stderr.write(`${out}: up to date\n`);
  else process.exitCode = 1;
}
