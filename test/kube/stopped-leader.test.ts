/** A leader that is stopped for longer than its Lease, as by a pause of its machine, and goes on while another one leads. */
import { afterEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';
import { createClient } from '../../src/kube/client.js';
import { elect } from '../../src/kube/lease.js';
import { createTransport } from '../../src/kube/transport.js';
import { eventually } from '../support/eventually.js';
import { fakeApi } from '../support/fake-api.js';
import { fakeObjects } from '../support/fake-objects.js';

const folder = mkdtempSync(path.join(tmpdir(), 'leader-'));
const program = path.join(folder, 'leader.mjs');
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  rmSync(folder, { recursive: true, force: true });
});

interface StoppedLeader {
  readonly process: ChildProcess;
  readonly said: () => string;
  /** Lets it hear of something that it writes about. */
  readonly tell: (name: string) => void;
  readonly written: () => readonly string[];
}

async function leader(): Promise<StoppedLeader & { readonly url: string }> {
  const objects = fakeObjects();
  let heard: ServerResponse | undefined;
  const api = await fakeApi((request, response) => {
    if (request.path !== '/heard') objects.answer(request, response);
    else {
      heard = response.writeHead(200, { 'content-type': 'application/json' });
      response.flushHeaders();
    }
  });
  ends.push(() => api.close());
  await build({
    entryPoints: [new URL('../support/leader.ts', import.meta.url).pathname],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  });
  const child = spawn(process.execPath, [program, api.url], { stdio: ['ignore', 'pipe', 'inherit'] });
  ends.push(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await eventually(() => said.includes('leads') && heard !== undefined);
  return {
    url: api.url,
    process: child,
    said: () => said,
    tell: (name) => heard?.write(`${JSON.stringify({ name })}\n`),
    written: () => objects.list('/api/v1/namespaces/a/configmaps').map(({ metadata }) => metadata.name),
  };
}

/** Stops it until another one leads; what it hears meanwhile is the first thing that it sees when it goes on. */
async function standStill({ process: child, url, tell }: StoppedLeader & { readonly url: string }): Promise<void> {
  child.kill('SIGSTOP');
  const transport = createTransport({ server: url, credentials: () => ({}) });
  const next = elect(createClient(transport), {
    namespace: 'a',
    name: 'l',
    manager: 'm',
    highestEpoch: () => Promise.resolve(0),
    onLost: () => undefined,
    onError: () => undefined,
    duration: 2_000,
    renewEvery: 200,
    renewWithin: 1_000,
    lookEvery: 50,
  });
  ends.push(async () => {
    await next.release();
    transport.close();
  });
  expect((await next.leading)?.epoch).toBe(2);
  tell('late');
  child.kill('SIGCONT');
}

test('writes nothing any more when it goes on, before any of its timers runs', async () => {
  const it = await leader();
  it.tell('in-time');
  await eventually(() => it.said().includes('wrote in-time'));
  await standStill(it);
  await eventually(() => it.said().includes('late'));
  expect(it.said()).toContain('refused late aborted');
  await eventually(() => it.said().includes('lost'));
  expect(it.written()).toEqual(['in-time']);
});
