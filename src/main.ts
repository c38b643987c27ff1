/** The cdk8s app: `platform.yaml` becomes `dist/`. cdk8s runs it and says where to write. */
import { readFileSync } from 'node:fs';
import { failureOf } from './lib/failure.js';
import { distFiles, platformWarnings } from './render/dist.js';
import { writeOutput } from './render/output.js';
import { readPlatform } from './render/platform.js';

const file = 'platform.yaml';
try {
  const platform = readPlatform(readFileSync(file, 'utf8'), file);
  for (const warning of platformWarnings(platform)) process.stderr.write(`warning: ${warning}\n`);
  writeOutput(process.env['CDK8S_OUTDIR'] ?? 'dist', distFiles(platform));
} catch (error) {
  process.stderr.write(`error: ${failureOf(error).text}\n`);
  process.exitCode = 2;
}
