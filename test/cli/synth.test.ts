import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { cli } from '../support/cli.js';

const root = resolve('.');
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'orka-synth-'));
  cpSync('platform.yaml', join(folder, 'platform.yaml'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Path and text of every file of a folder. */
function contents(of: string): readonly (readonly [string, string])[] {
  return readdirSync(of, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => [path.slice(of.length), readFileSync(path, 'utf8')]);
}

test('check shows the paths of a folder that was named with a slash', () => {
  expect(cli(['check', '--out', 'none/'], { cwd: folder }).stdout).toMatch(/^none\/apply\/0000-crds.k8s.yaml is not there$/m);
});

test('the committed output is what synth writes', () => {
  expect(cli(['check']).stdout).toBe('');
});

test('the same bytes come out whatever the time zone, the locale, the folder and the environment', () => {
  const env = {
    TZ: 'Pacific/Chatham',
    LANG: 'tr_TR.UTF-8',
    LC_ALL: 'tr_TR.UTF-8',
    CDK8S_DISABLE_SORT: '1',
    CDK8S_RECORD_CONSTRUCT_METADATA: '1',
    CDK8S_LEGACY_HASH: '1',
  };
  expect(cli(['synth'], { cwd: folder, env }).code).toBe(0);
  expect(contents(join(folder, 'dist'))).toEqual(contents(join(root, 'dist')));
});

test('cdk8s synth writes the same bytes', () => {
  cpSync('cdk8s.yaml', join(folder, 'cdk8s.yaml'));
  symlinkSync(join(root, 'lib'), join(folder, 'lib'));
  const { status, stderr } = spawnSync(join(root, 'node_modules/.bin/cdk8s'), ['synth'], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', CDK8S_CHECK_UPGRADE: 'false' },
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(contents(join(folder, 'dist'))).toEqual(contents(join(root, 'dist')));
}, 60_000);

test('only the paths of changed files are on stdout', () => {
  expect(cli(['synth'], { cwd: folder }).stdout.split('\n').filter(Boolean)).toHaveLength(6);
  expect(cli(['synth'], { cwd: folder }).stdout).toBe('');
});

test('a selector that selects nothing is a warning on stderr, and a comment in review', () => {
  const settings = '\ndns: {podLabels: {k8s-app: node-local-dns}, addresses: [169.254.20.10/32]}\n';
  writeFileSync(join(folder, 'platform.yaml'), readFileSync('platform.yaml', 'utf8') + settings);
  const { code, stderr } = cli(['synth'], { cwd: folder });
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /^warning: platform.yaml: classes.codex-standard.network.dns.podLabels: k8s-app: node-local-dns selects/,
  );
  expect(readFileSync(join(folder, 'dist/review/codex-standard.workspace.yaml'), 'utf8')).toContain(
    '# Warning: network.dns.podLabels',
  );
  expect(cli(['check'], { cwd: folder }).code).toBe(0);
});

describe('check', () => {
  test('shows the lines of a stale file and exits with 1', () => {
    cli(['synth'], { cwd: folder });
    writeFileSync(
      join(folder, 'platform.yaml'),
      readFileSync('platform.yaml', 'utf8').replace('controller:\n  #', 'controller:\n  replicas: 2\n  #'),
    );
    const { code, stdout } = cli(['check'], { cwd: folder });
    expect(code).toBe(1);
    expect(stdout).toContain('dist/apply/0001-install.k8s.yaml is not what synth writes');
    expect(stdout).toMatch(/^- {2}replicas: 1\n\+ {2}replicas: 2$/m);
  });

  test('names every missing file of an output that was never written', () => {
    const { code, stdout } = cli(['check'], { cwd: folder });
    expect(code).toBe(1);
    expect(stdout).toContain('dist/kustomization.yaml is not there');
  });
});

describe('refused with exit code 2, one message and nothing written:', () => {
  test.each([
    ['a platform that is not there', ['synth', '--platform', 'none.yaml'], /^error: none.yaml: no such file or directory$/m],
    ['an unknown command', ['render'], /unknown command 'render'/],
    ['an unknown option', ['synth', '--force'], /unknown option '--force'/],
  ])('%s', (_, args, message) => {
    const { code, stderr, stdout } = cli(args, { cwd: folder });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(existsSync(join(folder, 'dist'))).toBe(false);
  });

  test('a platform with an unknown key', () => {
    writeFileSync(join(folder, 'platform.yaml'), `${readFileSync('platform.yaml', 'utf8')}colour: red\n`);
    const { code, stderr } = cli(['synth'], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: platform.yaml: colour: found "red", allowed: /);
    expect(existsSync(join(folder, 'dist'))).toBe(false);
  });

  test.each([
    ['below a file', 'platform.yaml/g', 'error: platform.yaml/g: cannot be read: a part of the path is not a directory\n'],
    ['where no folder can be made', '/proc/x', 'error: /proc/x: cannot be written: no such file or directory\n'],
    ['that is a file', 'platform.yaml', 'error: platform.yaml: found "a file", allowed: a folder, or nothing\n'],
  ])('an output folder %s', (_, out, stderr) => {
    expect(cli(['synth', '--out', out], { cwd: folder })).toEqual({ code: 2, stdout: '', stderr });
    if (out === 'platform.yaml/g') expect(cli(['check', '--out', out], { cwd: folder })).toEqual({ code: 2, stdout: '', stderr });
  });

  test('a platform for cdk8s synth, by our message and no stack', () => {
    writeFileSync(join(folder, 'platform.yaml'), `${readFileSync('platform.yaml', 'utf8')}colour: red\n`);
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'lib/main.js')], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(/^error: platform.yaml: colour: .*\n$/) });
    expect(existsSync(join(folder, 'dist'))).toBe(false);
  });

  test('an output folder that belongs to someone else', () => {
    mkdirSync(join(folder, 'dist'));
    writeFileSync(join(folder, 'dist/notes.txt'), 'mine');
    const { code, stderr } = cli(['synth'], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain('notes.txt');
    expect(readdirSync(join(folder, 'dist'))).toEqual(['notes.txt']);
    expect(readdirSync(folder).sort()).toEqual(['dist', 'platform.yaml']);
  });

  test('an output folder without a name, which is not the working folder', () => {
    const { code, stderr } = cli(['synth', '--out', ''], { cwd: folder });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'error: output folder: found "", allowed: the path of a folder\n',
    });
    expect(readdirSync(folder)).toEqual(['platform.yaml']);
  });
});

test('help shows examples and every exit code, and exits with 0', () => {
  for (const command of ['synth', 'check', 'plan', 'diff', 'controller']) {
    const { code, stdout } = cli([command, '--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Examples?:\n {2}\$ /);
    expect(stdout).toMatch(/Exit code 0: [^]* 2: [^]*70: a defect of ours/);
  }
});
