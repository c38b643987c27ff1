import { expect, test } from '@jest/globals';

import { mayConnect } from '../../../src/publisher/git/addresses.js';

const publicForge = { host: 'git.example' };
const privateForge = { host: 'git.example', private: true };

test.each(['93.184.216.34', '8.8.8.8', '2606:2800:220:1:248:1893:25c8:1946', '172.32.0.1', '100.128.0.1'])(
  'a public forge may have the public address %s, a private one may not',
  (address) => {
    expect(mayConnect(publicForge, address)).toBe(true);
    expect(mayConnect(privateForge, address)).toBe(false);
  },
);

test.each(['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', 'fd12:3456::1'])(
  'only a private forge may have the private address %s',
  (address) => {
    expect(mayConnect(publicForge, address)).toBe(false);
    expect(mayConnect(privateForge, address)).toBe(true);
  },
);

test.each([
  '127.0.0.1',
  '127.255.0.1',
  '::1',
  '192.0.2.1',
  '198.18.0.1',
  '203.0.113.7',
  '240.0.0.1',
  '2001:db8::1',
  'fec0::1',
  '4000::1',
])('neither a public forge nor a private one without a range may have the special address %s', (address) => {
  expect(mayConnect(publicForge, address)).toBe(false);
  expect(mayConnect(privateForge, address)).toBe(false);
});

test.each([
  '0.0.0.0',
  '0.1.2.3',
  '169.254.169.254',
  '169.254.1.1',
  '224.0.0.1',
  '239.255.255.255',
  '255.255.255.255',
  '100.100.100.200',
  '168.63.129.16',
  '::',
  'fe80::1',
  'fe80::1%eth0',
  'ff02::1',
  'fd00:ec2::254',
  '::ffff:10.0.0.1',
  '::ffff:8.8.8.8',
  '::ffff:7f00:1',
  '::8.8.8.8',
  '64:ff9b::a00:1',
  '2002:a00:1::1',
  '2001:0:a00:1::1',
  'not an address',
  '',
])('no forge may have the address %s, not even with a range that covers it', (address) => {
  for (const cidr of ['0.0.0.0/0', '::/0', undefined]) {
    const forge = { ...privateForge, ...(cidr === undefined ? {} : { cidr }) };
    expect(mayConnect(forge, address)).toBe(false);
  }
  expect(mayConnect(publicForge, address)).toBe(false);
});

test('a private forge with a range has only addresses of that range', () => {
  const forge = { ...privateForge, cidr: '10.1.0.0/16' };
  expect(mayConnect(forge, '10.1.2.3')).toBe(true);
  expect(mayConnect(forge, '10.2.0.1')).toBe(false);
  expect(mayConnect(forge, '8.8.8.8')).toBe(false);
  expect(mayConnect({ ...privateForge, cidr: '127.0.0.1/32' }, '127.0.0.1')).toBe(true);
  expect(mayConnect({ ...privateForge, cidr: '::1/128' }, '::1')).toBe(true);
});

test('a public forge ignores a range', () => {
  expect(mayConnect({ ...publicForge, cidr: '10.0.0.0/8' }, '10.0.0.1')).toBe(false);
});
