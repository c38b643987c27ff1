import { isUtf8 } from 'node:buffer';

/** Byte order of UTF-8, which JavaScript's own string order leaves for characters outside the basic plane. For `sort`. */
export function canonicalOrder(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** A text cut to at most `bytes` bytes of UTF-8, then marked; shorter texts are left alone. A split character is dropped. */
export function cutBytes(text: string, bytes: number, mark: string): string {
  const raw = Buffer.from(text);
  if (raw.length <= bytes) return text;
  let end = bytes;
  while (end > 0 && ((raw[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${raw.subarray(0, end).toString()}${mark}`;
}

/** A text of at most `bytes` bytes of UTF-8, its mark included if it was cut. No character is split. */
export function fitBytes(text: string, bytes: number, mark: string): string {
  return Buffer.byteLength(text) <= bytes ? text : `${headOf(text, bytes - Buffer.byteLength(mark))}${mark}`;
}

/** The longest beginning of a text that has at most `bytes` bytes of UTF-8. No character is split. */
export function headOf(text: string, bytes: number): string {
  return text.slice(0, encoder.encodeInto(text, new Uint8Array(bytes)).read);
}

const encoder = new TextEncoder();

/** Whether a text is empty or only white space, by Go's definition, which is wider than JSON's and differs from `trim`. */
export function isBlank(text: string): boolean {
  return blank.test(text);
}

const blank = /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/;

/** The text of UTF-8 bytes, without a byte order mark; or the index of the first byte that begins no character. */
export function utf8Text(bytes: Uint8Array): string | { readonly badByte: number } {
  if (isUtf8(bytes)) return new TextDecoder('utf-8').decode(bytes);
  let at = 0;
  for (;;) {
    const lead = bytes[at] ?? 0;
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (length > 1 && !isUtf8(bytes.subarray(at, at + length))) return { badByte: at };
    at += length;
  }
}

/** A number and its noun: `1 file`, `2 files`. @param plural of nouns that do not only add an s */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}
