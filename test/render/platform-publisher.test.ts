import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { agentKind, taskKind, validate } from '../../src/api/index.js';
import { argumentsOf, settingsOf } from '../../src/domain/settings.js';
import { distFiles, platformWarnings } from '../../src/render/dist.js';
import { readPlatform } from '../../src/render/platform.js';
import { readYaml } from '../../src/render/yaml-read.js';
import { authority } from '../support/certificates.js';

const file = readFileSync('platform.yaml', 'utf8');
const image = `registry.example/publisher@sha256:${'b'.repeat(64)}`;
const withPublisher = (publisher: object) => `${file}publisher: ${JSON.stringify(publisher)}\n`;
const enabled = (publisher: object = {}) =>
  withPublisher({ enabled: true, image, forges: [{ host: 'git.example.org' }], ...publisher });
const withForge = (...forges: readonly object[]) => enabled({ forges });
const read = (text: string) => readPlatform(text, 'platform.yaml');
const pods = { namespace: 'forge', podLabels: { app: 'git' } };

describe('without a publisher that is enabled', () => {
  test.each([
    ['none', file],
    ['one that is off', withPublisher({ enabled: false, forges: [{ host: 'git.example.org' }] })],
  ])('the platform renders the same bytes: %s', (_, text) => {
    expect(distFiles(read(text))).toEqual(distFiles(read(file)));
    expect(JSON.stringify(distFiles(read(text)))).not.toContain('orka-publisher');
  });

  test('what is written of it is checked all the same', () => {
    expect(() => read(withPublisher({ forges: [{ host: 'Git.example.org' }] }))).toThrow('publisher.forges[0].host');
  });
});

describe('a publisher that is enabled', () => {
  test('has its defaults', () => {
    expect(read(enabled()).publisher).toEqual({
      namespace: 'orka-publisher',
      image,
      resources: {
        requests: { cpu: '100m', memory: '256Mi', 'ephemeral-storage': '1Gi' },
        limits: { cpu: '2', memory: '2Gi', 'ephemeral-storage': '5Gi' },
      },
      forges: [{ host: 'git.example.org', port: 443, private: false }],
      limits: {},
    });
  });

  test('is where the sandboxes of every class download', () => {
    expect(read(enabled({ namespace: 'sources' })).classes.map(({ spec }) => spec.network.artifacts)).toEqual([
      {
        namespace: 'sources',
        podLabels: { 'orka.ai/network-role': 'workspace-publisher' },
        url: 'http://orka-publisher.sources.svc:8080',
        port: 8080,
      },
    ]);
  });

  test('is known to the controller by its namespace and the addresses of its forges', () => {
    const { controller, namespaces } = read(
      withForge({ host: 'git.example.org' }, { host: 'git.example.org', port: 8443, private: true, peer: pods }),
    );
    expect(argumentsOf(settingsOf({ ...controller, namespaces }))).toEqual(
      expect.arrayContaining([
        '--source-forge=git.example.org',
        '--source-forge=git.example.org:8443',
        '--publisher-namespace=orka-publisher',
      ]),
    );
  });

  test('adds the sixth policy to the reviewed pools', () => {
    const reviewed = distFiles(read(enabled())).filter(({ path }) => path.startsWith('review/'));
    expect(reviewed.map(({ text }) => [...text.matchAll(/^kind: NetworkPolicy$/gm)].length)).toEqual([6, 6]);
  });

  test('takes the certificates of an authority, one or several', () => {
    const certificate = authority('forge').ca;
    const ca = `${certificate}${certificate}`;
    expect(read(withForge({ host: 'git.example.org', ca })).publisher?.forges[0]?.ca).toBe(ca);
  });
});

