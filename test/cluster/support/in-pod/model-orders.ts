/** What a prompt tells the model of the test cluster to do. What is said last counts: before it may be what was said in the same session. */
import type { ModelReply } from '../../../support/model-fixture.js';

const orders: readonly (readonly [pattern: RegExp, order: (argument: string) => Partial<ModelReply>])[] = [
  [/Wait (\d+) seconds/g, (seconds) => ({ delay: 1_000 * Number(seconds) })],
  [/ORKA_HOLD_(\d+)S/g, (seconds) => ({ delay: 1_000 * Number(seconds) })],
  [/Take (\d+) seconds/g, (seconds) => ({ slowly: Array<string>(Number(seconds)).fill('. ') })],
  [/Run exactly: `([^`]+)`/g, (command) => ({ command: JSON.parse(`"${command}"`) as string })],
  [/Fail with (429|500)/g, (status) => ({ fault: status === '429' ? 429 : 500 })],
  [/(Never answer)/g, () => ({ fault: 'hang' })],
  [/(Break the connection)/g, () => ({ fault: 'reset' })],
];

/** The word that a prompt asks for. */
export const askedFor = (body: string): string | undefined => last(body, /Reply exactly: (\w+)/g);

/** What the last command of a conversation printed, without what the agent says about it. */
function printedIn(body: string): string {
  const { input = [] } = JSON.parse(body) as {
    readonly input?: readonly { readonly type?: string; readonly output?: unknown }[];
  };
  const { output = '' } = input.findLast(({ type }) => type === 'function_call_output') ?? {};
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  return text.slice(text.indexOf('Output:\n') + 1 && text.indexOf('Output:\n') + 'Output:\n'.length);
}

export function replyTo(body: string): ModelReply {
  if (body.includes('Reply with what it printed') && body.includes('"function_call_output"')) return { text: printedIn(body) };
  const wanted = orders.map(([pattern, order]) => {
    const argument = last(body, pattern);
    return argument === undefined ? {} : order(argument);
  });
  return Object.assign({ text: askedFor(body) ?? 'nobody told me what to say' }, ...wanted) as ModelReply;
}

const last = (body: string, pattern: RegExp): string | undefined => [...body.matchAll(pattern)].at(-1)?.[1];
