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
