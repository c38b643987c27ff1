import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { CodedError } from '../../src/lib/errors.js';
import { distFiles, platformWarnings } from '../../src/render/dist.js';
import { readPlatform } from '../../src/render/platform.js';

const file = readFileSync('platform.yaml', 'utf8');
const read = (text: string) => readPlatform(text, 'platform.yaml');

test('the committed platform is read with every default filled in', () => {
  expect(read(file)).toMatchSnapshot();
});

test('a platform is paused only if it says so', () => {
  expect(read(file).controller.paused).toBe(false);
  expect(read(file.replace(/^controller:$/m, 'controller:\n  paused: true')).controller.paused).toBe(true);
  expect(() => read(file.replace(/^controller:$/m, 'controller:\n  paused: "yes"'))).toThrow(/controller.paused: found "yes"/);
});

test('defaults fill in at any depth', () => {
  const whole = read(file);
  expect(read(`${file}dns: {}\n`)).toEqual(whole);
  expect(read(`${file}dns: {namespace: kube-system}\n`)).toEqual(whole);
  expect(read(`${file}dns: {podLabels: {k8s-app: kube-dns}}\n`)).toEqual(whole);
  expect(read(file.replace(/^controller:$/m, 'controller:\n  api: {}'))).toEqual(whole);
  expect(read(file.replace(/gates: \{.*\}/, 'gates: {}'))).toEqual(whole);
  const own = [
    'pod: {}',
    'pod: {resources: {}, volumes: {}, placement: {}}',
    'pod: {resources: {requests: {}, limits: {}}}',
    'providerProxy: {}',
    'providerProxy: {tokenSecretRef: {}}',
    'network: {}',
    'network: {controller: {}, dns: {}}',
    'network: {dns: {namespace: kube-system, podLabels: {k8s-app: kube-dns}}}',
    'workspace: {}',
  ];
  for (const empty of own)
    expect(read(file.replace('    providerKind: codex', `    providerKind: codex\n    ${empty}`))).toEqual(whole);
});

