// A controller that ends itself, as if the machine had, when an effect of a pool begins or has been performed, or stands still or ends when a
// request of an attempt begins or has been answered. Started by `doomed.ts`, which tells it over the channel between them what to run, and when.

import { subscribe } from 'node:diagnostics_channel';
import dns from 'node:dns';
import { writeSync } from 'node:fs';

/** @typedef {import('./doomed.js').Order} Order */
/** @typedef {import('./doomed.js').Trace} Trace */

/** @type {Order['dies']} */
let dies;
/** @type {Order['interrupted']} */
let interrupted;
/** @type {Order['halts']} */
let halts;
/** @type {Promise<Order>} */
const ordered = new Promise((resolve) => {
  process.on('message', (/** @type {Order} */ order) => {
    dies = order.dies;
    interrupted = order.interrupted;
    halts = order.halts;
    resolve(order);
  });
});
// Nobody is left who would end it.
process.on('disconnect', () => process.exit(1));

// What is shipped is run; its types are those of what it is built from.
const lib = new URL('../../../lib/', import.meta.url);
const { runController } = /** @type {typeof import('../../../src/controller/manager.js')} */ (
  await import(new URL('controller/manager.js', lib).href)
);
const { headers } = /** @type {typeof import('../../../src/harness/protocol.js')} */ (
  await import(new URL('harness/protocol.js', lib).href)
);
const { paths } = /** @type {typeof import('../../../src/harness/paths.js')} */ (
  await import(new URL('harness/paths.js', lib).href)
);

/** Written at once: nothing of it is lost when the process ends. @param {Trace} line */
const trace = (line) => writeSync(3, `${JSON.stringify(line)}\n`);

/** @typedef {{ readonly method: string, readonly path: string, readonly host: string, readonly getHeader: (name: string) => unknown }} Sent */
/** @param {Sent} request @returns {{ readonly to: string, readonly nonce: string } | undefined} the delivery of credentials that it is */
function deliveryOf(request) {
  if (request.method !== 'PUT' || request.path !== paths.bootstrap) return undefined;
  return { to: request.host, nonce: String(request.getHeader(headers.bootstrapNonce)) };
}
/** @type {readonly (readonly [method: string, path: RegExp, step: import('./doomed.js').AttemptRequest])[]} */
const steps = [
  ['PUT', /^[^/]+$/, 'session'],
  ['DELETE', /^[^/]+$/, 'deletion'],
  ['PUT', /^[^/]+\/prompts\/[^/]+$/, 'prompt'],
  ['PUT', /^[^/]+\/prompts\/[^/]+\/cancel$/, 'cancel'],
  ['PUT', /^[^/]+\/workspace-deltas\/[^/]+$/, 'delta'],
];

/** @param {Sent} request @param {import('./doomed.js').Step['phase']} phase */
function come({ method, path }, phase) {
  const below = path.startsWith(`${paths.sessions}/`) ? path.slice(paths.sessions.length + 1) : '';
  const step = steps.find(([verb, pattern]) => verb === method && pattern.test(below))?.[2];
  const taskUID = /^runtime-session-(.+)-g1(?:\/|$)/.exec(below)?.[1];
  if (!step || taskUID === undefined) return;
  trace({ taskUID, step, phase });
  if (interrupted?.taskUID !== taskUID || interrupted.step !== step || interrupted.phase !== phase) return;
  const { by } = interrupted;
  interrupted = undefined;
  process.kill(process.pid, by);
}

subscribe('http.client.request.start', (message) => {
  const { request } = /** @type {{ request: Sent }} */ (message);
  const delivery = deliveryOf(request);
  if (delivery) trace({ sent: delivery });
  come(request, 'begins');
});
subscribe('http.client.response.finish', (message) => {
  const { request, response } = /** @type {{ request: Sent, response: { statusCode: number } }} */ (message);
  const delivery = deliveryOf(request);
  if (delivery) trace({ answered: { ...delivery, status: response.statusCode } });
  come(request, 'answered');
});

const { settings, access, hosts = {} } = await ordered;

const { lookup } = dns;
/** Finds the Services of the cluster, whose DNS this machine does not ask. */
const lookupWithHosts = (/** @type {string} */ name, /** @type {dns.LookupOptions} */ options, /** @type {Function} */ found) => {
  const address = hosts[name];
  if (address === undefined) lookup(name, options, /** @type {never} */ (found));
  else if (options.all) found(null, [{ address, family: 4 }]);
  else found(null, address, 4);
};
dns.lookup = /** @type {typeof dns.lookup} */ (/** @type {unknown} */ (lookupWithHosts));

const { server, ca, token } = access;
const code = await runController(
  settings,
  { server, credentials: () => ({ ca, token }) },
  {
    onEffect: (effect, phase) => {
      trace({ effect, phase });
      if (dies?.effect === effect && dies.phase === phase) process.kill(process.pid, 'SIGKILL');
    },
    onStep: (taken, phase) => {
      trace({ taken, phase });
      if (halts?.taken !== taken || halts.phase !== phase) return;
      const { by } = halts;
      halts = undefined;
      process.kill(process.pid, by);
    },
  },
);
// The channel would keep it.
process.exit(code);
