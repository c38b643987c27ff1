import { canonicalCidr, isWithin, openBits, overlaps } from '../../lib/cidr.js';
import type { Broken } from './rule.js';

/** Addresses that belong to no single host. Source: RFC 6890 and the IANA registries of special-purpose addresses. */
const noHost: readonly string[] = [
  ...['0.0.0.0/8', '127.0.0.0/8', '192.0.0.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['::/128', '::1/128', '::/96', '::ffff:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48', '2002::/16', 'ff00::/8'],
];

/** Link-local addresses, such as that of a DNS cache of the node: each is named alone. */
const linkLocal: readonly string[] = ['169.254.0.0/16', 'fe80::/10'];

/** Private addresses. Only here a range may be open. */
const privateRanges: readonly string[] = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'];

/** Where clouds hand out credentials of the node or of Pods: AWS, Azure, Google Cloud, Alibaba Cloud, Oracle Cloud. */
const metadata: readonly string[] = [
  ...['169.254.169.254/32', '169.254.170.2/32', '169.254.170.23/32', '169.254.169.252/32', '100.100.100.200/32'],
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

/** Of which service the addresses are. Some clouds answer DNS at the address of their metadata service, on another port. */
export type AddressUse = 'dns' | 'service';

/** The first of some addresses that a sandbox may not reach. `field` is their list. */
export function badAddress(addresses: readonly string[] | undefined, field: string, use: AddressUse): Broken | undefined {
  for (const [index, found] of (addresses ?? []).entries()) {
    const allowed = allowedInstead(found, use);
    if (allowed !== undefined) return { field: `${field}[${index}]`, found, allowed };
  }
  return undefined;
}

/** `undefined` = the address is fine. */
function allowedInstead(found: string, use: AddressUse): string | undefined {
  const canonical = canonicalCidr(found);
  const open = openBits(found);
  if (canonical === undefined || open === undefined) return 'an address with its length, such as 169.254.20.10/32 or fd00::a/128';
  if (canonical !== found) return `${canonical}, the one spelling of it`;
  const touches = (ranges: readonly string[]): boolean => ranges.some((range) => overlaps(found, range));
  if (touches(metadata) && !(use === 'dns' && open === 0))
    return 'no address of a metadata service, which hands out credentials of the node';
  if (touches(noHost)) return 'the address of a host';
  if (open === 0) return undefined;
  if (touches(linkLocal)) return 'single link-local addresses (/32, /128)';
  const most = mostOpenBits[found.includes(':') ? 6 : 4];
  if (!privateRanges.some((range) => range === found || isWithin(found, range)))
    return `single addresses, or private ranges of ${privateRanges.join(', ')}`;
  return open > most ? 'at most a /24 of IPv4 or a /64 of IPv6' : undefined;
}