describe('of a publisher is refused', () => {
  const { ca: certificate, issue } = authority('forge');
  const { key } = issue('forge');

  test.each([
    ['none of its image', enabled({ image: undefined }), 'publisher.image', 'sha256'],
    ['an image that was not built', enabled({ image: `r.example/p@sha256:${'0'.repeat(64)}` }), 'publisher.image', 'exists'],
    ['no forge', enabled({ forges: [] }), 'publisher.forges', 'at least one forge'],
    ['the namespace of the controller', enabled({ namespace: 'orka-system' }), 'publisher.namespace', 'other than'],
    ['the namespace of Tasks', enabled({ namespace: 'demo-magic' }), 'publisher.namespace', 'other than'],
    ['the namespace of the sandboxes', enabled({ namespace: 'orka-runtimes' }), 'publisher.namespace', 'other than'],
    ['a namespace of the cluster', enabled({ namespace: 'kube-system' }), 'publisher.namespace', 'of its own'],
    [
      'the namespace of a forge',
      enabled({
        namespace: 'forge',
        forges: [{ host: 'git.forge.svc', private: true, peer: { namespace: 'forge', podLabels: { app: 'git' } } }],
      }),
      'publisher.namespace',
      'without a forge',
    ],
    ['little storage', enabled({ storage: { capacity: '100Mi' } }), 'publisher.storage.capacity', 'at least 1Gi'],
    ['a limit below the request', enabled({ resources: { limits: { memory: '1Mi' } } }), 'limits.memory', '256Mi'],
    ['no operation at once', enabled({ limits: { concurrentOperations: 0 } }), 'limits.concurrentOperations', '1'],
    ['an unknown key', enabled({ replicas: 2 }), 'publisher', 'replicas'],
    ['a host in capitals', withForge({ host: 'Git.example.org' }), 'forges[0].host', 'lower case'],
    ['a URL', withForge({ host: 'https://git.example.org' }), 'forges[0].host', 'DNS name'],
    ['a host with a port', withForge({ host: 'git.example.org:8443' }), 'forges[0].host', 'DNS name'],
    ['a loopback address', withForge({ host: '127.0.0.1' }), 'forges[0].host', 'not loopback'],
    ['a link-local address', withForge({ host: '169.254.169.254' }), 'forges[0].host', 'link-local'],
    ['a number that resolvers read as an address', withForge({ host: '2130706433' }), 'forges[0].host', 'IPv4'],
    ['localhost', withForge({ host: 'localhost' }), 'forges[0].host', 'loopback'],
    ['a port of nothing', withForge({ host: 'git.example.org', port: 0 }), 'forges[0].port', '1'],
    ['a private forge without a peer', withForge({ host: 'git.a', private: true }), 'forges[0].peer', 'a private forge needs it'],
    ['a public forge with a peer', withForge({ host: 'git.a', peer: pods }), 'forges[0].peer', 'private: true'],
    ['a peer without labels', withForge({ host: 'git.a', private: true, peer: { namespace: 'forge' } }), 'peer', 'podLabels'],
    [
      'a peer of both forms',
      withForge({ host: 'git.a', private: true, peer: { ...pods, cidr: '10.0.0.0/8' } }),
      'forges[0].peer',
      'cidr alone',
    ],
    ['a bad label', withForge({ host: 'git.a', private: true, peer: { ...pods, podLabels: { 'a b': 'c' } } }), 'podLabels', ''],
    ['a public range', withForge({ host: 'git.a', private: true, peer: { cidr: '8.8.8.0/24' } }), 'peer.cidr', '10.0.0.0/8'],
    ['a range with bits of a host', withForge({ host: 'git.a', private: true, peer: { cidr: '10.1.2.3/8' } }), 'peer.cidr', ''],
    [
      'a range with a metadata service',
      withForge({ host: 'git.a', private: true, peer: { cidr: '100.64.0.0/10' } }),
      'peer.cidr',
      'metadata service',
    ],
    ['text as certificates', withForge({ host: 'git.a', ca: 'secret' }), 'forges[0].ca', 'PEM certificates'],
    ['a certificate of nothing', withForge({ host: 'git.a', ca: certificate.replace(/MII/, 'AAA') }), 'ca', 'cannot be read'],
    ['a forge that is listed twice', withForge({ host: 'git.a' }, { host: 'git.a', port: 443 }), 'forges[1]', 'once'],
  ])('%s', (_, text, field, allowed) => {
    const error = (() => {
      try {
        read(text);
        return '';
      } catch (thrown) {
        return String(thrown);
      }
    })();
    expect(error).toContain(field);
    expect(error).toContain(allowed);
  });

  test('a private key among the certificates, which no error shows', () => {
    const text = withForge({ host: 'git.a', ca: `${certificate}${key}` });
    expect(() => read(text)).toThrow(/forges\[0\].ca: found a private key/);
    expect(() => read(text)).not.toThrow(key.split('\n')[1]);
  });

  test('a class that downloads elsewhere', () => {
    const elsewhere = enabled().replace(
      '    providerKind: codex',
      '    providerKind: codex\n    network: {artifacts: {namespace: other, url: "http://p.other.svc:8080"}}',
    );
    expect(() => read(elsewhere)).toThrow('classes.codex-standard.network.artifacts.namespace');
  });
});

