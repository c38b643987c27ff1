import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';

/** Lints a text as if it stood in a file of the room. */
function complaints(room: string, text: string): string {
  const { stdout } = spawnSync(
    process.execPath,
    ['node_modules/eslint/bin/eslint.js', '--stdin', '--stdin-filename', `src/${room}/index.ts`, '--format', 'json'],
    {
      encoding: 'utf8',
      input: text,
      env: { ...process.env, NODE_OPTIONS: '' },
    },
  );
  return stdout;
}

test('an import upwards is refused, one downwards is not', () => {
  expect(complaints('api', "export { compile } from '../render/compile.js';\n")).toContain('may not import upwards');
  expect(complaints('render', "export { CodedError } from '../lib/errors.js';\n")).not.toContain('may not import upwards');
}, 120_000);
