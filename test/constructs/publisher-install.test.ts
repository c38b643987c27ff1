import { describe, expect, test } from '@jest/globals';
import { App, Chart } from 'cdk8s';
import type { Manifest } from '../../src/api/index.js';
import { PublisherInstall } from '../../src/constructs/install/publisher-install.js';
import type { PublisherInstallProps } from '../../src/constructs/install/publisher-install.js';
import { manifestsOf } from '../../src/render/app.js';
import { toYamlStream } from '../../src/render/yaml.js';
import { poolClass } from '../support/objects.js';

const props: PublisherInstallProps = {
  namespace: 'orka-publisher',
  image: `registry.example/publisher@sha256:${'b'.repeat(64)}`,
  resources: {
    requests: { cpu: '100m', memory: '256Mi', 'ephemeral-storage': '1Gi' },
    limits: { cpu: 2, memory: '1Gi', 'ephemeral-storage': '5Gi' },
  },
  forges: [
    { host: 'git.example.org', port: 443, private: false },
    { host: 'git.forge.svc', port: 443, private: true, peer: { namespace: 'forge', podLabels: { app: 'git' }, podPort: 8443 } },
  ],
  limits: { concurrentOperations: 2 },
  namespaces: { controller: 'orka-system', runtime: 'orka-runtimes' },
  network: poolClass().network,
};

function installed(changed: Partial<PublisherInstallProps> = {}): readonly Manifest[] {
  const chart = new Chart(new App({ outdir: '/dev/null', recordConstructMetadata: false }), 'install');
  new PublisherInstall(chart, 'publisher', { ...props, ...changed });
  return manifestsOf(chart);
}

const one = (kind: string, name: string, objects = installed()) =>
  objects.find((object) => object.kind === kind && object.metadata.name === name);
const text = (value: unknown) => JSON.stringify(value);

test('the publisher is installed as it was reviewed', () => {
  expect(toYamlStream(installed())).toMatchSnapshot();
});

test('nothing that is rendered holds a key, and its ConfigMap no credential', () => {
  expect(installed().map(({ kind }) => kind)).not.toContain('Secret');
});

test('a change of its configuration rolls its Pod, and the same configuration does not', () => {
  const digest = (changed: Partial<PublisherInstallProps> = {}) =>
    /"orka.ai\/publisher-config-digest":"(sha256:[0-9a-f]{64})"/.exec(
      text(one('Deployment', 'orka-workspaces-publisher', installed(changed))),
    )?.[1];
  expect(digest()).toBeDefined();
  expect(digest({ image: `registry.example/publisher@sha256:${'c'.repeat(64)}` })).toBe(digest());
  expect(digest({ limits: {} })).not.toBe(digest());
});

describe('its data are', () => {
  const volume = (objects: readonly Manifest[]) =>
    /\{"name":"data",("emptyDir"|"persistentVolumeClaim")/.exec(
      text(one('Deployment', 'orka-workspaces-publisher', objects)),
    )?.[1];

  test('in a volume that goes with the Pod, by default', () => {
    expect(volume(installed())).toBe('"emptyDir"');
    expect(one('PersistentVolumeClaim', 'orka-publisher-data')).toBeUndefined();
  });

  test('in a claim of the size and class that were asked for', () => {
    const objects = installed({ storage: { capacity: '4Gi', storageClassName: 'fast' } });
    expect(volume(objects)).toBe('"persistentVolumeClaim"');
    expect(one('PersistentVolumeClaim', 'orka-publisher-data', objects)?.['spec']).toEqual({
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '4Gi' } },
      storageClassName: 'fast',
    });
  });
});

describe('the network of the publisher', () => {
  const egress = (forges: PublisherInstallProps['forges']) =>
    (
      one('NetworkPolicy', 'orka-workspaces-publisher-forge-egress', installed({ forges }))?.['spec'] as unknown as {
        egress: unknown;
      }
    ).egress as readonly { readonly to: readonly object[]; readonly ports: readonly object[] }[];

  test('is closed for every Pod of its namespace but for what the other policies open', () => {
    expect(one('NetworkPolicy', 'orka-workspaces-publisher-deny-all')?.['spec']).toEqual({
      podSelector: {},
      policyTypes: ['Ingress', 'Egress'],
      ingress: [],
      egress: [],
    });
  });

  test('lets sandboxes reach their downloads only, and the controller the operations only', () => {
    const { ingress } = one('NetworkPolicy', 'orka-workspaces-publisher-ingress')?.['spec'] as unknown as {
      ingress: readonly object[];
    };
    expect(ingress.map((rule) => /"port":(\d+)/.exec(text(rule))?.[1])).toEqual(['8443', '8080']);
    expect(text(ingress[0])).toContain('orka-system');
    expect(text(ingress[1])).toContain('orka-runtimes');
  });

  test('lets namespaces scrape that the platform names', () => {
    const objects = installed({ metrics: { podMonitor: true, scrapeFrom: ['monitoring'] } });
    expect(text(one('NetworkPolicy', 'orka-workspaces-publisher-ingress', objects))).toMatch(/"monitoring".*8081/);
    expect(one('PodMonitor', 'orka-workspaces-publisher', objects)).toBeDefined();
    expect(one('PodMonitor', 'orka-workspaces-publisher')).toBeUndefined();
  });

  test('admits a controller that runs with the network of its node', () => {
    const network = { ...props.network, controller: { ...props.network.controller, addresses: ['10.0.0.5/32'] } };
    expect(text(one('NetworkPolicy', 'orka-workspaces-publisher-ingress', installed({ network })))).toContain('10.0.0.5/32');
  });

  test('opens public addresses for public forges, once for each port', () => {
    const rules = egress([
      { host: 'a.example', port: 443, private: false },
      { host: 'b.example', port: 443, private: false },
      { host: 'c.example', port: 8443, private: false },
    ]);
    expect(rules.map(({ ports }) => ports)).toEqual([[{ protocol: 'TCP', port: 443 }], [{ protocol: 'TCP', port: 8443 }]]);
    for (const closed of ['10.0.0.0/8', '169.254.0.0/16', '127.0.0.0/8', '168.63.129.16/32', 'fc00::/7', 'fe80::/10'])
      expect(text(rules[0])).toContain(closed);
  });

  test('opens no public address where all forges are private', () => {
    const rules = egress([
      { host: 'a.example', port: 8443, private: true, peer: { cidr: '10.20.30.0/24' } },
      { host: 'b.example', port: 443, private: true, peer: { namespace: 'forge', podLabels: { app: 'git' } } },
    ]);
    expect(rules).toEqual([
      { to: [{ ipBlock: { cidr: '10.20.30.0/24' } }], ports: [{ protocol: 'TCP', port: 8443 }] },
      {
        to: [
          {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'forge' } },
            podSelector: { matchLabels: { app: 'git' } },
          },
        ],
        ports: [{ protocol: 'TCP', port: 443 }],
      },
    ]);
  });
});
