/** Milliseconds, as a number that says so. */
export type Milliseconds = number;

const unitsInNanoseconds: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

/** Nanoseconds of a Go duration such as `10m0s`; `undefined` = it is none. Fractions below a nanosecond are cut. */
function nanoseconds(text: string): bigint | undefined {
  if (text === '0') return 0n;
  if (!/^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined;
  let total = 0n;
  for (const [, whole = '0', fraction = '', unit = ''] of text.matchAll(/(\d+)(?:\.(\d+))?(ns|us|µs|ms|s|m|h)/g)) {
    const size = unitsInNanoseconds[unit] ?? 0n;
    total += BigInt(whole) * size + (BigInt(fraction === '' ? '0' : fraction) * size) / 10n ** BigInt(fraction.length);
  }
  return total;
}

/** Milliseconds of a Go duration; `undefined` = it is none. */
export function parseDuration(text: string): Milliseconds | undefined {
  const found = nanoseconds(text);
  return found === undefined ? undefined : Number(found / 1_000_000n);
}

/** A Go duration as Go itself writes it: `10m` is `10m0s`, `90s` is `1m30s`. `undefined` = it is none. */
export function normalizeDuration(text: string): string | undefined {
  const total = nanoseconds(text);
  if (total === undefined) return undefined;
  if (total === 0n) return '0s';
  if (total < 1_000_000_000n) {
    const [unit, size] =
      total < 1_000n ? (['ns', 1n] as const) : total < 1_000_000n ? (['µs', 1_000n] as const) : (['ms', 1_000_000n] as const);
    return `${decimal(total, size)}${unit}`;
  }
  const hours = total / 3_600_000_000_000n;
  const minutes = (total / 60_000_000_000n) % 60n;
  const seconds = `${decimal(total % 60_000_000_000n, 1_000_000_000n)}s`;
  if (hours > 0n) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0n ? `${minutes}m${seconds}` : seconds;
}

function decimal(amount: bigint, unit: bigint): string {
  const rest = (amount % unit)
    .toString()
    .padStart(unit.toString().length - 1, '0')
    .replace(/0+$/, '');
  return `${amount / unit}${rest === '' ? '' : `.${rest}`}`;
}
