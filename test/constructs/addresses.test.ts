import { describe, expect, test } from '@jest/globals';
import { badAddress } from '../../src/constructs/rules/addresses.js';

describe('a sandbox may be let to', () => {
  test.each([
    ['the DNS cache of its node', '169.254.20.10/32'],
    ['one address of IPv6', 'fd00::a/128'],
    ['one link-local address of IPv6', 'fe80::a/128'],
    ['one public address', '192.0.2.7/32'],
    ['a private range', '10.1.2.0/24'],
    ['a private range of IPv6', 'fd12:3456:789a:1::/64'],
    ['addresses of a provider between private and public', '100.64.3.0/28'],
  ])('%s', (_, address) => {
    expect(badAddress({ addresses: [address] }, 'x', 'service')).toBeUndefined();
  });

  test.each(['169.254.169.254/32', '168.63.129.16/32', 'fd20:ce::254/128'])(
    'DNS that a cloud answers at its metadata address: %s',
    (address) => {
      expect(badAddress({ addresses: [address] }, 'x', 'dns')).toBeUndefined();
    },
  );
});

describe('a sandbox is never let to', () => {
  test.each([
    ['no address', 'node-local-dns', /169.254.20.10\/32/],
    ['an address without a length', '169.254.20.10', /an address with its length/],
    ['bits of a host', '10.1.2.3/24', /^10.1.2.0\/24, the one spelling/],
    ['another spelling of IPv6', 'FD00:0:0::A/128', /^fd00::a\/128/],
    ['IPv4 written as IPv6', '::ffff:10.0.0.1/128', /^10.0.0.1\/32/],
    ['every address', '0.0.0.0/0', /no address of a metadata service/],
    ['every address of IPv6', '::/0', /no address of a metadata service/],
    ['all of 10.0.0.0/8', '10.0.0.0/8', /at most a \/24/],
    ['all unique local addresses', 'fc00::/7', /no address of a metadata service/],
    ['half of the unique local addresses', 'fc00::/8', /at most a \/24 of IPv4 or a \/64/],
    ['a public range', '8.8.8.0/24', /single addresses, or private ranges/],
    ['a public range of IPv6', '2001:db8::/64', /single addresses, or private ranges/],
    ['a link-local range', '169.254.20.0/24', /single link-local/],
    ['a link-local range of IPv6', 'fe80:0:0:1::/64', /single link-local/],
    ['metadata of AWS, Azure and Google Cloud', '169.254.169.254/32', /metadata/],
    ['metadata of AWS over IPv6', 'fd00:ec2::254/128', /metadata/],
    ['credentials of Pods over IPv6', 'fd00:ec2::23/128', /metadata/],
    ['metadata of Google Cloud over IPv6', 'fd20:ce::254/128', /metadata/],
    ['metadata of OpenStack over IPv6', 'fe80::a9fe:a9fe/128', /metadata/],
    ['metadata of Tencent Cloud', '169.254.0.23/32', /metadata/],
    ['metadata of Scaleway', '169.254.42.42/32', /metadata/],
    ['metadata of Scaleway over IPv6', 'fd00:42::42/128', /metadata/],
    ['a range that holds a metadata address', '100.100.100.0/24', /metadata/],
    ['a range of IPv6 that holds a metadata address', 'fd00:ec2::/64', /metadata/],
    ['itself', '127.0.0.1/32', /the address of a host/],
    ['itself over IPv6', '::1/128', /the address of a host/],
    ['no host', '::/128', /the address of a host/],
    ['a multicast group', '224.0.0.251/32', /the address of a host/],
    ['a multicast group of IPv6', 'ff02::fb/128', /the address of a host/],
    ['IPv4 behind a translator', '64:ff9b::a9fe:a9fe/128', /the address of a host/],
    ['IPv4 in a tunnel', '2002:a9fe:a9fe::1/128', /the address of a host/],
    ['IPv4 translated into IPv6', '::ffff:0:a9fe:a9fe/128', /the address of a host/],
    ['a tunnel of Teredo', '2001:0:a9fe:a9fe::1/128', /the address of a host/],
    ['a zone', 'fe80::1%eth0/128', /an address with its length/],
  ])('%s', (_, address, says) => {
    const broken = badAddress({ addresses: ['10.0.0.1/32', address] }, 'spec.x', 'service');
    expect(broken).toMatchObject({ field: 'spec.x.addresses[1]', found: address });
    expect(broken?.allowed).toMatch(says);
  });

  test('a range with DNS at a metadata address', () => {
    expect(badAddress({ addresses: ['169.254.169.0/24'] }, 'x', 'dns')?.allowed).toMatch(/metadata/);
  });
});

describe('parts of a range that stay closed', () => {
  const bad = (except: readonly string[], address = 'fd00:ec2::/64') => badAddress({ addresses: [address], except }, 'x', 'dns');

  test('make a range usable that holds metadata addresses', () => {
    expect(bad(['fd00:ec2::254/128', 'fd00:ec2::23/128'])).toBeUndefined();
    expect(bad(['fd00:ec2::/112'])).toBeUndefined();
    expect(bad(['fd00:ec2::254/128'])?.allowed).toMatch(/metadata/);
    expect(bad(['100.100.100.192/26'], '100.100.100.0/24')).toBeUndefined();
  });

  test.each([
    ['of another family', '10.0.0.1/32', /a part of one address/],
    ['of another range', 'fd00:ec3::1/128', /a part of one address/],
    ['that are all of it', 'fd00:ec2::/64', /a part of one address/],
    ['in another spelling', 'fd00:ec2:0::1/128', /^fd00:ec2::1\/128/],
    ['that are none', 'x', /an address with its length/],
  ])('are none %s', (_, range, says) => {
    expect(bad([range])).toMatchObject({ field: 'x.except[0]', found: range });
    expect(bad([range])?.allowed).toMatch(says);
  });
});
