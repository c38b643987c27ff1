import { isIPv4 } from 'node:net';
import { canonicalCidr, isWithin, openBits, overlaps } from '../../lib/cidr.js';
import type { Broken } from './rule.js';

/** Addresses that belong to no single host. Source: RFC 6890 and the IANA registries of special-purpose addresses. */
const noHost: readonly string[] = [
  ...['0.0.0.0/8', '127.0.0.0/8', '192.0.0.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...[
    '::/128',
    '::1/128',
    '::/96',
    '::ffff:0:0/96',
    '::ffff:0:0:0/96',
    '64:ff9b::/96',
    '64:ff9b:1::/48',
    '2001::/32',
    '2002::/16',
    'ff00::/8',
  ],
];

/** Link-local addresses, such as that of a DNS cache of the node: each is named alone. */
const linkLocal: readonly string[] = ['169.254.0.0/16', 'fe80::/10'];

/** Private addresses. Only here a range may be open. */
const privateRanges: readonly string[] = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'];

/** Where clouds hand out credentials of the node or of Pods: AWS, Azure, Google Cloud, Alibaba, Oracle and Tencent Cloud, Scaleway, OpenStack. */
const metadata: readonly string[] = [
  ...['169.254.169.254/32', '169.254.170.2/32', '169.254.170.23/32', '169.254.169.252/32', '100.100.100.200/32'],
  ...['169.254.0.23/32', '169.254.42.42/32', 'fd00:42::42/128', 'fe80::a9fe:a9fe/128'],
  ...[
    '168.63.129.16/32',
    '192.0.0.192/32',
    'fd00:ec2::254/128',
    'fd00:ec2::23/128',
    'fd20:ce::254/128',
    'fd00:c1::a9fe:a9fe/128',
  ],
];

/** Open bits of a range: 256 addresses of IPv4, one subnet of IPv6. */
const mostOpenBits = { 4: 8, 6: 64 } as const;

/** All addresses of the internet: everything but private ranges, addresses of no host, and services of clouds. */
export function publicBlocks(): readonly AddressBlock[] {
  const closed = [...noHost, ...linkLocal, ...privateRanges, ...metadata];
  return ['0.0.0.0/0', '::/0'].map((cidr) => {
    // Network plugins read a range of mapped addresses as IPv4 or as IPv6; no forge is reached by one.
    const except = closed.filter((range) => isWithin(range, cidr) && canonicalCidr(range) === range);
    return { cidr, except: except.filter((range) => !except.some((wider) => isWithin(range, wider))) };
  });
}

/** Tells whether a text is an IPv4 address of a private network. */
export const isPrivateAddress = (address: string): boolean =>
  isIPv4(address) && privateRanges.some((range) => isWithin(`${address}/32`, range));

/** Why a range cannot be that of a private forge; `undefined` = it can. */
export function badForgeRange(cidr: string): string | undefined {
  const spelling = badSpelling(cidr);
  if (spelling !== undefined) return spelling;
  if (metadata.some((address) => overlaps(cidr, address)))
    return 'no address of a metadata service, which hands out credentials of the node';
  if (!privateRanges.some((range) => range === cidr || isWithin(cidr, range)))
    return `a part of the private ranges ${privateRanges.join(', ')}`;
  return undefined;
}

/** Of which service the addresses are. Some clouds answer DNS at the address of their metadata service, on another port. */
type AddressUse = 'dns' | 'service';

/** Addresses of one service, and parts of them that stay closed. */
export interface Addresses {
  readonly addresses?: readonly string[];
  readonly except?: readonly string[];
}

/** Addresses as a NetworkPolicy names them. */
export interface AddressBlock {
  readonly cidr: string;
  readonly except?: readonly string[];
}

export function blocksOf({ addresses = [], except = [] }: Addresses): readonly AddressBlock[] {
  return addresses.map((cidr) => {
    const closed = except.filter((range) => isWithin(range, cidr));
    return { cidr, ...(closed.length > 0 ? { except: closed } : {}) };
  });
}

/** The first of some addresses that a sandbox may not reach, or of the exceptions that close nothing. `at`: path of both lists. */
export function badAddress(of: Addresses, at: string, use: AddressUse): Broken | undefined {
  const { addresses = [], except = [] } = of;
  for (const [index, found] of except.entries()) {
    const allowed =
      badSpelling(found) ?? (addresses.some((range) => isWithin(found, range)) ? undefined : 'a part of one address');
    if (allowed !== undefined) return { field: `${at}.except[${index}]`, found, allowed };
  }
  for (const [index, block] of blocksOf(of).entries()) {
    const allowed = badSpelling(block.cidr) ?? allowedInstead(block, use);
    if (allowed !== undefined) return { field: `${at}.addresses[${index}]`, found: block.cidr, allowed };
  }
  return undefined;
}

function badSpelling(found: string): string | undefined {
  const canonical = canonicalCidr(found);
  if (canonical === undefined) return 'an address with its length, such as 169.254.20.10/32 or fd00::a/128';
  return canonical === found ? undefined : `${canonical}, the one spelling of it`;
}

/** `undefined` = the addresses are fine. */
function allowedInstead({ cidr, except = [] }: AddressBlock, use: AddressUse): string | undefined {
  const open = openBits(cidr) ?? 0;
  const closed = (address: string): boolean => except.some((range) => range === address || isWithin(address, range));
  const touches = (ranges: readonly string[]): boolean => ranges.some((range) => overlaps(cidr, range) && !closed(range));
  if (touches(metadata) && !(use === 'dns' && open === 0))
    return 'no address of a metadata service, which hands out credentials of the node';
  if (touches(noHost)) return 'the address of a host';
  if (open === 0) return undefined;
  if (touches(linkLocal)) return 'single link-local addresses (/32, /128)';
  const most = mostOpenBits[cidr.includes(':') ? 6 : 4];
  if (!privateRanges.some((range) => range === cidr || isWithin(cidr, range)))
    return `single addresses, or private ranges of ${privateRanges.join(', ')}`;
  return open > most ? 'at most a /24 of IPv4 or a /64 of IPv6' : undefined;
}
