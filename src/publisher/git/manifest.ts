import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';

import { canonicalJson } from '../../lib/canonical-json.js';
import type { Digest } from '../../lib/sha256.js';
import type { TreeFile } from './tree.js';

/** What a manifest says beside its entries: these differ between operations on one tree. */
export interface ManifestHead {
  readonly repositoryId: string;
  readonly sourceRef: string;
  readonly baselineOid: string;
  readonly treeOid: string;
}

/** Digest of the manifest of a workspace: canonical JSON, of which only one entry is held at a time. Source: repository.md §2.8. */
export class ManifestDigest {
  readonly #hash: Hash = createHash('sha256');
  readonly #tail: string;

  constructor({ repositoryId, sourceRef, baselineOid, treeOid }: ManifestHead) {
    this.#hash.update(`{"baselineOid":${canonicalJson(baselineOid)},"entries":[`);
    const rest = canonicalJson({ repositoryId, schema: 'orka.workspace-source.v1', sourceRef, treeOid });
    this.#tail = `],${rest.slice(1)}`;
  }

  /** Parts of what {@link manifestEntry} makes, joined with commas. */
  add(entries: string | Buffer): void {
    this.#hash.update(entries);
  }

  finish(): Digest {
    return `sha256:${this.#hash.update(this.#tail).digest('hex')}`;
  }
}

/** One entry of a manifest. */
export const manifestEntry = ({ path, mode, oid, size, target }: TreeFile): string =>
  canonicalJson({ path, mode, oid, size, ...(target === undefined ? {} : { target }) });
