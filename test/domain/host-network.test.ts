import { expect, test } from '@jest/globals';
import { hostNetworkLabel } from '../../src/domain/host-network.js';

test('a label that only Pods of the network of a node have is named', () => {
  expect(hostNetworkLabel({ app: 'dns', 'k8s-app': 'node-local-dns' })).toBe('k8s-app: node-local-dns');
});

test('any other label is none of them, whatever its key', () => {
  expect(hostNetworkLabel({ constructor: 'node-local-dns', toString: 'x', 'k8s-app': 'kube-dns' })).toBeUndefined();
});
