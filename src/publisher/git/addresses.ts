import { BlockList, isIP } from 'node:net';

import type { Forge } from './forge.js';

function ranges(...of: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of of) {
    const [base = '', length = ''] = range.split('/');
    list.addSubnet(base, Number(length), isIP(base) === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** No forge may have such an address, also where an operator lists it: unspecified, link-local, multicast, broadcast, metadata services. */
const never = ranges(
  ...['0.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '255.255.255.255/32', '100.100.100.200/32', '168.63.129.16/32'],
  ...['::/128', 'fe80::/10', 'ff00::/8', 'fd00:ec2::254/128'],
);
/** IPv6 spellings of IPv4 addresses: mapped, compatible, NAT64, 6to4, Teredo. They would reach what the IPv4 rules refuse. */
const embedded = ranges('::ffff:0:0/96', '::/96', '64:ff9b::/96', '64:ff9b:1::/48', '2002::/16', '2001::/32');
/** Ranges that only a private network has. */
const privateRanges = ranges('10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7');
/** The rest of what the public internet does not route. Source: RFC 6890. */
const special = ranges(
  ...['127.0.0.0/8', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['240.0.0.0/4', '::1/128', '100::/64', '2001::/23', '2001:db8::/32', '3fff::/20', '5f00::/16', 'fec0::/10'],
);
/** Of IPv6 only this range is assigned to the public internet. */
const globalUnicast = ranges('2000::/3');

/** Whether a connection to this forge may go to this address. */
export function mayConnect(forge: Forge, address: string): boolean {
  const version = isIP(address);
  // A zone names a link of this machine.
  if (version === 0 || address.includes('%')) return false;
  const family = version === 6 ? 'ipv6' : 'ipv4';
  const isIn = (list: BlockList): boolean => list.check(address, family);
  // BlockList also compares mapped addresses with IPv4 ranges, so a mapped address is refused before any other rule.
  if (never.check(address, family)) return false;
  if (family === 'ipv6' && isIn(embedded) && !isLoopback6(address)) return false;
  if (forge.private) return forge.cidr === undefined ? isIn(privateRanges) : isIn(ranges(forge.cidr));
  return !isIn(privateRanges) && !isIn(special) && (family === 'ipv4' || isIn(globalUnicast));
}

const loopback6 = ranges('::1/128');
/** `::1` is also of the form of a compatible address. */
const isLoopback6 = (address: string): boolean => loopback6.check(address, 'ipv6');
