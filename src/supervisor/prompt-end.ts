import type { JsonObject } from '../lib/json.js';
import { isObject } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import { outcomes } from '../harness/prompts.js';
import type { Usage } from '../harness/events.js';
import type { Settlement } from '../harness/prompts.js';
import { fitBytes, isBlank } from '../lib/text.js';
import { AcpError } from './acp.js';
import type { EventBody } from './event-writer.js';
import { readUsage } from './updates.js';

/** The last event of a prompt. */
export type TerminalBody = Extract<EventBody, { readonly type: 'completed' | 'cancelled' | 'failed' | 'outcome_unknown' }>;

const failures: ReadonlyMap<string, string> = new Map([
  ['max_tokens', 'token_limit'],
  ['max_turn_requests', 'turn_limit'],
  ['refusal', 'refusal'],
]);

/** What a user does about a prompt that needs more turns. */
export const raiseMaxTurns = 'raise spec.agentRuntime.maxTurns of the Task or spec.runtime.defaultMaxTurns of the Agent';

const nothingSaid = 'Prompt completed without textual output.';

/**
 * What an agent's answer means. Only `end_turn` is a success. `reason`: the prompt was cancelled; then every answer ends it as cancelled,
 * because some agents answer a cancel with `end_turn`. Source: dispatch.md §5.8, runtimes.md §3.2.
 */
export function endOfAnswer(
  answer: Json,
  result: { readonly text: string; readonly model: string; readonly maxBytes: number },
  reason: string | undefined,
): TerminalBody {
  const { stopReason } = isObject(answer) ? answer : ({} as JsonObject);
  if (reason !== undefined || stopReason === 'cancelled') return cancelled(reason);
  if (stopReason === 'end_turn') {
    const text = isBlank(result.text) ? nothingSaid : result.text;
    if (Buffer.byteLength(text) > result.maxBytes) return tooLarge(result.maxBytes);
    return {
      type: 'completed',
      payload: { stopReason, result: { content: [{ type: 'text', text }], model: result.model, usage: usageOf(answer) } },
    };
  }
  const known = typeof stopReason === 'string' ? failures.get(stopReason) : undefined;
  if (known === undefined)
    return failed('unknown_stop_reason', 'the agent stopped for a reason that this protocol does not know');
  return {
    type: 'failed',
    payload: { stopReason: stopReason as string, code: known, message: earlyEnd(known), retryable: false },
  };
}

function earlyEnd(code: string): string {
  return code === 'turn_limit' ? `the agent stopped at its limit of turns; ${raiseMaxTurns}` : 'the agent stopped early';
}

/** Tokens that a prompt cost, as its answer reports them. */
export function usageOf(answer: Json): Usage {
  return isObject(answer) ? readUsage(answer['usage']) : {};
}

/** What a rejected answer means. An error from the agent proves the end: cancelled after a cancel, else failed. Silence proves nothing. */
export function endOfError(error: unknown, reason: string | undefined): TerminalBody {
  const told = error instanceof AcpError && error.code === 'answer';
  if (told) return reason === undefined ? failed('agent_error', error.message) : cancelled(reason);
  return outcomeUnknown(error instanceof Error ? error.message : String(error), false);
}

/** `reason`: why we cancelled it; without one the agent stopped by itself. */
export function cancelled(reason: string | undefined): TerminalBody {
  return { type: 'cancelled', payload: { stopReason: 'cancelled', ...(reason === undefined ? {} : { reason }) } };
}

export function tooLarge(maxBytes: number): TerminalBody {
  return failed('terminal_result_too_large', `the answer has more than ${maxBytes} bytes`);
}

export function failed(code: string, message: string): TerminalBody {
  return { type: 'failed', payload: { code, message: fitBytes(message, 4096, '…'), retryable: false } };
}

export function outcomeUnknown(message: string, forcedTermination: boolean): TerminalBody {
  return {
    type: 'outcome_unknown',
    payload: { code: 'settlement_unproven', message: fitBytes(message, 4096, '…'), forcedTermination, retryable: false },
  };
}

/** How a prompt is remembered: the stop reason is there only when the agent gave one. */
export function settlementOf(end: TerminalBody, settledAt: string): Settlement {
  const stopReason = 'stopReason' in end.payload ? end.payload.stopReason : undefined;
  return { terminalEvent: end.type, outcome: outcomes[end.type], ...(stopReason === undefined ? {} : { stopReason }), settledAt };
}
