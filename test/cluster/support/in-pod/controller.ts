/**
 * Runs in a Pod that has the place of the controller in the network: one Task, from the delivery of credentials to the end of its
 * session. Reads an order from standard input, prints what came of it.
 */
import { text } from 'node:stream/consumers';
import { createHarnessClient } from '../../../../src/harness/client.js';
import type { BootstrapDelivery } from '../../../../src/harness/client.js';
import type { PromptEvent } from '../../../../src/harness/events.js';
import { instant } from '../../../../src/lib/instant.js';
import { isQuiescent, isStrictlyGoverned } from '../../../../src/harness/introspection.js';
import { collect, deltaOrder, taskOrders } from '../../../support/harness-orders.js';
import type { Runtime } from '../../../support/harness-orders.js';
import { eventually } from '../eventually.js';

export interface SessionOrder {
  readonly baseUrl: string;
  readonly delivery: BootstrapDelivery;
  readonly taskUID: string;
  readonly runtime: Pick<Runtime, 'profile' | 'configuration' | 'mcp'>;
  readonly prompt: string;
}

export interface SessionOutcome {
  /** Status before the delivery, and what the two deliveries were answered with. */
  readonly before: string;
  readonly deliveries: readonly string[];
  readonly runtimeProfileDigest: string;
  readonly strictlyGoverned: boolean;
  readonly fence: { readonly controllerEpoch: number; readonly runtimePoolUID: string; readonly runtimeInstanceID: string };
  readonly events: readonly PromptEvent[];
  readonly delta: string;
  readonly phases: readonly string[];
  readonly quiescent: boolean;
}

async function run({ baseUrl, delivery, taskUID, runtime, prompt }: SessionOrder): Promise<SessionOutcome> {
  const client = createHarnessClient({ baseUrl, credentials: delivery.credentials });
  const before = (await client.health()).status;
  const deliveries = [await client.bootstrap(delivery)];
  // A supervisor opens its port anew after the delivery.
  const capabilities = await eventually('an answer', () => client.capabilities().catch(() => undefined), 30);
  deliveries.push(await client.bootstrap(delivery));
  const { runtimeProfileDigest, limits } = capabilities;
  const { fence } = await client.status({ runtimeProfileDigest });
  const task = taskOrders(taskUID, { ...runtime, profileDigest: runtimeProfileDigest, env: {} });
  await client.createSession(task.operation('create-session', fence), task.session);
  const lease = task.lease();
  const stream = await client.prompt(task.operation('start-prompt', fence, { prompt: true }), {
    runtimeSessionID: task.runtimeSessionID,
    lease,
    mcpAuthorization: task.authorization(lease),
    input: { content: [{ type: 'text', text: prompt }] },
    limits,
  });
  const events = await collect(stream);
  const end = events.at(-1);
  if (!end) throw new Error('the prompt has no event');
  const { delta } = await client.workspaceDelta(
    task.operation('workspace-delta', fence, { prompt: true }),
    task.runtimeSessionID,
    deltaOrder(task, end),
  );
  const deleted = await client.deleteSession(task.operation('delete-session', fence), task.runtimeSessionID, 'task_finalized');
  const drain = { fence, operationID: 'runtime-pool-drain-1', expiresAt: instant(Date.now() + 60_000) };
  await client.drain(drain, 'runtime_pool_scale_to_zero');
  const { runtimeInstanceID } = fence;
  const quiescent = isQuiescent(await client.status({ runtimeProfileDigest, runtimeInstanceID }));
  client.close();
  return {
    before,
    deliveries,
    runtimeProfileDigest,
    strictlyGoverned: isStrictlyGoverned(capabilities),
    fence,
    events,
    delta: delta.state,
    phases: deleted.tombstone.operations.map(({ phase }) => phase),
    quiescent,
  };
}

const outcome = await run(JSON.parse(await text(process.stdin)) as SessionOrder);
process.stdout.write(JSON.stringify(outcome));
