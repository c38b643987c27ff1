import { describe, expect, test } from '@jest/globals';
import { JsonPatch, Testing } from 'cdk8s';
import { NetworkPolicy } from '../../src/constructs/network-policy.js';
import type { NetworkPolicyProps } from '../../src/constructs/network-policy.js';
import { Resource } from '../../src/constructs/resource.js';
import { RuntimePoolClass } from '../../src/constructs/runtime-pool-class.js';
import { Sandbox } from '../../src/constructs/sandbox.js';
import { SandboxClaim } from '../../src/constructs/sandbox-claim.js';
import type { SandboxClaimProps } from '../../src/constructs/sandbox-claim.js';
import type { Manifest } from '../../src/api/index.js';
import type { Rule } from '../../src/constructs/rules/rule.js';
import type { SandboxProps } from '../../src/constructs/sandbox.js';
import { SandboxTemplate } from '../../src/constructs/sandbox-template.js';
import type { SandboxTemplateProps } from '../../src/constructs/sandbox-template.js';
import { SandboxWarmPool } from '../../src/constructs/sandbox-warm-pool.js';
import { manifestsOf } from '../../src/render/app.js';
import { toYamlStream } from '../../src/render/yaml.js';
import { poolClass } from '../support/objects.js';

const chart = () => Testing.chart();
const yamlOf = (scope: ReturnType<typeof chart>): string => toYamlStream(manifestsOf(scope));
const podTemplate = { spec: { containers: [{ name: 'agent', image: 'registry.example/agent:1' }] } };
const metadata = { name: 'agent', namespace: 'team-a' };

test('a template, a pool and a claim are rendered closed and referring to each other', () => {
  const scope = chart();
  const template = new SandboxTemplate(scope, 'template', { metadata, podTemplate });
  const pool = new SandboxWarmPool(scope, 'pool', { metadata, template });
  new SandboxClaim(scope, 'claim', { metadata, warmPool: pool });
  expect(yamlOf(scope)).toMatchSnapshot();
});

test('a class is rendered with every field', () => {
  const scope = chart();
  new RuntimePoolClass(scope, 'class', { metadata, spec: poolClass({ approvedDigests: [`sha256:${'a'.repeat(64)}`] }) });
  expect(yamlOf(scope)).toMatchSnapshot();
});