describe('synth warns', () => {
  const closed = file.replace('controller:\n', 'controller:\n  apiServer: { addresses: [10.0.0.1/32] }\n');
  const warnings = (forge: object, more: object = {}, before = file) =>
    platformWarnings(read(`${before}publisher: ${JSON.stringify({ enabled: true, image, forges: [forge], ...more })}\n`));
  const publicForge = { host: 'git.example.org' };

  test.each(['git.forge.svc', 'git.corp.internal', '10.1.2.3'])('of %s, which no public address has', (host) => {
    expect(warnings({ host })).toEqual([
      `platform.yaml: publisher.forges[0]: ${host} has no public address, so it is never reached; set private and peer`,
    ]);
    expect(warnings({ host, private: true, peer: { cidr: '10.0.0.0/8' } })).toEqual([]);
  });

  test('of an address outside its range', () => {
    expect(warnings({ host: '10.1.2.3', private: true, peer: { cidr: '10.9.0.0/16' } }).join()).toContain(
      'does not hold 10.1.2.3',
    );
  });

  test('of a public forge where the controller is closed, and of none where it is not', () => {
    expect(warnings(publicForge, {}, closed).join()).toContain('all public addresses');
    expect(warnings(publicForge)).toEqual([]);
    expect(warnings({ host: 'git.a', private: true, peer: pods }, {}, closed)).toEqual([]);
  });

  test('of a volume that is small for the archives', () => {
    expect(warnings(publicForge, { storage: { capacity: '1Gi' } }).join()).toContain('publisher.storage.capacity');
    expect(warnings(publicForge, { storage: { capacity: '2Gi' } })).toEqual([]);
  });

  test('of archives that need more than the volume of a publisher without storage', () => {
    expect(warnings(publicForge, { limits: { artifactStoreBytes: 10 * 1024 ** 3 } })).toEqual([
      'platform.yaml: publisher.storage.capacity: 2Gi without storage is less than twice limits.artifactStoreBytes, 21474836480 bytes',
    ]);
  });
});

describe('the example of a platform with repositories', () => {
  const example = readPlatform(readFileSync('examples/platform-repositories.yaml', 'utf8'), 'platform-repositories.yaml');

  test('has a public forge, one in the cluster and one in a private network', () => {
    expect(example.controller.forges).toEqual(['github.com', 'git.forge.svc', 'git.internal.example:8443']);
    expect(example.publisher?.forges.map(({ peer }) => Object.keys(peer ?? {}))).toEqual([
      [],
      ['namespace', 'podLabels', 'podPort'],
      ['cidr'],
    ]);
  });

  test('has no warning', () => {
    expect(platformWarnings(example)).toEqual([]);
  });

  test('renders everything that it installs, and no Secret', () => {
    const applied = distFiles(example).filter(({ path }) => path.startsWith('apply/'));
    const text = applied.map((one) => one.text).join('');
    for (const name of ['orka-workspaces-publisher', 'orka-publisher', 'orka-publisher-config', 'orka-publisher-data'])
      expect(text).toContain(`  name: ${name}\n`);
    expect(text).not.toMatch(/^kind: Secret$/m);
  });
});

test('the example of a Task with a repository has objects of the right shape', () => {
  const [agent, task] = readYaml(readFileSync('examples/repository.yaml', 'utf8'), 'repository.yaml').map(({ value }) => value);
  expect(validate(agentKind, agent)).toEqual([]);
  expect(validate(taskKind, task)).toEqual([]);
});
