import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Testing } from 'cdk8s';
import type { Manifest } from '../src/api/index.js';
import { isObject, pointer } from '../src/lib/json.js';
import type { Json, JsonObject, Path } from '../src/lib/json.js';
import { quantityValue } from '../src/lib/quantity.js';
import { manifestsOf } from '../src/render/app.js';
import { readYaml } from '../src/render/yaml-read.js';
import { fromManifest, neededFor } from './support/from-manifest.js';
import { providerExamples, providerModule } from './support/provider-module.js';

const work = mkdtempSync(join(tmpdir(), 'orka-provider-examples-'));
const out = join(work, 'dist');
const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  spawnSync(process.execPath, args, { encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '', ...env } });

beforeAll(() => {
  const compiled = run([
    resolve('node_modules/typescript/bin/tsc'),
    '-p',
    resolve('examples/provider'),
    '--outDir',
    join(work, 'app'),
  ]);
  expect({ status: compiled.status, stdout: compiled.stdout }).toEqual({ status: 0, stdout: '' });
  for (const name of ['node_modules', 'package.json', 'lib']) symlinkSync(resolve(name), join(work, name));
  const rendered = run([join(work, 'app/main.js')], { CDK8S_OUTDIR: out });
  expect({ status: rendered.status, stderr: rendered.stderr }).toEqual({ status: 0, stderr: '' });
}, 120_000);

afterAll(() => rmSync(work, { recursive: true, force: true }));

const textOf = (example: string): string => readFileSync(join(out, `${example}.k8s.yaml`), 'utf8');
const objectsOf = (example: string): readonly Manifest[] =>
  readYaml(textOf(example), example).map(({ value }) => value as Manifest);

const examples = readdirSync('examples/provider')
  .filter((file) => !['all.ts', 'main.ts', 'shared.ts', 'tsconfig.json', 'out'].includes(file))
  .map((file) => file.replace('.ts', ''));

test.each(examples)('the example %s renders what was reviewed', (example) => {
  expect(textOf(example)).toMatchSnapshot();
});

test.each(examples)('what the example %s renders comes through fromManifest as it is', (example) => {
  const chart = Testing.chart();
  const objects = objectsOf(example);
  objects.forEach((manifest, index) => void fromManifest(chart, `${index}`, manifest, neededFor(manifest)));
  expect(manifestsOf(chart)).toEqual(objects);
});

/** One object of an example, what it was modelled on, and where it differs on purpose. */
interface Model {
  readonly example: string;
  readonly kind: string;
  /** Which of the objects of that kind, in order. */
  readonly nth?: number;
  readonly file: string;
  readonly index?: number;
  /** JSON pointers under `spec`: scripts and values of our own, and what is safer by default. */
  readonly differs?: readonly string[];
}

const pod = '/podTemplate/spec';
const models: readonly Model[] = [
  {
    example: 'fleet',
    kind: 'SandboxTemplate',
    file: 'openclaw-fleet-gke/20-openclaw-template',
    differs: [`${pod}/initContainers/0/command`, `${pod}/containers/0/command`],
  },
  { example: 'fleet', kind: 'SandboxWarmPool', file: 'openclaw-fleet-gke/30-warmpool' },
  {
    example: 'fleet',
    kind: 'SandboxClaim',
    file: 'openclaw-gvisor-sandbox/openclaw-claim',
    differs: ['/additionalPodMetadata/labels/sandbox.users.io~1openclaw-claim'],
  },
  {
    example: 'agent-per-user',
    kind: 'SandboxTemplate',
    file: 'hermes-agents-as-a-service/10-sandboxtemplate',
    differs: [`${pod}/initContainers/0/command`],
  },
  {
    example: 'agent-per-user',
    kind: 'SandboxClaim',
    file: 'hermes-agents-as-a-service/30-claim-alice',
    differs: ['/additionalPodMetadata/labels/sandbox.users.io~1hermes-user'],
  },
  { example: 'kata', kind: 'SandboxTemplate', file: 'kata-aks/sandboxtemplate', differs: [`${pod}/containers/0/image`] },
  { example: 'kata', kind: 'SandboxWarmPool', file: 'kata-aks/sandboxwarmpool' },
  { example: 'kata', kind: 'SandboxClaim', file: 'kata-aks/sandboxclaim' },
  {
    example: 'late-bind',
    kind: 'SandboxTemplate',
    file: 'latebind-storage-gke-sandbox/sandbox-warmpool',
    differs: [`${pod}/containers/0/args`],
  },
  { example: 'late-bind', kind: 'SandboxWarmPool', file: 'latebind-storage-gke-sandbox/sandbox-warmpool', index: 1 },
  {
    example: 'repository',
    kind: 'SandboxTemplate',
    file: 'aider-sandbox/template',
    differs: [`${pod}/initContainers/0/command`, `${pod}/initContainers/0/env/0/value`],
  },
  { example: 'repository', kind: 'SandboxWarmPool', file: 'aider-sandbox/warmpool' },
  { example: 'notebooks', kind: 'SandboxTemplate', file: 'warmpool-quickstart/secure-sandboxtemplate' },
  { example: 'notebooks', kind: 'SandboxTemplate', nth: 1, file: 'warmpool-quickstart/sandboxtemplate' },
  { example: 'notebooks', kind: 'SandboxWarmPool', file: 'warmpool-quickstart/sandboxwarmpool' },
  { example: 'notebooks', kind: 'SandboxClaim', file: 'warmpool-quickstart/sandbox-claim' },
  { example: 'team-networks', kind: 'SandboxTemplate', file: 'network-policy-api-sandbox/manifests/20-sandbox-templates' },
  {
    example: 'team-networks',
    kind: 'SandboxTemplate',
    nth: 1,
    file: 'network-policy-api-sandbox/manifests/20-sandbox-templates',
    index: 3,
  },
  {
    example: 'injected-server',
    kind: 'SandboxTemplate',
    file: 'sandboxd-sandbox/deploy/b-inject-binary',
    differs: [`${pod}/initContainers/0/command`],
  },
  { example: 'injected-server', kind: 'SandboxWarmPool', file: 'sandboxd-sandbox/deploy/b-inject-binary', index: 1 },
  { example: 'windows', kind: 'Sandbox', file: 'windows-sandbox/windows-sandbox' },
  { example: 'ssh-boxes', kind: 'Sandbox', file: 'containarium-ssh-sandbox/gateway-demo' },
  { example: 'ssh-boxes', kind: 'Sandbox', nth: 1, file: 'containarium-ssh-sandbox/gateway-demo', index: 1 },
  {
    example: 'jupyterlab',
    kind: 'Sandbox',
    file: 'jupyterlab/jupyterlab-full',
    differs: [`${pod}/automountServiceAccountToken`, `${pod}/containers/0/args`, `${pod}/initContainers/0/command`],
  },
  { example: 'shared-models', kind: 'Sandbox', file: 'langchain/deployment', differs: [`${pod}/automountServiceAccountToken`] },
  {
    example: 'confined-agent',
    kind: 'Sandbox',
    file: 'nono-sandbox/sandbox',
    differs: ['agents.x-k8s.io~1nono-profile', 'example.com~1profile'].map((key) => `/podTemplate/metadata/annotations/${key}`),
  },
];

