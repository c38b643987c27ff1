/** The cdk8s app: `platform.yaml` becomes `dist/`. cdk8s runs it and says where to write. */
import { readFileSync } from 'node:fs';
import { failureOf } from './lib/failure.js';
import { distFiles } from './render/dist.js';
import { writeOutput } from './render/output.js';
import { readPlatform } from './render/platform.js';

const file = 'platform.yaml';
try {
  writeOutput(process.env['CDK8S_OUTDIR'] ?? 'dist', distFiles(readPlatform(readFileSync(file, 'utf8'), file)));
} catch (error) {
  process.stderr.write(`error: ${failureOf(error).text}\n`);
  process.exitCode = 2;
}