describe('addresses of what runs with the network of its node', () => {
  const network = (text: string) => read(text).classes[0]!.spec.network;
  const inClass = (text: string): string => file.replace('    providerKind: codex', `    providerKind: codex\n    ${text}`);
  const both = { namespace: 'kube-system', podLabels: { 'k8s-app': 'kube-dns' }, addresses: ['169.254.20.10/32', 'fd00::a/128'] };

  test('stand in every class, beside the Pods of DNS', () => {
    expect(network(`${file}dns: {addresses: [169.254.20.10/32, "fd00::a/128"]}\n`).dns).toEqual(both);
  });

  test('stand in a class alone', () => {
    expect(network(inClass('network: {dns: {addresses: [169.254.20.10/32, "fd00::a/128"]}}')).dns).toEqual(both);
    expect(network(`${inClass('network: {dns: {addresses: [10.0.0.1/32]}}')}dns: {addresses: [10.0.0.2/32]}\n`).dns).toEqual({
      ...both,
      addresses: ['10.0.0.1/32'],
    });
  });

  test('stand with the parts of them that stay closed', () => {
    const dns = 'dns: {addresses: [10.0.0.0/24], except: [10.0.0.5/32]}';
    expect(network(`${file}${dns}\n`).dns).toEqual({ ...both, addresses: ['10.0.0.0/24'], except: ['10.0.0.5/32'] });
    expect(network(inClass(`network: {${dns}}`)).dns).toEqual(network(`${file}${dns}\n`).dns);
  });

  test('stand instead of Pods where there are no labels', () => {
    expect(network(`${file}dns: {podLabels: {}, addresses: [10.0.0.1/32]}\n`).dns).toMatchObject({ podLabels: {} });
    expect(() => distFiles(read(`${file}dns: {podLabels: {}}\n`))).toThrow(
      /platform.yaml: dns.podLabels: found {}, allowed: .*podLabels, addresses or both are needed/,
    );
  });

  test('may be those of the controller and of the proxy', () => {
    const text = inClass('providerProxy: {addresses: [10.0.0.5/32]}');
    const { spec } = read(text.replace(/^controller:$/m, 'controller:\n  addresses: [10.0.0.6/32]')).classes[0]!;
    expect([spec.providerProxy.addresses, spec.network.controller.addresses]).toEqual([['10.0.0.5/32'], ['10.0.0.6/32']]);
  });

  test('may be those of the API server, on its usual ports', () => {
    const text = file.replace(/^controller:$/m, 'controller:\n  apiServer: {addresses: [10.0.0.1/32]}');
    expect(read(text).controller.apiServer).toEqual({ addresses: ['10.0.0.1/32'], ports: [443, 6443] });
    expect(() => read(text.replace('10.0.0.1/32', '0.0.0.0/0'))).toThrow(
      /controller.apiServer.addresses\[0\]: found "0.0.0.0\/0"/,
    );
  });

  test('are refused once, with the key that the author wrote, when several classes inherit them', () => {
    const other = file.slice(file.indexOf('  codex-standard:')).replace('codex-standard', 'codex-large');
    const two = `${file}${other.replace('providerKind: codex', '$&\n    resourceClass: large')}`;
    const refusal = (text: string) => {
      try {
        read(text);
        return '';
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(refusal(`${two}dns: {addresses: [10.0.0.0/16]}\n`)).toMatch(
      /^platform.yaml: dns.addresses\[0\]: found "10.0.0.0\/16", .*$/,
    );
    expect(refusal(two.replace(/^controller:$/m, 'controller:\n  addresses: [10.0.0.0/16]'))).toMatch(
      /^platform.yaml: controller.addresses\[0\]: found "10.0.0.0\/16", .*$/,
    );
    expect(refusal(`${two}    network: {dns: {addresses: [10.0.0.0/16]}}\n`)).toMatch(
      /^platform.yaml: classes.codex-large.network.dns.addresses\[0\]: found "10.0.0.0\/16", .*$/,
    );
    expect(refusal(two.replace('runtime: orka-runtimes', 'runtime: orka-system'))).toMatch(
      /^platform.yaml: namespaces.runtime: found "orka-system", .*$/,
    );
  });

  test('are refused with their key', () => {
    expect(() => read(`${file}dns: {addresses: [node-local-dns]}\n`)).toThrow(/dns.addresses\[0\]: found "node-local-dns"/);
    expect(() => distFiles(read(inClass('providerProxy: {addresses: [169.254.169.254/32]}')))).toThrow(
      /classes.codex-standard.providerProxy.addresses\[0\]: found "169.254.169.254\/32", allowed: no address of a metadata service/,
    );
  });
});

describe('a selector that no Pod of the Pod network has', () => {
  const text = `${file}dns: {podLabels: {k8s-app: node-local-dns}, addresses: [169.254.20.10/32]}\n`;

  test('is a warning that names the addresses to use', () => {
    expect(platformWarnings(read(text))).toEqual([
      expect.stringMatching(
        /^platform.yaml: classes.codex-standard.network.dns.podLabels: k8s-app: node-local-dns selects nothing: .* network.dns.addresses, such as 169.254.20.10\/32$/,
      ),
    ]);
    expect(platformWarnings(read(file))).toEqual([]);
  });

  test('is a comment above the reviewed objects, which are the same', () => {
    const reviewed = (of: string) => distFiles(read(of)).filter(({ path }) => path.startsWith('review/'));
    for (const { text: page } of reviewed(text))
      expect(page).toMatch(/^# .*\n# Warning: network.dns.podLabels: k8s-app: node-local-dns/);
    for (const { text: page } of reviewed(file)) expect(page).not.toContain('Warning');
  });

  test('is found in a patch', () => {
    const peer =
      '{to: [{namespaceSelector: {matchLabels: {a: b}}, podSelector: {matchLabels: {component: kube-apiserver}}}], ports: [{protocol: TCP, port: 6443}]}';
    const patch = `patches: [{target: {kind: NetworkPolicy, suffix: dns-egress}, operations: [{op: add, path: /spec/egress/-, value: ${peer}}]}]`;
    const patched = file.replace('    providerKind: codex', `    providerKind: codex\n    ${patch}`);
    expect(platformWarnings(read(patched))).toEqual([
      expect.stringContaining('patches: component: kube-apiserver selects nothing'),
    ]);
  });
});

test('a resource class that no Task uses is a warning', () => {
  const large = file.replace('providerKind: codex', '$&\n    resourceClass: large');
  expect(platformWarnings(read(large))).toEqual([
    'platform.yaml: classes.codex-standard.resourceClass: no Task of this version uses large, only standard',
  ]);
});

describe('a platform is refused, with the file and the field, when', () => {
  test.each([
    ['a key is unknown', file.replace('version: 1', 'version: 1\ncolour: red'), /^platform.yaml: colour: found "red"/],
    [
      'a nested key is unknown',
      file.replace('    providerKind: codex', '    providerKind: codex\n    pod: {cpu: 2}'),
      /classes.codex-standard.pod.cpu/,
    ],
    [
      'an image has a tag',
      file.replace(/@sha256:c0dec0de\w*/, ':latest'),
      /classes.codex-standard.runtime.image: found "registry.example\/orka-workspaces\/acp-codex:latest"/,
    ],
    [
      'the image of the controller is no reference',
      file.replace(/image: (registry\S*controller@)/, 'image: https://$1'),
      /controller.image: found "https:.*", allowed: <host>/,
    ],
    ['the version is another one', file.replace('version: 1', 'version: 2'), /version: found 2/],
    ['a class is missing its runtime', file.replace(/ {4}runtime:[\s\S]*$/, ''), /classes.codex-standard.runtime: found nothing/],
    [
      'Tasks and sandboxes share a namespace',
      file.replace('runtime: orka-runtimes', 'runtime: demo-magic'),
      /namespaces.runtime: found "demo-magic"/,
    ],
    ['a class has a bad name', file.replace('codex-standard:', 'Codex_Standard:'), /classes: found "Codex_Standard"/],
    ['it is no YAML', 'version: [1', /platform.yaml:\d+:\d+/],
    ['a key stands twice', `${file}\nversion: 1\n`, /platform.yaml:\d+:\d+/],
    ['there are two documents', `${file}\n---\nversion: 1\n`, /2 documents/],
    ['it is empty', '', /0 documents/],
  ])('%s', (_, text, message) => {
    expect(() => read(text)).toThrow(message);
    expect(() => read(text)).toThrow(CodedError);
  });

  test('several keys are wrong, each is a line of one error', () => {
    const text = file
      .replace('version: 1', 'version: 1\nclases: {}')
      .replace('    runtime:', '    resourceClas: large\n    runtime:');
    expect(() => read(text)).toThrow(
      /^platform.yaml: clases: .*did you mean classes.*\nerror: platform.yaml: classes.codex-standard.resourceClas: .*did you mean resourceClass|^platform.yaml: classes.codex-standard.resourceClas: .*did you mean resourceClass.*\nerror: platform.yaml: clases: .*did you mean classes/,
    );
    const nulls = file.replace('version: 1', 'version: null').replace('providerKind: codex', 'providerKind: null');
    expect(() => read(nulls)).toThrow(
      /version: found null.*\nerror: platform.yaml: classes.codex-standard.providerKind: found null/,
    );
    const together = file.replace('runtime: orka-runtimes', 'runtime: demo-magic').replace('codex-standard:', 'Codex_Standard:');
    expect(() => read(together)).toThrow(
      /namespaces.runtime: found "demo-magic".*\nerror: platform.yaml: classes: found "Codex_Standard"/,
    );
  });

  test('the values of two of three classes cannot be rendered, each is named by its key', () => {
    const one = file.slice(file.indexOf('  codex-standard:'));
    const bad = (name: string, pod: string) =>
      one
        .replace('codex-standard', name)
        .replace('providerKind: codex', `providerKind: codex\n    resourceClass: ${name}\n    pod: ${pod}`);
    const text = `${file}${bad('large', '{resources: {requests: {cpu: "8"}, limits: {cpu: "4"}}}')}${bad('huge', '{resources: {requests: {memory: 9Gi}}}')}`;
    expect(() => distFiles(readPlatform(text, 'team.yaml'), 'team.yaml')).toThrow(
      /^team.yaml: classes.huge.pod.resources.limits.memory: found "4Gi", .*\nerror: team.yaml: classes.large.pod.resources.limits.cpu: found "4", /,
    );
  });

  test('one of two classes breaks rules and the rest of the file has a conflict, all of it at once', () => {
    const second = file
      .slice(file.indexOf('  codex-standard:'))
      .replace('codex-standard', 'codex-large')
      .replace(
        'providerKind: codex',
        'providerKind: codex\n    resourceClass: large\n    pod: {resources: {requests: {cpu: "8", memory: 9Gi}}, volumes: {tmp: "0"}}',
      );
    const text = `${file}${second}`.replace('runtime: orka-runtimes', 'runtime: demo-magic');
    let message = '';
    try {
      read(text);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message.split('\n').map((line) => /^(?:error: )?platform\.yaml: (\S+): found/.exec(line)?.[1])).toEqual([
      'namespaces.runtime',
      'classes.codex-large.pod.volumes.tmp',
      'classes.codex-large.pod.resources.limits.cpu',
      'classes.codex-large.pod.resources.limits.memory',
    ]);
  });

  test('an empty key and an unknown key are told together', () => {
    const text = file.replace('version: 1', 'version: null\ncolour: red');
    expect(() => read(text)).toThrow(/version: found null, .*\nerror: platform.yaml: colour: found "red"/);
  });

  test('two classes are for one provider kind and resource class', () => {
    const second = file.slice(file.indexOf('  codex-standard:')).replace('codex-standard', 'codex-again');
    expect(() => read(`${file}${second}`)).toThrow(
      /classes.codex-standard: found "codex\/standard", allowed: one class for each providerKind and resourceClass; codex-again/,
    );
  });
});
