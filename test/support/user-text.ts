import { redacted } from '../../src/domain/redaction.js';

/** A request, or a path that one goes to. */
const request = /\b(?:GET|PUT|POST|PATCH|DELETE) \/|\/v2\/|\/apis?\/|ECONN[A-Z]+|EPIPE|socket hang up|the caller gave up/;

/** Texts of messages, at any depth, of a status or an effect. */
function messagesIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, one]) =>
    typeof one === 'string' && ['message', 'note', 'because'].includes(name) ? [one] : messagesIn(one),
  );
}

/** Messages that the user of a Task must not be shown: they hold a request, a name of an internal object, or an address. */
export function unfitMessages(value: unknown): readonly string[] {
  return messagesIn(value).filter((text) => request.test(text) || redacted(text) !== text);
}