/** What the API server and the provider fill in, by the name of the member that holds it. */
const filledIn: JsonObject = {
  networkPolicyManagement: 'Managed',
  envVarsInjectionPolicy: 'Disallowed',
  volumeClaimTemplatesPolicy: 'Disallowed',
};

/** The meaning of a spec: defaults left out, no empty list where none means the same, quantities as numbers, lists by name sorted. */
function meaning(value: Json | undefined, path: Path = []): Json | undefined {
  if (Array.isArray(value)) {
    const items = value.map((item, index) => meaning(item as Json, [...path, index]) ?? null);
    const byName = items.every(
      (item) => isObject(item) && 'name' in item && ['volumeMounts', 'env'].includes(String(path.at(-1))),
    );
    return byName ? [...items].sort((a, b) => nameOf(a).localeCompare(nameOf(b))) : items;
  }
  if (isObject(value)) {
    const members = Object.entries(value).flatMap(([name, member]): [string, Json][] => {
      const kept = meaning(member, [...path, name]);
      const isDefault = path.length === 0 && filledIn[name] === member;
      const saysNothing = ['from', 'to', 'ports'].includes(name) && Array.isArray(member) && member.length === 0;
      return kept === undefined || isDefault || saysNothing ? [] : [[name, kept]];
    });
    return Object.fromEntries(members);
  }
  const amount =
    ['requests', 'limits'].includes(String(path.at(-2))) && typeof value === 'string' ? quantityValue(value) : undefined;
  return amount === undefined ? value : String(amount);
}
const nameOf = (item: Json): string => ['name', 'mountPath'].map((key) => JSON.stringify((item as JsonObject)[key])).join();

/** Pointers of what two values differ in, as far up as a list or a text. */
function differences(a: Json | undefined, b: Json | undefined, path: Path = []): readonly string[] {
  if (isObject(a) && isObject(b))
    return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((name) => differences(a[name], b[name], [...path, name]));
  const isPart = (value: Json | undefined): value is readonly Json[] => Array.isArray(value) && value.every(isObject);
  if (isPart(a) && isPart(b) && a.length === b.length)
    return a.flatMap((item, index) => differences(item, b[index], [...path, index]));
  return JSON.stringify(a) === JSON.stringify(b) ? [] : [pointer(path)];
}

/** Names are our own everywhere; those that objects refer to each other by follow them. */
const references = ['/sandboxTemplateRef/name', '/warmPoolRef/name'];

const reason = 'missing' in providerModule ? providerModule.missing : undefined;
if (reason !== undefined) test.skip(`the examples mean what they were modelled on (skipped: ${reason})`, () => undefined);
else
  describe('an example means what it was modelled on, but for what it says', () => {
    const originals = 'missing' in providerModule ? [] : providerExamples(providerModule.folder);
    test.each(models.map((model) => [`${model.example}: ${model.kind} of ${model.file}`, model] as const))(
      '%s',
      (_, { example, kind, nth = 0, file, index = 0, differs = [] }) => {
        const own = objectsOf(example).filter((object) => object.kind === kind)[nth];
        const original = originals.find((one) => one.file === `examples/${file}.yaml` && one.index === index)?.manifest;
        expect(original?.kind).toBe(kind);
        const found = differences(meaning(own?.['spec']), meaning(original?.['spec'])).filter((at) => !references.includes(at));
        expect([...found].sort()).toEqual([...differs].sort());
      },
    );
  });
