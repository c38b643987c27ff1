/** One line of an agent as a JSON-RPC 2.0 message. */
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';

export type RpcId = number | string | null;

export type RpcAnswer =
  | { readonly kind: 'result'; readonly id: RpcId; readonly result: Json }
  | { readonly kind: 'error'; readonly id: RpcId; readonly error: Json };

type RpcMessage =
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject }
  | { readonly kind: 'request'; readonly id: RpcId; readonly method: string; readonly params: JsonObject }
  | RpcAnswer;

/**
 * `undefined` for a line that is no JSON-RPC 2.0 message: a text, a batch, a line of a log. A message with an id and neither method, result
 * nor error is no answer. One with an error is an error, with or without a result.
 */
export function readMessage(line: string): RpcMessage | undefined {
  const message = parse(line);
  if (!isObject(message) || message['jsonrpc'] !== '2.0') return undefined;
  const { id, method, params, error, result } = message;
  if (typeof method === 'string') {
    const given = isObject(params) ? params : {};
    if (id === undefined) return { kind: 'notification', method, params: given };
    return isId(id) ? { kind: 'request', id, method, params: given } : undefined;
  }
  if (!isId(id)) return undefined;
  if (error !== undefined && error !== null) return { kind: 'error', id, error };
  return result === undefined ? undefined : { kind: 'result', id, result };
}

const longestId = 1024;

function isId(id: Json | undefined): id is RpcId {
  return id === null || typeof id === 'number' || (typeof id === 'string' && id.length <= longestId);
}

function parse(line: string): Json | undefined {
  try {
    return JSON.parse(line) as Json;
  } catch {
    return undefined;
  }
}
