import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { limit } from './support/pace.js';

interface Package {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

const program = `import { App, Chart } from 'cdk8s';
import { SandboxClaim, SandboxTemplate, SandboxWarmPool } from 'orka-workspaces';
import { taskKind, validate } from 'orka-workspaces/api';
import { manifestsOf, toYamlStream } from 'orka-workspaces/render';
import type { PodSpec } from 'orka-workspaces';
import type { Task } from 'orka-workspaces/api';
import type { Sandbox } from 'orka-workspaces/imports/agents.x-k8s.io';

export type Names = Task['metadata']['name'] | Sandbox['kind'];
const spec: PodSpec = { containers: [{ name: 'agent', image: 'registry.example/agent@sha256:${'a'.repeat(64)}' }] };
const app = new App();
const chart = new Chart(app, 'agents', { namespace: 'team-a' });
const template = new SandboxTemplate(chart, 'template', { metadata: { name: 'coder' }, podTemplate: { spec } });
const warmPool = new SandboxWarmPool(chart, 'pool', { metadata: { name: 'coder' }, template, replicas: 1 });
new SandboxClaim(chart, 'claim', { metadata: { name: 'coder-1' }, warmPool });
if (validate(taskKind, {}).length === 0) throw new Error('an empty object is no Task');
app.synth();
console.log(toYamlStream(manifestsOf(chart)));
`;

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'orka-consumers-'));
  succeeds('npm', ['pack', '--ignore-scripts', '--offline', '--pack-destination', folder], process.cwd());
  const [name = '', version = ''] = ['name', 'version'].map((key) => packageOf<Record<string, string>>()[key]);
  succeeds('tar', ['xzf', `${name}-${version}.tgz`], folder);
}, limit(60_000));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const packageOf = <T>() => JSON.parse(readFileSync('package.json', 'utf8')) as T;

function succeeds(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    timeout: limit(60_000),
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  expect({ command, args, status, output: status === 0 ? '' : stdout + stderr }).toMatchObject({ status: 0 });
  return stdout;
}

/** A project beside this one that installed the packed package, its dependencies and TypeScript, and nothing else. */
function project(name: string, manifest: object, tsconfig: string): string {
  const root = join(folder, name);
  const { dependencies, peerDependencies } = packageOf<Package>();
  mkdirSync(root);
  cpSync(join(folder, 'package'), join(root, 'node_modules/orka-workspaces'), { recursive: true });
  for (const one of [...Object.keys({ ...dependencies, ...peerDependencies }), '@types/node', 'typescript']) {
    const link = join(root, 'node_modules', one);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(resolve('node_modules', one), link);
  }
  writeFileSync(join(root, 'package.json'), JSON.stringify({ name, private: true, ...manifest }));
  if (tsconfig !== '') writeFileSync(join(root, 'tsconfig.json'), tsconfig);
  writeFileSync(join(root, 'main.ts'), program);
  return root;
}

const tsc = (root: string, args: readonly string[]) =>
  succeeds(process.execPath, [resolve('node_modules/typescript/bin/tsc'), ...args], root);

/** Compiles and runs a project. Types of all that it reaches are checked, also where its settings skip that. */
function compiledAndRun(root: string): string {
  tsc(root, ['-p', '.', '--skipLibCheck', 'false']);
  const printed = succeeds(process.execPath, ['main.js'], root);
  expect(readFileSync(join(root, 'dist/agents.k8s.yaml'), 'utf8')).toContain('kind: SandboxClaim');
  return printed;
}

describe('the packed package compiles and synthesizes in', () => {
  const ownApp = /^apiVersion: extensions.agents.x-k8s.io\/v1beta1\nkind: SandboxTemplate\n[^]*kind: SandboxClaim\n/;

  test(
    'the project of cdk8s init typescript-app: CommonJS, node10 resolution',
    () => {
      const template = resolve('node_modules/cdk8s-cli/templates/typescript-app/tsconfig.json');
      const root = project('typescript-app', { main: 'main.js', types: 'main.ts' }, readFileSync(template, 'utf8'));
      expect(compiledAndRun(root)).toMatch(ownApp);
      expect(readFileSync(join(root, 'main.js'), 'utf8')).toContain('require("orka-workspaces/render")');
    },
    limit(90_000),
  );

  test(
    'a Jest that compiles to CommonJS, with the settings of the README',
    () => {
      const [, settings = ''] = /^```js\n(transform: .*?)^```$/ms.exec(readFileSync('README.md', 'utf8')) ?? [];
      const compiler = JSON.stringify(resolve('node_modules/@swc/jest'));
      const ours = settings
        .replaceAll("'ts-jest'", compiler)
        .replace(/\{ tsconfig: .* diagnostics: false \}/, "{ module: { type: 'commonjs' } }");
      expect(ours.split(compiler)).toHaveLength(3);
      const root = project('jest', {}, '{"compilerOptions": {"module": "CommonJS", "target": "ES2017", "skipLibCheck": true}}');
      tsc(root, ['-p', '.']);
      writeFileSync(join(root, 'jest.config.js'), `module.exports = { testMatch: ['**/*.test.js'], ${ours} };`);
      writeFileSync(join(root, 'main.test.js'), "test('is loaded', () => void require('./main.js'));");
      succeeds(process.execPath, [resolve('node_modules/jest/bin/jest.js'), '--ci', '--silent'], root);
    },
    limit(90_000),
  );

  test(
    'a project with the settings of tsc --init: modules, every strict check',
    () => {
      const root = project('init', { type: 'module' }, '');
      tsc(root, ['--init']);
      expect(compiledAndRun(root)).toMatch(ownApp);
    },
    limit(90_000),
  );

  test(
    'a CommonJS project with nodenext resolution',
    () => {
      const root = project('nodenext', {}, JSON.stringify({ compilerOptions: { module: 'nodenext', strict: true } }));
      expect(compiledAndRun(root)).toMatch(ownApp);
    },
    limit(90_000),
  );
});

test('the types of Pods are those of the models that they were written from', () => {
  succeeds(process.execPath, ['scripts/pod-types.js', '--check'], process.cwd());
});
