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

/** Is a range a part of another one of the same family, and smaller? */
export function isWithin(inner: string, outer: string): boolean {
  const [a, b] = [readCidr(inner), readCidr(outer)];
  return a !== undefined && b !== undefined && a.prefix > b.prefix && covers(b, a);
}

/** Do two ranges of one family share an address? */
export function overlaps(one: string, other: string): boolean {
  const [a, b] = [readCidr(one), readCidr(other)];
  return a !== undefined && b !== undefined && (covers(a, b) || covers(b, a));
}

/** How many bits of an address a range leaves open; 0 = it is one address. `undefined` = it is no range. */
export function openBits(text: string): number | undefined {
  const range = readCidr(text);
  return range && range.size - range.prefix;
}

/**
 * The one spelling of a range: no bits of a host, an IPv4-mapped range as IPv4, IPv6 as RFC 5952 has it. `undefined` = it is no range.
 * `10.1.2.3/8` → `10.0.0.0/8`, `::ffff:10.0.0.1/128` → `10.0.0.1/32`, `FD00:0::1/128` → `fd00::1/128`.
 */
export function canonicalCidr(text: string): string | undefined {
  const range = readCidr(text);
  if (!range) return undefined;
  const drop = BigInt(range.size - range.prefix);
  const base = (range.base >> drop) << drop;
  if (range.size === 32) return `${text4(base)}/${range.prefix}`;
  if (range.prefix >= mappedPrefix && base >> 32n === 0xffffn)
    return `${text4(base & 0xffffffffn)}/${range.prefix - mappedPrefix}`;
  return `${text6(base)}/${range.prefix}`;
}

/** Of `::ffff:0:0/96`, by which IPv6 writes IPv4 addresses. Source: RFC 4291 §2.5.5.2. */
const mappedPrefix = 96;

/** Has the wide range all addresses of the other? */
function covers(wide: Cidr, other: Cidr): boolean {
  if (wide.size !== other.size || wide.prefix > other.prefix) return false;
  const drop = BigInt(wide.size - wide.prefix);
  return wide.base >> drop === other.base >> drop;
}

const text4 = (base: bigint): string => [24n, 16n, 8n, 0n].map((shift) => (base >> shift) & 0xffn).join('.');

/** The longest run of two or more zero groups, the first of equals, becomes `::`. Source: RFC 5952 §4.2. */
function text6(base: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) => ((base >> BigInt(16 * (7 - index))) & 0xffffn).toString(16));
  let longest = { start: 0, length: 1 };
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (groups[start + length] === '0') length++;
    if (length > longest.length) longest = { start, length };
  }
  if (longest.length < 2) return groups.join(':');
  return `${groups.slice(0, longest.start).join(':')}::${groups.slice(longest.start + longest.length).join(':')}`;
}
