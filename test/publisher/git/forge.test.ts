import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { bareRepository, commitTree, credentialOf, readToken, testForge, writeToken } from '../../support/forge.js';
import type { TestForge } from '../../support/forge.js';

let forge: TestForge;
let folder: string;
let oid: string;

beforeAll(async () => {
  forge = await testForge();
  folder = mkdtempSync(path.join(tmpdir(), 'forge-client-'));
  writeFileSync(path.join(folder, 'ca.pem'), forge.ca);
  oid = commitTree(bareRepository(forge.root, 'acme/app.git'), [{ path: 'README.md', content: 'hello\n' }]);
});

afterAll(async () => {
  await forge.close();
  rmSync(folder, { recursive: true });
});

async function run(args: readonly string[], token: string): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(
    'git',
    ['-c', `http.sslCAInfo=${folder}/ca.pem`, '-c', `http.extraHeader=${credentialOf(token)}`, ...args],
    {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: folder, GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_NOSYSTEM: '1' },
    },
  );
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const status = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { status, stdout, stderr };
}

test('the forge serves a read token, refuses a wrong one, and lets only the write token push', async () => {
  const url = `https://${forge.at}/acme/app.git`;
  expect(await run(['ls-remote', url, 'HEAD'], readToken)).toMatchObject({ status: 0, stdout: `${oid}\tHEAD\n` });
  expect((await run(['ls-remote', url], 'wrong')).status).not.toBe(0);
  expect((await run(['clone', '--quiet', url, 'app'], readToken)).status).toBe(0);
  expect((await run(['-C', 'app', 'push', '--quiet', url, 'HEAD:refs/heads/read'], readToken)).stderr).toContain('403');
  expect((await run(['-C', 'app', 'push', '--quiet', url, 'HEAD:refs/heads/write'], writeToken)).status).toBe(0);
  expect(forge.requests()).toContainEqual({
    method: 'GET',
    path: '/acme/app.git/info/refs?service=git-upload-pack',
    authorized: false,
  });
  expect(JSON.stringify(forge.requests())).not.toContain(readToken);
});

test('a fault is switched on over the control port and off again', async () => {
  const control = `http://127.0.0.1:${forge.controlPort}/-/switch`;
  const url = `https://${forge.at}/acme/app.git`;
  await fetch(control, { method: 'POST', body: JSON.stringify({ mode: '403' }) });
  expect((await run(['ls-remote', url], readToken)).stderr).toContain('403');
  expect((await fetch(control, { method: 'POST', body: '{"mode":"unknown"}' })).status).toBe(400);
  await fetch(control, { method: 'POST', body: JSON.stringify({ mode: 'ok' }) });
  expect((await run(['ls-remote', url], readToken)).status).toBe(0);
});

test('the forge runs as a program with its settings in the environment', () => {
  const { status, stderr } = spawnSync(process.execPath, ['test/cluster/forge/server.js'], { env: {}, encoding: 'utf8' });
  expect(status).toBe(1);
  expect(stderr).toContain('FORGE_ROOT is not set');
});
