import { App, Chart } from 'cdk8s';
import type { Manifest, RuntimePoolClassSpec } from '../api/index.js';
import { RenderError } from '../constructs/errors.js';
import { PlainPool } from '../constructs/plain-pool.js';
import type { Resource } from '../constructs/resource.js';
import type { SecretShape } from '../constructs/secret-shape.js';
import { podTemplateAt, revisionPointer } from '../constructs/template-revision.js';
import { WorkspacePool } from '../constructs/workspace-pool.js';
import { domainDigest } from '../domain/digests.js';
import type { Digest } from '../domain/digests.js';
import { frozenByClass } from '../domain/frozen.js';
import type { FrozenValues } from '../domain/frozen.js';
import {
  leafOf,
  placeholderForm,
  plainPlaceholders,
  revisionPlaceholder,
  workspacePlaceholders,
} from '../domain/placeholders.js';
import type { LeafName } from '../domain/placeholders.js';
import { canonicalJson } from '../lib/canonical-json.js';
import { isObject } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import { classAt, classProblems } from './class-problems.js';
import { filler, findLeaves } from './leaves.js';
import type { Leaf, LeafValues } from './leaves.js';

/** One object whose only unknowns are whole leaves. */
export interface CompiledObject {
  /** With place-holders. */
  readonly manifest: Manifest;
  readonly leaves: readonly Leaf[];
  readonly fill: (values: LeafValues) => Manifest;
}

/** The objects of one family, in stages, because the controller guards between them. */
export interface CompiledFamily {
  readonly isolation: readonly CompiledObject[];
  readonly workload: readonly CompiledObject[];
  readonly claim?: CompiledObject;
  readonly secrets: readonly (CompiledObject & { readonly keys: readonly string[] })[];
  /** Canonical JSON of the Pod template, cut where a leaf stands: text, leaf, text, leaf … text. */
  readonly revisionText: { readonly texts: readonly string[]; readonly leaves: readonly LeafName[] };
}

/** A class, compiled: what every pool of it looks like, but for the facts of the one pool. */
export interface CompiledPool {
  readonly spec: RuntimePoolClassSpec;
  readonly frozen: FrozenValues;
  readonly workspace: CompiledFamily;
  readonly plain: CompiledFamily;
}

/**
 * Runs the constructs of both families with place-holder facts and proves that each fact is placed as a whole leaf, so that what
 * is sent is what was reviewed but for these leaves. Throws {@link RenderError}; an invalid class compiles to nothing.
 */
export function compile(spec: RuntimePoolClassSpec): CompiledPool {
  const at = classAt(spec);
  checkClass(at, spec);
  // A fresh app costs a tenth of a millisecond and keeps the environment out: nothing is written, nothing recorded.
  const chart = new Chart(new App({ outdir: '/dev/null', recordConstructMetadata: false }), 'pool');
  const workspace = new WorkspacePool(chart, 'workspace', { poolClass: spec, facts: workspacePlaceholders });
  const plain = new PlainPool(chart, 'plain', { poolClass: spec, facts: plainPlaceholders });
  return {
    spec,
    frozen: frozenByClass(spec),
    workspace: {
      ...stages(at, workspace.isolation.resources, [workspace.template.resource, workspace.warmPool.resource], workspace.secrets),
      claim: compiled(at, workspace.claim.resource.manifest()),
      revisionText: revisionText(workspace.template.resource.manifest(), 'SandboxTemplate'),
    },
    plain: {
      ...stages(at, plain.isolation.resources, [plain.deployment], plain.secrets),
      revisionText: revisionText(plain.deployment.manifest(), 'Deployment'),
    },
  };
}

/** The objects of a family in the order in which they are applied. Secrets come before all of them. */
export function objectsOf({ isolation, workload, claim }: CompiledFamily): readonly CompiledObject[] {
  return [...isolation, ...workload, ...(claim ? [claim] : [])];
}

/**
 * Digest of a class as this renderer compiles it: settings and compiled objects together, so that neither can change alone.
 * Secrets enter with their metadata and the names of their keys.
 */
export function classDigest(compiledPool: CompiledPool): Digest {
  const { approvedDigests: _approvedDigests, ...spec } = compiledPool.spec;
  const family = (of: CompiledFamily): Json => [
    ...of.secrets.map(({ manifest, keys }) => ({ metadata: manifest.metadata, keys })),
    ...objectsOf(of).map(({ manifest }) => manifest),
  ];
  return domainDigest('runtime-pool-class/v1', {
    spec: spec as unknown as Json,
    workspace: family(compiledPool.workspace),
    plain: family(compiledPool.plain),
  });
}

function checkClass(at: string, spec: RuntimePoolClassSpec): void {
  const [problem] = classProblems(spec);
  if (problem) throw new RenderError(problem.code, problem.finding);
  const text = JSON.stringify(spec);
  if (placeholderForm.test(text)) {
    throw new RenderError('fact-misplaced', {
      at,
      field: 'spec',
      found: placeholderForm.exec(text)?.[0],
      allowed: 'settings that do not look like a place-holder of a live value',
    });
  }
}

function stages(
  at: string,
  isolation: readonly Resource[],
  workload: readonly Resource[],
  secrets: readonly SecretShape[],
): Omit<CompiledFamily, 'revisionText'> {
  return {
    isolation: isolation.map((resource) => compiled(at, resource.manifest())),
    workload: workload.map((resource) => compiled(at, withRevisionPlaceholder(resource.manifest()))),
    secrets: secrets.map(({ manifest, keys }) => ({ ...compiled(at, manifest), keys })),
  };
}

function compiled(at: string, manifest: Manifest): CompiledObject {
  const leaves = findLeaves(`${at}: ${manifest.kind}`, manifest);
  return { manifest, leaves, fill: filler(manifest) };
}

/** The construct wrote the digest of the place-holder template; each pool has its own. */
function withRevisionPlaceholder(manifest: Manifest): Manifest {
  if (!isPodHolder(manifest.kind)) return manifest;
  const copy = structuredClone(manifest) as Json;
  const steps = revisionPointer(manifest.kind)
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/'));
  const holder = steps.slice(0, -1).reduce<Json | undefined>((value, step) => (isObject(value) ? value[step] : undefined), copy);
  (holder as Record<string, Json>)[steps.at(-1) ?? ''] = revisionPlaceholder;
  return copy as unknown as Manifest;
}

function isPodHolder(kind: string): kind is keyof typeof podTemplateAt {
  return kind in podTemplateAt;
}

function revisionText(workload: Manifest, kind: keyof typeof podTemplateAt): CompiledFamily['revisionText'] {
  const { metadata, ...template } = structuredClone((workload['spec'] as Record<string, unknown>)[podTemplateAt[kind]]) as {
    metadata: { labels: Json; annotations: Record<string, Json> };
  };
  const key = revisionPointer(kind).split('/').at(-1)?.replaceAll('~1', '/') ?? '';
  const annotations = Object.fromEntries(Object.entries(metadata.annotations).filter(([name]) => name !== key));
  const parts = canonicalJson({ ...template, metadata: { ...metadata, annotations } }).split(
    new RegExp(`"(${placeholderForm.source})"`),
  );
  return {
    texts: parts.filter((_, index) => index % 2 === 0),
    leaves: parts.filter((_, index) => index % 2 === 1).flatMap((text) => leafOf(text) ?? []),
  };
}
