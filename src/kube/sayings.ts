import { cutBytes } from '../lib/text.js';

/** One reason of many, as `Status.details.causes` has it. */
export interface KubeCause {
  readonly field?: string;
  readonly message?: string;
  readonly reason?: string;
}

/** What an API server said about a request. */
export interface Saying {
  readonly says: string;
  /** `Status.reason`. */
  readonly reason?: string | undefined;
  readonly causes?: readonly KubeCause[];
}

const mostCauses = 5;
const longestCause = 200;
/** A longer quoted text is content, and not a name. */
const longestName = 128;

/**
 * What may be repeated of an answer: the causes of an invalid object, each bounded, else the message. A server quotes the value that it refuses, and that
 * may be the whole object with its prompt: no such value is repeated.
 */
export function sayingOf({ says, reason, causes = [] }: Saying): string {
  const head = /^(?<head>[^:]{1,300} is invalid): /.exec(says)?.groups?.['head'];
  if (reason !== 'Invalid' || head === undefined || causes.length === 0) return withoutValues(says);
  const told = causes.slice(0, mostCauses).map(({ field = '<nil>', message = '' }) => {
    const at = field === '<nil>' || field === '' ? '' : `${field}: `;
    return cutBytes(`${at}${withoutValues(message)}`, longestCause, '…');
  });
  const more = causes.length > mostCauses ? [`and ${causes.length - mostCauses} more`] : [];
  return `${withoutValues(head.trim())}: ${[...told, ...more].join('; ')}`;
}

/** A number, or one word in quotes: names a field's content, and holds no text of a user. */
const harmless = /^(?:-?[\d.]+|true|false|null|"[^\s"\\]{0,64}")$/;

/** A text without the values and objects that it quotes. */
export function withoutValues(text: string): string {
  const named = withoutMarked(text, /\b(?:Invalid|Duplicate|Unsupported) value: /g);
  return withoutObjects(named).replaceAll(/"(?:[^"\\]|\\.)*"/g, (quoted) => (quoted.length > longestName ? '"…"' : quoted));
}

function withoutMarked(text: string, mark: RegExp): string {
  let result = '';
  let at = 0;
  for (const found of text.matchAll(mark)) {
    const start = found.index + found[0].length;
    // A mark inside a value is part of the value.
    if (found.index < at) continue;
    const end = endOfValue(text, start);
    const value = text.slice(start, end);
    result += text.slice(at, start) + (harmless.test(value) ? value : '…');
    at = end;
  }
  return result + text.slice(at);
}

const closing: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/** Where a printed value ends: before `: ` or `, ` outside of its quotes and brackets, or before a bracket that it did not open. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '"') at = endOfQuoted(text, at);
    else if (character in closing) depth++;
    else if (character === '}' || character === ']') {
      if (depth-- === 0) return at;
    } else if (depth === 0 && /[:,]/.test(character) && /^(?:\s|$)/.test(text.slice(at + 1, at + 2))) return at;
  }
  return text.length;
}

/** Index of the quote that ends a quoted text; of the last character when none does. */
function endOfQuoted(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text.charAt(at) === '\\') at++;
    else if (text.charAt(at) === '"') return at;
  }
  return text.length - 1;
}

/** Index of the bracket that ends an object; of the last character when none does. */
function endOfObject(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '"') at = endOfQuoted(text, at);
    else if (character === '{') depth++;
    else if (character === '}' && --depth === 0) return at;
  }
  return text.length - 1;
}

/** Objects that hold quoted texts, wherever they stand. One without an end is cut off. */
function withoutObjects(text: string): string {
  let result = '';
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '"') {
      const end = endOfQuoted(text, at);
      result += text.slice(at, end + 1);
      at = end;
    } else if (character === '{') {
      const end = endOfObject(text, at);
      const object = text.slice(at, end + 1);
      result += object.includes('"') ? '{…}' : object;
      at = end;
    } else {
      result += character;
    }
  }
  return result;
}
