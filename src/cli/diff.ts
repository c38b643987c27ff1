import { join } from 'node:path';
import type { Manifest } from '../api/index.js';
import { createClient } from '../kube/client.js';
import type { KubeClient } from '../kube/client.js';
import { broughtBy, compare, kindName, servedBy } from '../kube/compare.js';
import type { Brought, Comparison } from '../kube/compare.js';
import { KubeError } from '../kube/errors.js';
import { createTransport } from '../kube/transport.js';
import { isObject } from '../lib/json.js';
import { refuseDuplicates } from '../render/order.js';
import { diffResult, printDiff, printSummary } from './diff-print.js';
import type { DiffedObject, DiffResult } from './diff-print.js';
import { InputError, inputName, refuseTwoInputs } from './files.js';
import type { InputLimit } from './files.js';
import { accessBy, usualKubeconfig } from './kubeconfig.js';
import { maxInput } from './max-input.js';
import { readObjects } from './read-objects.js';
import type { ReadObject } from './read-objects.js';

export interface DiffOptions {
  readonly filename?: readonly string[];
  readonly dist?: string | true;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly fieldManager: string;
  readonly allowManager: readonly string[];
  readonly output: string;
  /** Bytes of each file, as a quantity. */
  readonly maxInput?: string;
}

const outputs = ['text', 'json'] as const;

/**
 * Managers whose fields belong to a cluster at work: its control plane, the sandbox provider, our controller. They are named, and are no
 * drift. Source: provider.md §6 for the provider's.
 */
const expectedManagers = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'agent-sandbox-controller',
  'sandbox-controller',
  'orka-workspaces-controller',
] as const;

/** Compares files with a cluster. Nothing is stored there. */
export async function diff(options: DiffOptions): Promise<void> {
  const output = outputs.find((form) => form === options.output);
  if (!output)
    throw new InputError('input-invalid', { at: 'diff', field: '--output', found: options.output, allowed: outputs.join(', ') });
  if (options.fieldManager === '')
    throw new InputError('input-invalid', {
      at: 'diff',
      field: '--field-manager',
      found: '',
      allowed: 'the name of a field manager',
    });
  const limit = maxInput('diff', options.maxInput);
  const given = filesOf(options)
    .flatMap((file) => comparable(file, limit))
    .map(named);
  if (given.length === 0)
    throw new InputError('input-invalid', { at: 'diff', found: 'no object', allowed: 'at least one object to compare' });
  refuseDuplicates(given);
  const access = accessBy(options.kubeconfig ?? usualKubeconfig(), options.context);
  const transport = createTransport(access);
  try {
    const client = createClient(transport, access.namespace);
    const objects = await compareAll(
      client,
      given.map(({ manifest }) => manifest),
      options,
    );
    const result = diffResult(options.fieldManager, objects);
    if (output === 'json') process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
    else printDiff(result);
    printSummary(result);
    process.exitCode = exitCodeOf(result);
  } finally {
    transport.close();
  }
}

/** 2: something could not be compared. 1: there is drift. */
function exitCodeOf({ counts, drift }: DiffResult): number {
  return counts.error > 0 ? 2 : drift ? 1 : 0;
}

async function compareAll(
  client: KubeClient,
  manifests: readonly Manifest[],
  { fieldManager, allowManager }: DiffOptions,
): Promise<readonly DiffedObject[]> {
  const brought = broughtBy(manifests);
  const expected = [...expectedManagers, ...allowManager];
  const objects: DiffedObject[] = [];
  /** Kinds of a CRD of the set that is not applied as it is there. */
  const behind = new Set<string>();
  for (const manifest of manifests) {
    const outcome = await outcomeOf(client, manifest, fieldManager, brought);
    if (outcome.state !== 'same') for (const kind of servedBy(manifest)) behind.add(kind);
    const hint = behind.has(kindName(manifest)) ? ' (its CRD of the same set differs in the cluster; apply that first)' : '';
    objects.push({ manifest, expected, ...outcome, ...('error' in outcome ? { error: outcome.error + hint } : {}) });
  }
  return objects;
}

/** What ends the command: the server is not there, or does not know us. Everything else concerns one object. */
const fatal: readonly KubeError['code'][] = ['unreachable', 'timeout', 'aborted', 'unauthorized'];

async function outcomeOf(
  client: KubeClient,
  manifest: Manifest,
  manager: string,
  brought: Brought,
): Promise<Comparison | { readonly state: 'error'; readonly error: string }> {
  try {
    return await compare(client, manifest, { manager, brought });
  } catch (error) {
    if (!(error instanceof KubeError) || fatal.includes(error.code)) throw error;
    // The server's words quote what does not fit, and in a Secret that may be the secret.
    const says = manifest.kind === 'Secret' ? `${error.code} (HTTP ${error.status})` : (error.finding.says ?? error.message);
    return { state: 'error', error: says };
  }
}

function filesOf({ filename, dist }: DiffOptions): readonly string[] {
  if ((filename === undefined) === (dist === undefined))
    throw new InputError('input-invalid', {
      at: 'diff',
      found: filename === undefined ? 'nothing to compare' : '--filename and --dist',
      allowed: 'either --filename or --dist',
    });
  if (filename !== undefined) {
    refuseTwoInputs(
      'diff',
      filename.map((file) => ['--filename', file]),
    );
    return filename;
  }
  const folder = dist === true || dist === undefined ? 'dist' : dist;
  const file = join(folder, 'kustomization.yaml');
  const [kustomization] = readObjects(file);
  const resources = kustomization?.value['resources'];
  if (!Array.isArray(resources) || !resources.every((path) => typeof path === 'string'))
    throw new InputError('input-invalid', { at: file, field: 'resources', found: resources, allowed: 'a list of files' });
  return resources.map((path) => join(folder, path));
}

/** An empty file is a broken pipe more often than a wish, so that it never counts as no drift. */
function comparable(file: string, limit: InputLimit): readonly ReadObject[] {
  const objects = readObjects(file, limit);
  if (objects.length > 0) return objects;
  throw new InputError('input-invalid', { at: inputName(file), found: 'no object', allowed: 'at least one object to compare' });
}

function named({ at, value }: ReadObject): { readonly at: string; readonly manifest: Manifest } {
  const { metadata } = value;
  const name = isObject(metadata) ? metadata['name'] : undefined;
  const namespace = isObject(metadata) ? metadata['namespace'] : undefined;
  if (typeof name !== 'string' || name === '')
    throw new InputError('input-invalid', { at, field: 'metadata.name', found: name, allowed: 'the name of the object' });
  if (namespace !== undefined && typeof namespace !== 'string')
    throw new InputError('input-invalid', { at, field: 'metadata.namespace', found: namespace, allowed: 'a name' });
  return { at, manifest: value as Manifest };
}
