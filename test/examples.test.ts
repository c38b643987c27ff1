import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { admit } from '../src/domain/admission/admit.js';
import { available } from '../src/domain/available.js';
import { agentKind, taskKind, validate, withDefaults } from '../src/api/index.js';
import type { Agent, Task } from '../src/api/index.js';
import { readYaml } from '../src/render/yaml-read.js';

const run = (command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}) =>
  spawnSync(command, args, { cwd, encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '', ...env } });

test.each(['smoke.yaml', 'repository.yaml'])('the API server takes %s, and the controller admits its Task', (name) => {
  const objects = readYaml(readFileSync(join('examples', name), 'utf8'), name).map(
    ({ value }) => value as { readonly kind: string },
  );
  const agent = objects.find(({ kind }) => kind === 'Agent') as Agent | undefined;
  const task = objects.find(({ kind }) => kind === 'Task') as Task | undefined;
  expect([...validate(agentKind, agent), ...validate(taskKind, task)]).toEqual([]);
  const switches = { agentSandboxEnabled: true, workspaceDispatchEnabled: true, defaultProvider: '', forges: ['github.com'] };
  const stored = withDefaults(taskKind, { ...task, metadata: { ...task?.metadata, uid: 'task-1' } } as never);
  expect(admit({ task: stored, agent, hosting: { ...switches, available } })).toBeUndefined();
});

test('the example app compiles against the package as it is published, and renders', () => {
  const out = mkdtempSync(join(tmpdir(), 'orka-example-'));
  try {
    const app = resolve('examples/own-app');
    const compiled = run(
      process.execPath,
      [resolve('node_modules/typescript/bin/tsc'), '-p', app, '--outDir', join(out, 'app')],
      app,
    );
    expect({ status: compiled.status, stdout: compiled.stdout }).toEqual({ status: 0, stdout: '' });
    symlinkSync(resolve('node_modules'), join(out, 'node_modules'));
    symlinkSync(resolve('package.json'), join(out, 'package.json'));
    symlinkSync(resolve('lib'), join(out, 'lib'));
    const rendered = run(process.execPath, [join(out, 'app/main.js')], out, { CDK8S_OUTDIR: join(out, 'dist') });
    expect({ status: rendered.status, stderr: rendered.stderr }).toEqual({ status: 0, stderr: '' });
    expect(readdirSync(join(out, 'dist'))).toEqual(['agents.k8s.yaml']);
    expect(readFileSync(join(out, 'dist/agents.k8s.yaml'), 'utf8')).toMatchSnapshot();
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}, 120_000);
