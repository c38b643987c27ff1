import type { Manifest } from '../api/index.js';
import { RenderError } from '../constructs/errors.js';
import type { SecretShape } from '../constructs/secret-shape.js';
import type { Digest } from '../domain/digests.js';
import { isWorkspaceFacts } from '../domain/facts.js';
import type { Facts } from '../domain/facts.js';
import { frozenFields } from '../domain/frozen.js';
import type { FrozenValues } from '../domain/frozen.js';
import { canonicalJson } from '../lib/canonical-json.js';
import { equalJson } from '../lib/json.js';
import { digestOf } from '../lib/sha256.js';
import type { CompiledFamily, CompiledPool } from './compile.js';

/** The objects of one pool, ready to be sent, in the stages between which the controller guards. */
export interface RenderedPool {
  readonly isolation: readonly Manifest[];
  readonly workload: readonly Manifest[];
  /** Only of a workspace pool. */
  readonly claim?: Manifest;
  readonly secrets: readonly SecretShape[];
  /** Digest of the Pod template, as its annotation says. */
  readonly templateRevision: Digest;
}

/**
 * Fills the facts of one pool into a compiled class; the kind of facts selects the family. Parts without a fact are shared between
 * results and frozen. Throws `frozen-value` for a pool that was frozen with other values than the class has.
 */
export function instantiate(compiled: CompiledPool, facts: Facts, frozen: FrozenValues): RenderedPool {
  for (const name of Object.keys(frozenFields) as (keyof FrozenValues)[]) {
    if (frozen[name] === compiled.frozen[name] || equalJson(frozen[name], compiled.frozen[name])) continue;
    throw new RenderError('frozen-value', {
      at: `RuntimePool ${facts.poolNamespace}/${facts.poolName}`,
      field: frozenFields[name],
      found: frozen[name],
      allowed: `${JSON.stringify(compiled.frozen[name])}, as the class ${compiled.spec.providerKind}/${compiled.spec.resourceClass} has it`,
    });
  }
  const family = isWorkspaceFacts(facts) ? compiled.workspace : compiled.plain;
  const templateRevision = revisionOf(family, facts);
  const values = { ...facts, templateRevision };
  return {
    isolation: family.isolation.map(({ fill }) => fill(values)),
    workload: family.workload.map(({ fill }) => fill(values)),
    ...(family.claim ? { claim: family.claim.fill(values) } : {}),
    secrets: family.secrets.map(({ fill, keys }) => ({ manifest: fill(values), keys })),
    templateRevision,
  };
}

/** The digest of the instantiated Pod template, taken over its canonical text without building it. */
function revisionOf({ revisionText: { texts, leaves } }: CompiledFamily, facts: Facts): Digest {
  let text = texts[0] ?? '';
  leaves.forEach((name, index) => {
    text += canonicalJson((facts as Readonly<Record<string, string | number>>)[name] ?? null) + (texts[index + 1] ?? '');
  });
  return digestOf(text);
}

/** Every object of a rendered pool but its Secrets, in the order in which they are applied. */
export function renderedObjects({ isolation, workload, claim }: RenderedPool): readonly Manifest[] {
  return [...isolation, ...workload, ...(claim ? [claim] : [])];
}
