import type { Manifest } from '../api/index.js';
import { refOf } from './client.js';
import type { CallOptions, KubeClient } from './client.js';

export interface CreateOptions extends CallOptions {
  readonly manager: string;
  readonly dryRun?: boolean;
}

/** Creates an object and never touches one that is there: `already-exists`. Unknown fields are refused. */
export async function create(
  client: KubeClient,
  manifest: Manifest,
  { manager, dryRun = false, ...call }: CreateOptions,
): Promise<Manifest> {
  const { name: _name, ...collection } = refOf(manifest);
  const path = await client.pathOf(collection, call);
  const query = { fieldManager: manager, fieldValidation: 'Strict', dryRun: dryRun ? 'All' : undefined };
  return (await client.request({ method: 'POST', path, query, body: manifest, ...call })) as Manifest;
}
