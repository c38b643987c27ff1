/** Strict reading of one JSON object that keeps the bytes of its values, so that no number and no text changes on the way through. */
import { isUtf8 } from 'node:buffer';
import { CodedError } from './errors.js';

/** Why bytes are not one JSON object that every reader understands alike. Never quotes them. */
export class JsonMembersError extends CodedError<'utf8' | 'syntax' | 'duplicate' | 'depth' | 'items'> {}

export interface JsonMember {
  readonly name: string;
  /** Its value as it was written: a view into the text, without white space around it. */
  readonly value: Buffer;
}

/** Bounds of one text, so that reading it takes bounded time and memory. */
const limits = { depth: 128, items: 250_000 } as const;

/** Members of the object, in their order. A name that stands twice, at any depth, is refused. Throws {@link JsonMembersError}. */
export function readMembers(text: Buffer): readonly JsonMember[] {
  if (!isUtf8(text)) throw new JsonMembersError('utf8', { at: 'JSON text', allowed: 'UTF-8' });
  return new Scanner(text).document();
}

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];
const letterU = 0x75;
const shortEscapes = byteTable('"\\/bfnrt');
const hexDigits = byteTable('0123456789abcdefABCDEF');
const scalarBytes = byteTable('0123456789+-.eEtrufalsn');
const scalar = /^(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)$/;

class Scanner {
  readonly #text: Buffer;
  #at = 0;
  #items = 0;

  constructor(text: Buffer) {
    this.#text = text;
  }

  document(): readonly JsonMember[] {
    if (this.#skipSpace() !== openBrace) this.#fail('syntax', 'an object');
    const members: JsonMember[] = [];
    this.#object(0, (name, start) => members.push({ name, value: this.#text.subarray(start, this.#at) }));
    if (this.#skipSpace() !== undefined) this.#fail('syntax', 'one value');
    return members;
  }

  #value(depth: number): void {
    if (depth > limits.depth) this.#fail('depth', `at most ${limits.depth} levels`);
    if (++this.#items > limits.items) this.#fail('items', `at most ${limits.items} values`);
    const first = this.#text[this.#at];
    if (first === openBrace) this.#object(depth);
    else if (first === openBracket) this.#array(depth);
    else if (first === quote) this.#string();
    else this.#scalar();
  }

  #array(depth: number): void {
    this.#at++;
    if (this.#skipSpace() === closeBracket) this.#at++;
    else
      do {
        this.#skipSpace();
        this.#value(depth + 1);
      } while (this.#goesOn(closeBracket));
  }

  /** Calls `found` with each name and the start of its value, once the value has been read. */
  #object(depth: number, found?: (name: string, start: number) => void): void {
    const names = new Set<string>();
    this.#at++;
    if (this.#skipSpace() === closeBrace) this.#at++;
    else
      do {
        const name = this.#name();
        if (names.has(name)) this.#fail('duplicate', 'each member name once');
        names.add(name);
        if (this.#skipSpace() !== colon) this.#fail('syntax', '`:`');
        this.#at++;
        this.#skipSpace();
        const start = this.#at;
        this.#value(depth + 1);
        found?.(name, start);
      } while (this.#goesOn(closeBrace));
  }

  /** Reads a comma, or the end of a container; `true` = another element follows. */
  #goesOn(end: number): boolean {
    const next = this.#skipSpace();
    if (next !== comma && next !== end) this.#fail('syntax', '`,` or the end of an object or array');
    this.#at++;
    return next === comma;
  }

  /** Names that other readers take for the same one are the same: each lone surrogate reads as U+FFFD. */
  #name(): string {
    if (this.#skipSpace() !== quote) this.#fail('syntax', 'a member name in double quotes');
    const start = this.#at;
    this.#string();
    const name = JSON.parse(this.#text.toString('utf8', start, this.#at)) as string;
    return name.replace(/\p{Surrogate}/gu, '\ufffd');
  }

  #string(): void {
    const text = this.#text;
    let at = this.#at + 1;
    for (let byte = text[at]; byte !== quote; byte = text[at]) {
      if (byte === undefined || byte < 0x20) this.#fail('syntax', 'a text without control characters, closed by a quote');
      at += byte === backslash ? this.#escapeLength(at) : 1;
    }
    this.#at = at + 1;
  }

  #escapeLength(at: number): number {
    const next = this.#text[at + 1] ?? 0;
    if (shortEscapes[next] === 1) return 2;
    const isCode = next === letterU && [2, 3, 4, 5].every((step) => hexDigits[this.#text[at + step] ?? 0] === 1);
    return isCode ? 6 : this.#fail('syntax', 'an escape of JSON');
  }

  #scalar(): void {
    const start = this.#at;
    while (scalarBytes[this.#text[this.#at] ?? 0] === 1) this.#at++;
    if (!scalar.test(this.#text.toString('latin1', start, this.#at))) this.#fail('syntax', 'a JSON value');
  }

  #skipSpace(): number | undefined {
    for (;;) {
      const byte = this.#text[this.#at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
      this.#at++;
    }
  }

  #fail(code: 'syntax' | 'duplicate' | 'depth' | 'items', allowed: string): never {
    throw new JsonMembersError(code, { at: `JSON text, byte ${this.#at}`, allowed });
  }
}

/** 1 at each of these bytes: looked up for every byte of a text, where a Set takes most of the time. */
function byteTable(bytes: string): Uint8Array {
  const table = new Uint8Array(256);
  for (const byte of Buffer.from(bytes)) table[byte] = 1;
  return table;
}
