import { isIPv4, isIPv6 } from 'node:net';

/** A range of addresses; `base` has the bits of a host as they were written. */
interface Cidr {
  readonly size: 32 | 128;
  readonly prefix: number;
  readonly base: bigint;
}

/** `10.0.0.0/8` or `fd00::/8`; `undefined` = it is none. */
function readCidr(text: string): Cidr | undefined {
  const [address = '', length = '', ...rest] = text.split('/');
  const size = isIPv4(address) ? 32 : isIPv6(address) && !address.includes('%') ? 128 : undefined;
  if (size === undefined || rest.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > size) return undefined;
  return { size, prefix: Number(length), base: size === 32 ? value4(address) : value6(address) };
}

const value4 = (address: string): bigint => address.split('.').reduce((value, part) => value * 256n + BigInt(part), 0n);

function value6(address: string): bigint {
  const quad = /(\d+\.){3}\d+$/.exec(address)?.[0];
  const hex = (value: bigint): string => value.toString(16);
  const text =
    quad === undefined
      ? address
      : address.slice(0, -quad.length) + [value4(quad) >> 16n, value4(quad) & 0xffffn].map(hex).join(':');
  const [head = '', tail] = text.split('::');
  const groups = (part: string): readonly string[] => (part === '' ? [] : part.split(':'));
  const missing = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array.from({ length: missing }, () => '0'), ...groups(tail ?? '')];
  return all.reduce((value, group) => value * 65536n + BigInt(`0x${group}`), 0n);
}

export const isCidr = (text: string): boolean => readCidr(text) !== undefined;

/** Is a range a part of another one, and smaller? */
export function isWithin(inner: string, outer: string): boolean {
  const [a, b] = [readCidr(inner), readCidr(outer)];
  if (a?.size !== b?.size || a === undefined || b === undefined || a.prefix <= b.prefix) return false;
  const drop = BigInt(b.size - b.prefix);
  return a.base >> drop === b.base >> drop;
}
