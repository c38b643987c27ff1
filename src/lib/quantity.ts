const scales: Readonly<Record<string, bigint>> = {
  n: 1n,
  u: 1_000n,
  m: 1_000_000n,
  '': 1_000_000_000n,
  k: 10n ** 12n,
  M: 10n ** 15n,
  G: 10n ** 18n,
  T: 10n ** 21n,
  P: 10n ** 24n,
  E: 10n ** 27n,
  Ki: 2n ** 10n * 10n ** 9n,
  Mi: 2n ** 20n * 10n ** 9n,
  Gi: 2n ** 30n * 10n ** 9n,
  Ti: 2n ** 40n * 10n ** 9n,
  Pi: 2n ** 50n * 10n ** 9n,
  Ei: 2n ** 60n * 10n ** 9n,
};

/** A Kubernetes quantity in billionths, rounded up; `undefined` = it is none. `2`, `2000m` and `2e0` are equal. */
export function quantityValue(quantity: string | number): bigint | undefined {
  const match = /^([+-]?)(\d+)?(?:\.(\d*))?(?:[eE]([+-]?\d{1,3})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?$/.exec(String(quantity));
  if (!match) return undefined;
  const [, sign, whole = '', fraction = '', exponent = '0', suffix = ''] = match;
  if (whole === '' && fraction === '') return undefined;
  const scale = scales[suffix] ?? 0n;
  const power = Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction) * scale;
  const value = power >= 0 ? digits * 10n ** BigInt(power) : (digits + 10n ** BigInt(-power) - 1n) / 10n ** BigInt(-power);
  return sign === '-' ? -value : value;
}
