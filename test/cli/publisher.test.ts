import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Command } from 'commander';
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { publisherOptions } from '../../src/cli/publisher-options.js';
import { publisherSettings } from '../../src/cli/publisher.js';
import { PublisherClient } from '../../src/source/client.js';
import { selfSigned } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { limit } from '../support/pace.js';
import { usualCall } from '../support/publisher.js';

const identity = selfSigned('publisher');
const secrets = ['t', 'o', 'a'].map((letter) => letter.repeat(43)) as [string, string, string];
let root: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'orka-publisher-'));
  for (const name of ['keys', 'data', 'temp']) await mkdir(path.join(root, name));
  const [token, operation, artifact] = secrets;
  const files = { 'controller-token': token, 'operation-capability-secret': operation, 'artifact-capability-secret': artifact };
  for (const [name, text] of Object.entries({ ...files, 'tls.crt': identity.cert, 'tls.key': identity.key }))
    await writeFile(path.join(root, 'keys', name), `${text}\n`);
  await writeFile(path.join(root, 'config.json'), '{"forges":[{"host":"git.example"}]}');
});
afterEach(async () => {
  await rm(root, { recursive: true });
});

interface Run {
  readonly child: ChildProcessWithoutNullStreams;
  readonly output: () => string;
  readonly code: Promise<number | null>;
}

function run(more: Readonly<Record<string, string>> = {}): Run {
  const folders = ['keys', 'data', 'temp'].flatMap((name) => [`--${name}`, path.join(root, name)]);
  const child = spawn(
    process.execPath,
    ['lib/bin/orka-workspaces.js', 'publisher', '--config', path.join(root, 'config.json'), ...folders],
    {
      env: {
        PATH: process.env['PATH'],
        ORKA_PUBLISHER_OPERATION_PORT: '0',
        ORKA_PUBLISHER_ARTIFACT_PORT: '0',
        ORKA_PUBLISHER_PROBE_PORT: '0',
        ORKA_PUBLISHER_GIT: '',
        ...more,
      },
    },
  );
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (text += part.toString()));
  const code = once(child, 'exit').then(([found]) => found as number | null);
  return { child, output: () => text, code };
}

test(
  'the process serves with real git, and ends with 0 on a signal',
  async () => {
    const { child, output, code } = run();
    try {
      await eventually(() => output().includes('"serving"') || child.exitCode !== null);
      const port = /"port":(\d+)/.exec(output())?.[1] ?? output();
      const [controllerToken, capabilitySecret] = secrets;
      const client = new PublisherClient({
        url: `https://127.0.0.1:${port}`,
        ca: identity.cert,
        controllerToken,
        capabilitySecret,
      });
      const found = await client.capabilities(usualCall());
      client.close();
      expect(found.gitVersion).toMatch(/\d+\.\d+/);
      expect(found.forges).toEqual(['git.example']);
      child.kill('SIGTERM');
      expect(await code).toBe(0);
      for (const secret of secrets) expect(output()).not.toContain(secret);
    } finally {
      child.kill('SIGKILL');
    }
  },
  limit(30_000),
);

test.each<[string, () => Promise<void>, string]>([
  ['no config', () => rm(path.join(root, 'config.json')), 'config.json'],
  ['an unknown member', () => writeFile(path.join(root, 'config.json'), '{"forges":[],"force":true}'), 'unknown member'],
  ['a forge that is none', () => writeFile(path.join(root, 'config.json'), '{"forges":[{"host":"A b"}]}'), 'forges[0].host'],
  [
    'a forge twice',
    () => writeFile(path.join(root, 'config.json'), '{"forges":[{"host":"a"},{"host":"a","port":443}]}'),
    'each host and port once',
  ],
  ['a missing key', () => rm(path.join(root, 'keys', 'tls.key')), 'tls.key'],
  ['a token that is a secret too', () => writeFile(path.join(root, 'keys', 'controller-token'), secrets[1]), 'are equal'],
  ['a short secret', () => writeFile(path.join(root, 'keys', 'artifact-capability-secret'), 'short'), 'at least 32 bytes'],
  ['a journal that is a link', () => symlink('/tmp', path.join(root, 'data', 'journal')), 'a link'],
])(
  'it does not start with %s',
  async (_, change, says) => {
    await change();
    const { output, code } = run();
    expect(await code).toBe(2);
    expect(output()).toContain(says);
    for (const secret of secrets) expect(output()).not.toContain(secret);
  },
  limit(30_000),
);

test(
  'it does not start with a port that is none',
  async () => {
    const { output, code } = run({ ORKA_PUBLISHER_PROBE_PORT: 'http' });
    expect(await code).toBe(2);
    expect(output()).toContain('--probe-port');
  },
  limit(30_000),
);

test.each(['OPERATION', 'ARTIFACT', 'PROBE'])(
  'it ends and names the flag when the %s port is taken',
  async (name) => {
    const holder = createServer().listen(0);
    await once(holder, 'listening');
    const { port } = holder.address() as AddressInfo;
    const { child, output, code } = run({ [`ORKA_PUBLISHER_${name}_PORT`]: String(port) });
    try {
      expect(await code).toBe(2);
      expect(output()).toContain(`--${name.toLowerCase()}-port: address already in use: found ${port}`);
    } finally {
      child.kill('SIGKILL');
      holder.close();
    }
  },
  limit(30_000),
);

test('a relative folder is below the working directory of the process', () => {
  const command = new Command();
  for (const option of publisherOptions()) command.addOption(option);
  command.parse(['--data', 'data', '--temp', 'temp'], { from: 'user' });
  const { dataFolder, tempFolder } = publisherSettings(command);
  expect([dataFolder, tempFolder]).toEqual([path.resolve('data'), path.resolve('temp')]);
});
