/** How a supervisor ends its sessions after SIGTERM. */
import { describe, expect, test } from '@jest/globals';
import { collect } from '../support/harness-orders.js';
import { gone, takeDelta } from '../support/supervisor-calls.js';
import { scriptedSupervisor } from '../support/supervisor.js';

const patient = { prompts: 20_000, settlement: 20_000 };

describe('a supervisor that is told to end', () => {
  test('lets a running prompt end, and answers the delta request over a new connection', async () => {
    const it = await scriptedSupervisor({ stopGrace: patient });
    const task = await it.session('finishes');
    const stream = await it.start(task, 'wait-for 800');
    const stopped = it.supervisor.stop();
    const events = await collect(stream);
    expect(events.at(-1)?.type).toBe('completed');
    // What the first request used may be closed by now.
    it.client.close();
    expect(await takeDelta(it, task, events)).toBe('no_change');
    expect(await stopped).toBe(true);
    expect(it.folders()).toEqual([]);
    await it.close();
  });

  test('renews the lease of a prompt that still runs', async () => {
    const it = await scriptedSupervisor({ stopGrace: patient });
    const task = await it.session('renewed');
    const stream = await it.start(task, 'wait-for 800');
    const stopped = it.supervisor.stop();
    const lease = task.lease(2);
    const order = {
      runtimeSessionID: task.runtimeSessionID,
      expectedLeaseGeneration: 1,
      lease,
      mcpAuthorization: task.authorization(lease),
    };
    const operation = task.operation('renew-lease-2', it.fence, { prompt: true });
    expect((await it.client.renewLease(operation, order)).lease.generation).toBe(2);
    await takeDelta(it, task, await collect(stream));
    expect(await stopped).toBe(true);
    await it.close();
  });

  test('fails a prompt that takes longer than its grace, and says why', async () => {
    const it = await scriptedSupervisor({ stopGrace: { prompts: 300, settlement: 20_000 } });
    const task = await it.session('too-long');
    const stream = await it.start(task, 'wait');
    const stopped = it.supervisor.stop();
    const end = (await collect(stream)).at(-1);
    expect(end).toMatchObject({
      type: 'failed',
      payload: { code: 'process_shutdown', message: expect.stringContaining('its Pod was told to end') },
    });
    expect(await stopped).toBe(true);
    expect(it.folders()).toEqual([]);
    await it.close();
  });

  test('does not wait for a delta longer than its grace', async () => {
    const it = await scriptedSupervisor({ stopGrace: { prompts: 100, settlement: 100 } });
    const task = await it.session('unasked');
    await it.run(task, 'say OK');
    expect(await it.supervisor.stop()).toBe(true);
    expect(it.folders()).toEqual([]);
    await it.close();
  });

  test('ends at once when none of its sessions has a prompt', async () => {
    const it = await scriptedSupervisor({ stopGrace: { prompts: 600_000, settlement: 600_000 } });
    const task = await it.session('idle');
    const stopped = it.supervisor.stop();
    await gone(it, task).catch(() => undefined);
    expect(await stopped).toBe(true);
    await it.close();
  });
});
