import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';

/** Lints a text as if it stood in a file of the room. */
function complaints(room: string, text: string, file = 'index.ts'): string {
  const { stdout } = spawnSync(
    process.execPath,
    ['node_modules/eslint/bin/eslint.js', '--stdin', '--stdin-filename', `src/${room}/${file}`, '--format', 'json'],
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

test('the protocol of sources reaches neither the harness nor the process that serves it', () => {
  const upwards = ['../harness/errors.js', '../publisher/main.js'].map((from) => `export * from '${from}';\n`).join('');
  const found = complaints('source', `${upwards}export * from '../lib/errors.js';\n`, 'protocol.ts');
  expect(found.match(/may not import upwards/g)).toHaveLength(2);
}, 120_000);
