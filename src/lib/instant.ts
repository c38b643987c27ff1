/**
 * Points in time as the protocol writes them: RFC 3339 with up to nine digits of a second, zeros at the end cut.
 *
 * Digests cover the text of an instant, so one that was received is kept and sent on as it came; only comparing it needs its value.
 * Source: dispatch.md §5.3.
 */
export type Instant = string;

/** How a time that was never set is written. It is not absent: digests contain it. */
export const zeroInstant: Instant = '0001-01-01T00:00:00Z';

const form = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})$/;

/** Nanoseconds since 1970; `undefined` for what is no instant. */
export function nanoseconds(text: Instant): bigint | undefined {
  const found = form.exec(text);
  if (!found) return undefined;
  const [, year = '', month = '', day = '', hour = '', minute = '', second = '', fraction = '', zone = ''] = found;
  const milliseconds = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}${zone}`);
  // Date.parse moves 31 June to July.
  const exists = !Number.isNaN(milliseconds) && Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return exists ? BigInt(milliseconds) * 1_000_000n + BigInt(fraction.padEnd(9, '0')) : undefined;
}

/** Milliseconds since 1970, rounded down. `NaN` for what is no instant, so that every comparison with it fails. */
export function milliseconds(text: Instant): number {
  const value = nanoseconds(text);
  return value === undefined ? NaN : Number(value / 1_000_000n);
}

/** The instant of a number of milliseconds since 1970. */
export function instant(at: number): Instant {
  return new Date(at).toISOString().replace(/\.?0*Z$/, 'Z');
}

/** Whether an instant lies at or before another. */
export function notAfter(a: Instant, b: Instant): boolean {
  const [x, y] = [nanoseconds(a), nanoseconds(b)];
  return x !== undefined && y !== undefined && x <= y;
}