describe('a NetworkPolicy', () => {
  const podSelector = { matchLabels: { app: 'agent' } };
  const policy = (props: Omit<NetworkPolicyProps, 'podSelector'>) =>
    new NetworkPolicy(chart(), 'policy', { metadata, podSelector, ...props }).resource.manifest();

  test('closes a direction that is given without rules', () => {
    expect(policy({ ingress: [], egress: [] })['spec']).toEqual({
      podSelector,
      policyTypes: ['Ingress', 'Egress'],
      ingress: [],
      egress: [],
    });
  });

  test('does not govern a direction that is not given', () => {
    expect(policy({ egress: [] })['spec']).toEqual({ podSelector, policyTypes: ['Egress'], egress: [] });
  });

  test('keeps peers and ports exactly as they were written, after a patch too', () => {
    const rule = { from: [{ podSelector: { matchLabels: { app: 'b' } } }], ports: [{ protocol: 'TCP' as const, port: 80 }] };
    const object = new NetworkPolicy(chart(), 'policy', { metadata, podSelector, ingress: [rule] }).resource;
    object.addJsonPatch(JsonPatch.replace('/spec/ingress/0/ports/0/port', 8080));
    expect(object.manifest()['spec']).toMatchObject({ ingress: [{ ...rule, ports: [{ protocol: 'TCP', port: 8080 }] }] });
  });

  test.each([
    ['a direction is given at all', {}, /spec.policyTypes/],
    [
      'a rule names no peer',
      { ingress: [{ from: [], ports: [{ protocol: 'TCP' as const, port: 80 }] }] },
      /spec.ingress\[0\].from/,
    ],
    ['a rule names no port', { egress: [{ to: [{ podSelector: {} }], ports: [] }] }, /spec.egress\[0\].ports/],
    [
      'a peer selects nothing',
      { egress: [{ to: [{}], ports: [{ protocol: 'TCP' as const, port: 80 }] }] },
      /spec.egress\[0\].to\[0\]/,
    ],
    [
      'a port is 0',
      { egress: [{ to: [{ podSelector: {} }], ports: [{ protocol: 'TCP' as const, port: 0 }] }] },
      /spec.egress\[0\].ports\[0\].port: found 0, allowed: 1 to 65535/,
    ],
  ])('is refused unless %s', (_, props, message) => {
    expect(() => policy(props)).toThrow(message);
  });

  test('may open ranges of both families, but for parts of them', () => {
    const to = [
      { ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8', '169.254.0.0/16'] } },
      { ipBlock: { cidr: '::/0', except: ['fc00::/7', 'fe80::/10'] } },
    ];
    expect(() => policy({ egress: [{ to, ports: [{ protocol: 'TCP', port: 443 }] }] })).not.toThrow();
  });

  test('may have open rules when that is said', () => {
    expect(() => policy({ allow: ['network-policy/open-rule'], egress: [{ to: [], ports: [] }] })).not.toThrow();
  });
});

describe('a SandboxTemplate is refused when', () => {
  const template = (props: Partial<SandboxTemplateProps>) => () =>
    new SandboxTemplate(chart(), 'template', { metadata, podTemplate, ...props });
  const [container] = podTemplate.spec.containers;
  test.each([
    [
      'it has no container',
      { podTemplate: { spec: { containers: [] } } },
      /spec.podTemplate.spec.containers: found \[\], allowed: at least one container/,
    ],
    [
      'two containers share a name',
      { podTemplate: { spec: { containers: [container!, container!] } } },
      /one name for each container/,
    ],
    [
      'a variable stands twice',
      { podTemplate: { spec: { containers: [{ ...container!, env: [{ name: 'A' }, { name: 'A' }] }] } } },
      /containers\[0\].env/,
    ],
    [
      'a label of the Pod is none',
      { podTemplate: { ...podTemplate, metadata: { labels: { a: 'not valid' } } } },
      /labels\[a\]: found "not valid"/,
    ],
    [
      'it uses a key of the provider',
      { podTemplate: { ...podTemplate, metadata: { labels: { 'agents.x-k8s.io/x': 'y' } } } },
      /agents.x-k8s.io\/x/,
    ],
    ['it opens a direction to anyone', { networkPolicy: { egress: [{} as never] } }, /spec.networkPolicy.egress\[0\].to/],
    [
      'it has rules that nobody makes a policy from',
      { networkPolicyManagement: 'Unmanaged' as const, networkPolicy: {} },
      /nothing when networkPolicyManagement is Unmanaged/,
    ],
    ['its name is none', { metadata: { name: 'Not_A_Name' } }, /metadata.name: found "Not_A_Name"/],
  ])('%s', (_, props, message) => {
    expect(template(props)).toThrow(message);
  });

  test('the message names the construct path', () => {
    expect(template({ podTemplate: { spec: { containers: [] } } })).toThrow(/^test\/template: /);
  });
});

test('a managed template without rules is closed, and rules open exactly what they say', () => {
  const of = (props: Partial<SandboxTemplateProps>) =>
    (new SandboxTemplate(chart(), 't', { metadata, podTemplate, ...props }).resource.manifest() as unknown as { spec: object })
      .spec;
  expect(of({})).toMatchObject({ networkPolicyManagement: 'Managed', networkPolicy: {} });
  expect(of({ networkPolicyManagement: 'Unmanaged', allow: ['template/unmanaged-network'] })).not.toHaveProperty('networkPolicy');
});

describe('a Sandbox', () => {
  const spec = (props: Partial<SandboxProps>) =>
    new Sandbox(chart(), 'box', { metadata, podTemplate, ...props }).resource.manifest()['spec'] as unknown as SandboxProps;

  test('mounts no token of a ServiceAccount, and leaves what is not given to the API server', () => {
    expect(spec({})).toEqual({ podTemplate: { spec: { automountServiceAccountToken: false, ...podTemplate.spec } } });
  });

  test('mounts one when that is said and named', () => {
    const open = { podTemplate: { spec: { ...podTemplate.spec, automountServiceAccountToken: true } } };
    expect(() => spec(open)).toThrow(/automountServiceAccountToken: found true, allowed: false/);
    expect(spec({ ...open, allow: ['pod/service-account-token'] }).podTemplate.spec.automountServiceAccountToken).toBe(true);
  });

  test('says when it ends, what then becomes of it, and whether it runs', () => {
    const life = {
      shutdownTime: '2099-01-01T00:00:00Z',
      shutdownPolicy: 'Delete',
      operatingMode: 'Suspended',
      service: false,
    } as const;
    expect(spec(life)).toMatchObject(life);
  });

  test('has rules of its user checked beside the others', () => {
    const never: Rule<Manifest> = {
      id: 'team/never',
      kind: 'policy',
      because: 'we said so',
      source: 'us',
      check: () => ({ field: 'spec', found: 1, allowed: 'nothing' }),
    };
    expect(() => spec({ rules: [never] })).toThrow('test/box: spec: found 1, allowed: nothing (team/never: we said so)');
  });
});

describe('a SandboxClaim is refused when', () => {
  const claim = (props: Partial<SandboxClaimProps>) => () =>
    new SandboxClaim(chart(), 'claim', { metadata, warmPool: SandboxWarmPool.fromName('pool'), ...props });
  test.each([
    ['its name would be no Service name', { metadata: { name: '1agent' } }, /metadata.name: found "1agent"/],
    ['it ends a Pod that only looks finished', { lifecycle: { ttlSecondsAfterFinished: 0 } }, /at least 2 seconds/],
    [
      'its shutdown time would be rewritten',
      { lifecycle: { shutdownTime: '2030-01-01T05:00:00.5+03:00' } },
      /whole seconds with Z/,
    ],
    [
      'a variable stands twice',
      {
        env: [
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
        ],
      },
      /spec.env/,
    ],
    ['a list is empty', { env: [] }, /spec.env: found \[\]/],
    ['its shutdown time is no day', { lifecycle: { shutdownTime: '2030-02-31T05:00:00Z' } }, /shutdownTime/],
    [
      'the provider lets no claim set its label',
      { additionalPodMetadata: { labels: { team: 'a' } } },
      /found "team", allowed: keys of sandbox.users.io/,
    ],
    [
      'the value of its label is none',
      { additionalPodMetadata: { labels: { 'sandbox.users.io/team': 'not valid' } } },
      /labels\[sandbox.users.io\/team\]/,
    ],
    [
      'it uses an annotation of Kubernetes',
      { additionalPodMetadata: { annotations: { 'x.kubernetes.io/y': 'z' } } },
      /found "x.kubernetes.io\/y"/,
    ],
    ['it names no pool', { warmPool: SandboxWarmPool.fromName('') }, /spec.warmPoolRef.name/],
  ])('%s', (_, props, message) => {
    expect(claim(props)).toThrow(message);
  });
});

describe('a resource', () => {
  test('renders what it was given: empty lists, empty objects, null in lists, odd keys', () => {
    const odd = JSON.parse('{"a":[],"b":{},"c":[null,1],"constructor":1,"__proto__":2,"10":"x","9":"y"}') as Record<
      string,
      unknown
    >;
    const object = new Resource(chart(), 'r', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: odd });
    expect(JSON.stringify(object.manifest()['data'])).toBe(JSON.stringify(odd));
  });

  test('is not changed by changing what it was made from', () => {
    const data = { a: '1' };
    const object = new Resource(chart(), 'r', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
    data.a = '2';
    expect(object.manifest()['data']).toEqual({ a: '1' });
  });

  test('renders the same twice, patched or not', () => {
    const object = new Resource(chart(), 'r', { apiVersion: 'v1', kind: 'ConfigMap', metadata, list: ['a'] });
    object.addJsonPatch(JsonPatch.add('/list/-', 'b'));
    expect(object.manifest()).toEqual(object.manifest());
    expect(object.manifest()['list']).toEqual(['a', 'b']);
  });

  test('refuses what JSON cannot hold, with its path', () => {
    expect(() => new Resource(chart(), 'r', { apiVersion: 'v1', kind: 'X', spec: { at: [new Date(0)] } })).toThrow(
      /test\/r: spec.at\[0\]: found "Date"/,
    );
    expect(() => new Resource(chart(), 'r', { apiVersion: 'v1', kind: 'X', spec: { n: NaN } })).toThrow(/spec.n/);
  });

  test('refuses a patch that does not apply, and stays as it was', () => {
    const object = new Resource(chart(), 'r', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: '1' } });
    expect(() => object.addJsonPatch(JsonPatch.replace('/data/a', '2'), JsonPatch.replace('/data/b', '3'))).toThrow(
      /operations\[1\]/,
    );
    expect(object.manifest()['data']).toEqual({ a: '1' });
  });

  test('keeps the namespace of a chart off kinds that have none', () => {
    const scope = new (Testing.chart().constructor as new (app: unknown, id: string, props: object) => ReturnType<typeof chart>)(
      Testing.app(),
      'c',
      { namespace: 'x' },
    );
    expect(
      new Resource(scope, 'n', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'y' } }).manifest().metadata,
    ).toEqual({ name: 'y' });
  });
});
