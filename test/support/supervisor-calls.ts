import { setTimeout as sleep } from 'node:timers/promises';
import type { PromptEvent } from '../../src/harness/events.js';
import { HarnessError } from '../../src/harness/errors.js';
import { deltaOrder } from './harness-orders.js';
import type { TaskOrders } from './harness-orders.js';
import { limit } from './pace.js';
import type { ScriptedSupervisor } from './supervisor.js';

/** What a call was refused with; `undefined` = it was not. */
export async function refusal(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
    return undefined;
  } catch (error) {
    if (!(error instanceof HarnessError)) throw error;
    const { status, response } = error;
    const { code, message, classification } = response ?? {};
    return { status, code, class: classification?.class, classification, message };
  }
}

/** The answer of a prompt that was completed. */
export function textOf(events: readonly PromptEvent[]): string | undefined {
  const end = events.at(-1);
  return end?.type === 'completed' ? end.payload.result.content[0]?.text : undefined;
}

/** Waits until the session of a Task is not there any more. */
export async function gone(it: ScriptedSupervisor, task: TaskOrders, within = 15_000): Promise<void> {
  for (const end = Date.now() + limit(within); Date.now() < end;) {
    const { sessions } = await it.status();
    if (!(sessions ?? []).some(({ runtimeSessionID }) => runtimeSessionID === task.runtimeSessionID)) return;
    await sleep(50);
  }
  throw new Error('the session is still there');
}

/** Takes the delta of a prompt that was completed, and returns its state; the session is idle then if nothing was changed. */
export async function takeDelta(it: ScriptedSupervisor, task: TaskOrders, events: readonly PromptEvent[]): Promise<string> {
  const end = events.at(-1);
  if (end?.type !== 'completed') throw new Error(`no prompt that was completed: ${JSON.stringify(end)}`);
  const operation = task.operation('workspace-delta', it.fence, { prompt: true });
  const limits = { maxBytes: 1_000_000, maxEntries: 1000 };
  const { delta } = await it.client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, end, limits));
  return delta.state;
}

/** The rest of a Task whose prompt was completed: its delta, then the deletion of its session. */
export async function finish(it: ScriptedSupervisor, task: TaskOrders, events: readonly PromptEvent[]): Promise<void> {
  await takeDelta(it, task, events);
  await it.client.deleteSession(task.operation('ds', it.fence), task.runtimeSessionID, 'test');
}
