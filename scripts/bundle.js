// The command line as one program: loading 170 modules one by one costs more than what a command does.

import { chmodSync, rmSync } from 'node:fs';
import { build } from 'esbuild';

const folder = 'lib/bin';

rmSync(folder, { recursive: true, force: true });
await build({
  entryPoints: { 'orka-workspaces': 'src/cli/main.ts' },
  outdir: folder,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  minifySyntax: true,
  // 14 MB that only some kubeconfigs need; the controller's image leaves it out.
  external: ['@kubernetes/client-node'],
  // cdk8s and yaml are CommonJS and ask for modules of Node.
  banner: { js: "import { createRequire as requireOf } from 'node:module';\nconst require = requireOf(import.meta.url);" },
  logLevel: 'warning',
});
chmodSync(`${folder}/orka-workspaces.js`, 0o755);
