import { annotationKeys } from '../domain/labels.js';
import { canonicalJson } from '../lib/canonical-json.js';
import type { Json } from '../lib/json.js';
import { digestOf } from '../lib/sha256.js';
import type { Digest } from '../lib/sha256.js';
import type { Resource } from './resource.js';

/** Where a workload keeps its Pod template. */
export const podTemplateAt = { SandboxTemplate: 'podTemplate', Deployment: 'template' } as const;

/** JSON pointer of the revision inside a workload. */
export function revisionPointer(kind: keyof typeof podTemplateAt): string {
  return `/spec/${podTemplateAt[kind]}/metadata/annotations/${annotationKeys.templateRevision.replace('/', '~1')}`;
}

/** Digest of a Pod template without its own revision: same template, same revision, whoever computes it. */
function templateRevision(podTemplate: Json): Digest {
  return digestOf(canonicalJson(podTemplate));
}

/** Writes the revision into a workload, after its patches. */
export function seal(workload: Resource, kind: keyof typeof podTemplateAt): Digest {
  const spec = workload.manifest()['spec'] as Record<string, Json>;
  const revision = templateRevision(spec[podTemplateAt[kind]] ?? null);
  workload.patch([{ op: 'add', path: revisionPointer(kind), value: revision }]);
  return revision;
}
