import { counted } from '../lib/text.js';
import { distFiles, platformWarnings } from '../render/dist.js';
import { writeOutput } from '../render/output.js';
import { readPlatform } from '../render/platform.js';
import { inputName, readInput } from './files.js';

export function synth({ platform, out }: { readonly platform: string; readonly out: string }): void {
  const name = inputName(platform);
  const settings = readPlatform(readInput(platform), name);
  const files = distFiles(settings, name);
  for (const warning of platformWarnings(settings, name)) process.stderr.write(`warning: ${warning}\n`);
  const changed = writeOutput(out, files);
  process.stderr.write(
    `${out}: ${counted(files.length, 'file')}, ${changed.length === 0 ? 'none changed' : `${changed.length} changed`}\n`,
  );
  for (const path of changed) process.stdout.write(`${path}\n`);
}
