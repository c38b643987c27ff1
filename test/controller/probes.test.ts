import { afterEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createMetrics } from '../../src/controller/metrics.js';
import { ProbesError, startProbes } from '../../src/lib/probes.js';
import type { Probes, ProbesOptions } from '../../src/lib/probes.js';

const opened: Probes[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((probes) => probes.close()));
});

async function start(options: Partial<ProbesOptions> = {}): Promise<Probes> {
  const probes = await startProbes({ port: 0, ready: () => true, metrics: createMetrics({ ofProcess: false }), ...options });
  opened.push(probes);
  return probes;
}
const ask = ({ port }: Probes, path: string, method = 'GET') => fetch(`http://127.0.0.1:${port}${path}`, { method });

test('/healthz is 200 also while nothing is ready', async () => {
  expect((await ask(await start({ ready: () => false }), '/healthz')).status).toBe(200);
});

test('/readyz follows what it is told', async () => {
  let ready = false;
  const probes = await start({ ready: () => ready });
  expect((await ask(probes, '/readyz')).status).toBe(503);
  ready = true;
  expect((await ask(probes, '/readyz?verbose')).status).toBe(200);
});

test('/readyz names what keeps a part of the work from being done', async () => {
  const probes = await start({ notes: () => ['may not list tasks.core.orka.ai in namespace team-a'] });
  const answer = await ask(probes, '/readyz');
  expect([answer.status, await answer.text()]).toEqual([200, 'ok\nmay not list tasks.core.orka.ai in namespace team-a\n']);
});

test('/metrics is what a scraper reads', async () => {
  const metrics = createMetrics({ ofProcess: false });
  metrics.request('GET', 200);
  const answer = await ask(await start({ metrics }), '/metrics');
  expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  expect(await answer.text()).toContain('rest_client_requests_total{method="GET",code="200"} 1');
});

test.each([
  ['GET', '/'],
  ['GET', '/healthz/'],
  ['GET', '/constructor'],
  ['GET', '/debug/pprof'],
  ['POST', '/metrics'],
  ['HEAD', '/healthz'],
])('%s %s is 404', async (method, path) => {
  expect((await ask(await start(), path, method)).status).toBe(404);
});

test('a question that cannot be answered is 500, and the next one is answered', async () => {
  const probes = await start({
    ready: () => {
      throw new Error('hunter2');
    },
  });
  const answer = await ask(probes, '/readyz');
  expect([answer.status, await answer.text()]).toEqual([500, 'failed\n']);
  expect((await ask(probes, '/healthz')).status).toBe(200);
});

test('headers of more than 8 KiB are refused', async () => {
  const probes = await start();
  const answer = await fetch(`http://127.0.0.1:${probes.port}/healthz`, { headers: { 'x-long': 'x'.repeat(10_000) } });
  expect(answer.status).toBe(431);
});

test('a port that is in use is an error with the flag and the port', async () => {
  const { port } = await start();
  const second = startProbes({ port, ready: () => true, metrics: createMetrics({ ofProcess: false }) });
  await expect(second).rejects.toThrow(ProbesError);
  await expect(second).rejects.toThrow(`controller: --probe-port: address already in use: found ${port}, allowed: a free port`);
});

test('closing ends a connection that is in use, and may be done twice', async () => {
  const probes = await start();
  const socket = connect(probes.port, '127.0.0.1');
  const answered = once(socket, 'data');
  socket.write('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\nGET /healthz HTTP/1.1\r\n');
  await answered;
  const ended = once(socket, 'close');
  await Promise.all([probes.close(), probes.close()]);
  await ended;
  await expect(ask(probes, '/healthz')).rejects.toThrow();
});
