import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readYaml } from '../src/render/yaml-read.js';

const page = readFileSync('docs/from-kubectl.md', 'utf8');
const blocks = (language: string): readonly string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, text]) => text ?? '');
const [yaml = ''] = blocks('yaml');
const programs = blocks('ts');

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'orka-docs-'));
  for (const name of ['node_modules', 'package.json', 'lib']) symlinkSync(resolve(name), join(folder, name));
  writeFileSync(join(folder, 'coder.yaml'), yaml);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  return { status, stdout, stderr };
};

describe('from kubectl YAML to constructs', () => {
  test('has two programs for one YAML', () => {
    expect([programs.length, blocks('yaml').length]).toEqual([2, 1]);
  });

  test.each([0, 1])(
    'program %d compiles against the package as it is published, and prints the YAML of the page',
    (index) => {
      const file = `program-${index}`;
      writeFileSync(join(folder, `${file}.ts`), programs[index] ?? '');
      const config = {
        extends: resolve('tsconfig.json'),
        compilerOptions: { noEmit: false, allowJs: false, checkJs: false, rootDir: '.', outDir: '.' },
        files: [`${file}.ts`],
        include: [],
      };
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
      expect(run([resolve('node_modules/typescript/bin/tsc'), '-p', folder])).toEqual({ status: 0, stdout: '', stderr: '' });
      const { stdout, ...rest } = run([join(folder, `${file}.js`)]);
      expect(rest).toEqual({ status: 0, stderr: '' });
      expect(readYaml(stdout, 'stdout').map(({ value }) => value)).toEqual(readYaml(yaml, 'page').map(({ value }) => value));
      if (index === 1) expect(stdout).toBe(yaml);
    },
    120_000,
  );

  test('program 0 reads a time of day, an octal number and a quoted flag as kubectl does', () => {
    const changed = yaml
      .replace(
        'restartPolicy: Never',
        'restartPolicy: Never\n      volumes: [{name: a, configMap: {name: a, defaultMode: 0o644}}]',
      )
      .replace('metadata:\n  name: coder\n', 'metadata:\n  annotations: {at: 12:34:56}\n  name: coder\n');
    writeFileSync(join(folder, 'coder.yaml'), changed);
    const { stdout, ...rest } = run([join(folder, 'program-0.js')]);
    expect(rest).toEqual({ status: 0, stderr: '' });
    expect(readYaml(stdout, 'stdout')[0]?.value).toMatchObject({
      metadata: { annotations: { at: '12:34:56' } },
      spec: { podTemplate: { spec: { volumes: [{ name: 'a', configMap: { name: 'a', defaultMode: 420 } }] } } },
    });
    const text = yaml.replace('automountServiceAccountToken: false', 'automountServiceAccountToken: "false"');
    writeFileSync(join(folder, 'coder.yaml'), text);
    expect(run([join(folder, 'program-0.js')]).stderr).toContain(
      'coder/template: spec.podTemplate.spec.automountServiceAccountToken: found "false", allowed: true or false',
    );
  });
});
