/** What the addresses of a class open in the policies of its pools. */
import { describe, expect, test } from '@jest/globals';
import type { ClassPatch, RuntimePoolClassSpec } from '../../src/api/index.js';
import type { Json } from '../../src/lib/json.js';
import { classDigest, compile } from '../../src/render/compile.js';
import { toYaml } from '../../src/render/yaml.js';
import { poolClass } from '../support/objects.js';

const { network, providerProxy } = poolClass();
const dns = { ...network.dns, addresses: ['169.254.20.10/32', 'fd00:10:20::a/128'] };
const withDns = (change: Partial<RuntimePoolClassSpec['network']['dns']> = {}, patches: readonly ClassPatch[] = []) =>
  poolClass({ network: { ...network, dns: { ...dns, ...change } }, patches: [...patches] });

/** The rules of one policy, as the class opens them for both families of pools. */
function rulesOf(spec: RuntimePoolClassSpec, index: number): string {
  const { workspace, plain } = compile(spec);
  const [one, other] = [workspace, plain].map(({ isolation }) => {
    const { egress, ingress } = isolation[index]!.manifest['spec'] as { egress?: Json; ingress?: Json };
    return toYaml((egress ?? ingress) as Json);
  });
  expect(one).toBe(other);
  return one ?? '';
}
/** Places in the isolation. */
const [controlIn, dnsEgress, proxyEgress, controllerEgress] = [2, 3, 4, 5];

test('addresses of DNS stand beside its Pods, on port 53', () => {
  expect(rulesOf(withDns(), dnsEgress)).toBe(`\
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
  to:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: kube-system
      podSelector:
        matchLabels:
          k8s-app: kube-dns
    - ipBlock:
        cidr: "169.254.20.10/32"
    - ipBlock:
        cidr: "fd00:10:20::a/128"
`);
});

test('addresses of DNS stand instead of Pods where there are no labels', () => {
  expect(rulesOf(withDns({ podLabels: {} }), dnsEgress)).toMatch(/\n {2}to:\n {4}- ipBlock:\n {8}cidr: "169\.254\.20\.10\/32"/);
});

test('parts of a range stay closed', () => {
  const change = { podLabels: {}, addresses: ['10.0.0.0/24', 'fd00:10:20::/64'], except: ['10.0.0.5/32', 'fd00:10:20::5/128'] };
  expect(rulesOf(withDns(change), dnsEgress)).toContain(`\
  to:
    - ipBlock:
        cidr: "10.0.0.0/24"
        except:
          - "10.0.0.5/32"
    - ipBlock:
        cidr: "fd00:10:20::/64"
        except:
          - "fd00:10:20::5/128"
`);
});

test('addresses of a proxy are open on its port', () => {
  const spec = poolClass({ providerProxy: { ...providerProxy, podLabels: {}, addresses: ['10.0.0.5/32'] } });
  expect(rulesOf(spec, proxyEgress)).toBe(`\
- ports:
    - port: 1337
      protocol: TCP
  to:
    - ipBlock:
        cidr: "10.0.0.5/32"
`);
});

test('addresses of a controller are open in both directions', () => {
  const spec = poolClass({ network: { ...network, controller: { ...network.controller, addresses: ['10.0.0.6/32'] } } });
  for (const index of [controlIn, controllerEgress])
    expect(rulesOf(spec, index)).toContain('- ipBlock:\n        cidr: "10.0.0.6/32"');
  for (const index of [dnsEgress, proxyEgress]) expect(rulesOf(spec, index)).not.toContain('ipBlock');
});

test('the policy that closes everything closes both families of addresses', () => {
  const { manifest } = compile(withDns()).workspace.isolation[1]!;
  expect(manifest['spec']).toMatchObject({ policyTypes: ['Ingress', 'Egress'], ingress: [], egress: [] });
});

test('addresses are a part of the digest of a class', () => {
  const digests = [withDns(), withDns({ addresses: ['169.254.20.10/32'] }), poolClass()].map((spec) =>
    classDigest(compile(spec)),
  );
  expect(new Set(digests).size).toBe(3);
});

describe('a patch of a class', () => {
  const patch = (path: string, value: Json): ClassPatch => ({
    target: { kind: 'NetworkPolicy', suffix: 'dns-egress' },
    operations: [{ op: 'add', path, value }],
  });
  const range = 'fd00:10:20::/64';
  const spec = (one: ClassPatch, except: readonly string[] = []) =>
    withDns({ addresses: ['169.254.169.254/32', range], except }, [one]);

  test('may take addresses out of a range', () => {
    const except = patch('/spec/egress/0/to/2/ipBlock/except', ['fd00:10:20::5/128']);
    expect(rulesOf(spec(except), dnsEgress)).toContain('except:\n          - "fd00:10:20::5/128"');
  });

  test.each([
    ['addresses of another family', ['10.0.0.1/32']],
    ['the whole range', [range]],
    ['addresses outside of the range', ['fd00:10:21::5/128']],
  ])('may not take out %s', (_, except) => {
    expect(() => compile(spec(patch('/spec/egress/0/to/2/ipBlock/except', except)))).toThrow(/ipBlock.except: found/);
  });

  test('may not open what the class keeps closed', () => {
    const opened = patch('/spec/egress/0/to/2/ipBlock/except', ['fd00:10:20::6/128']);
    expect(() => compile(spec(opened, ['fd00:10:20::5/128']))).toThrow(/pool\/named-peers/);
  });

  test('may not open another port of an address', () => {
    const rule = { to: [{ ipBlock: { cidr: '169.254.169.254/32' } }], ports: [{ protocol: 'TCP', port: 80 }] };
    expect(() => compile(spec(patch('/spec/egress/-', rule)))).toThrow(/egress\[1\].ports: .*allowed: port 53 of an ipBlock/);
  });

  test('may not open another address', () => {
    expect(() => compile(spec(patch('/spec/egress/0/to/-', { ipBlock: { cidr: '10.0.0.1/32' } })))).toThrow(
      /or an ipBlock of {"cidr":"169\.254\.169\.254\/32"}, {"cidr":"fd00:10:20::\/64"}/,
    );
  });
});
