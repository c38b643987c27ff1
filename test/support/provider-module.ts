import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '../../src/lib/json.js';
import type { Json } from '../../src/lib/json.js';
import type { Manifest } from '../../src/api/index.js';
import { readYaml } from '../../src/render/yaml-read.js';

const spec = 'sigs.k8s.io/agent-sandbox@v1.0.3';

/** The folder of the provider's module in Go's cache, or why there is none. Tests stay off the network. */
export const providerModule: { readonly folder: string } | { readonly missing: string } = locate();

function locate(): typeof providerModule {
  const env = { ...process.env, GOPROXY: 'off', GOSUMDB: 'off', GOFLAGS: '', GOWORK: 'off' };
  const { error, status, stdout } = spawnSync('go', ['mod', 'download', '-json', spec], { cwd: '/', env, encoding: 'utf8' });
  if (error) return { missing: 'no Go on the PATH' };
  if (status !== 0) return { missing: "the provider's module is not in Go's cache; `npm run import` puts it there" };
  const { Dir: folder } = JSON.parse(stdout) as { readonly Dir: string };
  return existsSync(join(folder, 'examples')) ? { folder } : { missing: `${folder} has no folder examples` };
}

/** One object that the provider ships. */
export interface ProviderExample {
  /** Path inside the module. */
  readonly file: string;
  /** Its place among the documents of the four kinds in this file. */
  readonly index: number;
  readonly manifest: Manifest;
}

const kinds = ['Sandbox', 'SandboxTemplate', 'SandboxWarmPool', 'SandboxClaim'];

/**
 * All structurally valid documents of the four kinds, by file. Left out are kustomize patches (no containers), and Go templates, which are
 * no YAML or have mappings where the API wants text.
 */
export function providerExamples(folder: string): readonly ProviderExample[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml'));
  return files.sort().flatMap((file) =>
    documents(join(folder, file), file)
      .filter(isProviderObject)
      .map((manifest, index) => ({ file, index, manifest }))
      .filter(({ manifest }) => isStructural(manifest)),
  );
}

function documents(path: string, file: string): readonly Json[] {
  const text = readFileSync(path, 'utf8');
  if (!kinds.some((kind) => text.includes(`kind: ${kind}`))) return [];
  try {
    return readYaml(text, file).map(({ value }) => value);
  } catch {
    return [];
  }
}

const isProviderObject = (value: Json): value is Manifest =>
  isObject(value) &&
  kinds.some((kind) => value['kind'] === kind) &&
  ['agents.x-k8s.io/v1beta1', 'extensions.agents.x-k8s.io/v1beta1'].some((version) => value['apiVersion'] === version);

function isStructural({ metadata, ...object }: Manifest): boolean {
  const { podTemplate, replicas } = object['spec'] as {
    readonly replicas?: unknown;
    readonly podTemplate?: { readonly spec: { readonly containers?: readonly { readonly image?: unknown }[] } };
  };
  const containers = podTemplate === undefined || podTemplate.spec.containers?.every(({ image }) => typeof image === 'string');
  return typeof metadata.name === 'string' && containers === true && (replicas === undefined || typeof replicas === 'number');
}
