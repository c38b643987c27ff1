/**
 * A process that leads: it watches, and creates a ConfigMap for each object that it hears of. A line on stdout says what came of each. Bundled and
 * started by the test that stops it.
 */
import { KubeError } from '../../src/kube/errors.js';
import { createClient } from '../../src/kube/client.js';
import { create } from '../../src/kube/create.js';
import { elect } from '../../src/kube/lease.js';
import { createTransport } from '../../src/kube/transport.js';
import { whileLeading } from '../../src/kube/while-leading.js';

const tell = (line: string) => process.stdout.write(`${line}\n`);
const [server = ''] = process.argv.slice(2);
const transport = createTransport({ server, credentials: () => ({}) });
const client = createClient(transport);
const election = elect(client, {
  namespace: 'a',
  name: 'l',
  manager: 'm',
  highestEpoch: () => Promise.resolve(0),
  onLost: () => tell('lost'),
  onError: (error) => tell(`error ${String(error)}`),
  duration: 2_000,
  renewEvery: 200,
  renewWithin: 1_000,
});
const leadership = await election.leading;
if (!leadership) throw new Error('it was released');
const writer = whileLeading(client, leadership.holds);
// Kinds are known, and a connection is there, before anything is written.
await writer.pathOf({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'a' });
tell('leads');
for await (const heard of transport.stream({ path: '/heard', inactivity: 60_000 })) {
  const name = heard['name'] as string;
  create(writer, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'a' } }, { manager: 'm' }).then(
    () => tell(`wrote ${name}`),
    (error: unknown) => tell(`refused ${name} ${error instanceof KubeError ? error.code : String(error)}`),
  );
}
