/** What an agent's answer to the creation of its session must say before a prompt is sent. */
import { isObject } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import { AcpError } from './acp.js';

const longestId = 1024;

/** The id of the agent's session. Throws {@link AcpError} `protocol`. */
export function sessionIdOf(answer: Json): string {
  const id = isObject(answer) ? answer['sessionId'] : undefined;
  if (typeof id !== 'string' || id === '' || Buffer.byteLength(id) > longestId)
    throw new AcpError('protocol', {
      at: 'agent',
      field: 'sessionId',
      says: 'there is none, or it is too long',
      allowed: `a text of 1 to ${longestId} bytes`,
    });
  return id;
}

export interface WantedModel {
  /** As its Agent names it. */
  readonly model: string;
  /** Compares in the form of the provider. @default the same text */
  readonly isModel?: ((reported: string, model: string) => boolean) | undefined;
  /** Takes secrets out of a text. */
  readonly redact: (text: string) => string;
}

/** Throws {@link AcpError} `unusable` when the agent reports another current model than the wanted one. It may report none. */
export function checkModel(answer: Json, { model, isModel = equal, redact }: WantedModel): void {
  const other = reportedModels(answer).find((reported) => !isModel(reported, model));
  if (other !== undefined)
    throw new AcpError('unusable', {
      at: 'agent',
      field: 'current model',
      found: redact(other),
      allowed: `${model}, the model of the Agent`,
    });
}

const equal = (reported: string, model: string): boolean => reported === model;

/** ACP has two places for it: `models.currentModelId`, and the option of category `model`. */
function reportedModels(answer: Json): readonly string[] {
  const { models, configOptions } = isObject(answer) ? answer : {};
  const options = Array.isArray(configOptions) ? (configOptions as readonly Json[]) : [];
  const chosen = options.flatMap((option) =>
    isObject(option) && option['category'] === 'model' ? [option['currentValue']] : [],
  );
  const found = [isObject(models) ? models['currentModelId'] : undefined, ...chosen];
  return found.filter((model): model is string => typeof model === 'string' && model !== '');
}

/** ACP's code of an agent that wants a login; -32000 is also JSON-RPC's first code of a server's own errors. */
const authRequired = 'error -32000: ';
const asksForLogin =
  /\bo?auth(?:entication|orization)? (?:is )?required|auth_required|not (?:logged|signed) in|log ?in required|(?:please|must|need to) (?:log|sign) ?in|run \/login/i;

/** The same error; an answer that asks for a login as `unusable`, in the agent's words: no other session of this agent would have one. */
export function readRefusal(error: unknown, method: string): unknown {
  if (!(error instanceof AcpError) || error.code !== 'answer') return error;
  const answer = error.finding.says ?? '';
  if (!answer.startsWith(authRequired) && !asksForLogin.test(answer)) return error;
  const says = `authentication required: ${method} was answered with ${answer}`;
  return new AcpError('unusable', { at: 'agent', says }, { cause: error });
}
