import type { Manifest } from '../api/index.js';
import { equalJson, fieldPath } from '../lib/json.js';
import type { JsonObject } from '../lib/json.js';
import type { Digest } from '../lib/sha256.js';
import { admittedDigest, attestPod, attestRenderedIn } from './pod-attestation.js';
import type { Mismatch } from './pod-attestation.js';
import { compact, copiedPodSpec, firstDifference } from './pod-spec.js';
import { expectedPod, nameHash, podTemplateOf, providerKeys, specOf } from './provider-pod.js';

/** What a pool's claim was materialised into, as it is stored right now. */
export interface Materialization {
  readonly template: Manifest;
  readonly claim: Manifest;
  readonly sandbox: Manifest;
  readonly pod: Manifest;
}

/**
 * Is the chain claim → Sandbox → Pod exactly what was rendered, but for what the API server and the provider are known to add?
 *
 * Asked before an instance is bound, seeded or probed. A template that was changed together with Sandbox and Pod passes: its own
 * integrity record catches that. Source: workload.md §4 (c), corrections.md item 29, provider.md §3.1 for the labels of v1.0.3.
 */
export function attest(chain: Materialization): Mismatch | undefined {
  return attestSandbox(chain) ?? attestPod(chain.pod, expectedPod(chain.sandbox));
}

/**
 * What can be said of a chain of an admission-aware class without asking what admission does: as {@link attest} as far as the Sandbox,
 * and all that was rendered stands in the Pod. What stands there besides is compared with the answer of a dry run.
 */
export function attestRendered(chain: Materialization): Mismatch | undefined {
  return attestSandbox(chain) ?? attestRenderedIn(chain.pod, expectedPod(chain.sandbox));
}

/** Is a chain that was accepted another one now? `accepted` is the digest of its Pod as admitted; without it, it was as rendered. */
export function differsFromAccepted(chain: Materialization, accepted: Digest | undefined): boolean {
  if (accepted === undefined) return attest(chain) !== undefined;
  return attestRendered(chain) !== undefined || admittedDigest(chain.pod) !== accepted;
}

/** The chain as far as the Sandbox, and whose the Pod is: rows 1 to 9, whatever admission does. */
function attestSandbox({ template, claim, sandbox, pod }: Materialization): Mismatch | undefined {
  const claimUid = claim.metadata.uid ?? '';
  const expected = podTemplateOf(template);
  const actual = podTemplateOf(sandbox);
  const sandboxAt = `Sandbox ${sandbox.metadata.namespace ?? ''}/${sandbox.metadata.name}`;
  const differs = (check: number, at: string, field: string, found: unknown, allowed: unknown): Mismatch => ({
    check,
    finding: { at, field, found, allowed: typeof allowed === 'string' ? allowed : JSON.stringify(allowed ?? 'nothing') },
  });
  const inMetadata = (member: string) => ['spec', 'podTemplate', 'metadata', member];
  const own = { [providerKeys.claimUid]: claimUid, [providerKeys.templateRefHash]: nameHash(template.metadata.name) };
  const podLabels = { ...expected.labels, ...own };

  if (claimUid === '' || controllerOf(sandbox) !== claimUid) {
    return differs(1, sandboxAt, 'metadata.ownerReferences', controllerOf(sandbox), `the claim ${claimUid} as controller`);
  }
  if (sandbox.metadata.labels?.[providerKeys.claimUid] !== claimUid) {
    return differs(
      2,
      sandboxAt,
      `metadata.labels[${providerKeys.claimUid}]`,
      sandbox.metadata.labels?.[providerKeys.claimUid],
      claimUid,
    );
  }
  if (sandbox.metadata.annotations?.[providerKeys.templateRef] !== template.metadata.name) {
    const found = sandbox.metadata.annotations?.[providerKeys.templateRef];
    return differs(3, sandboxAt, `metadata.annotations[${providerKeys.templateRef}]`, found, template.metadata.name);
  }
  // The provider sets false where the template says nothing.
  const wanted = { automountServiceAccountToken: false, ...expected.spec };
  const sandboxSpec = firstDifference(copiedPodSpec(wanted), copiedPodSpec(actual.spec));
  if (sandboxSpec || managesNetwork(template)) {
    const difference = sandboxSpec ?? { path: ['networkPolicyManagement'], found: 'Managed', wanted: 'Unmanaged' };
    const field = fieldPath(['spec', 'podTemplate', 'spec', ...difference.path]);
    return differs(4, sandboxAt, field, difference.found, difference.wanted);
  }
  const volumes = [specOf(template)['volumeClaimTemplates'], specOf(sandbox)['volumeClaimTemplates']];
  if (!equalJson(compact(volumes[0] ?? null), compact(volumes[1] ?? null)))
    return differs(5, sandboxAt, 'spec.volumeClaimTemplates', volumes[1], volumes[0]);
  const annotation = firstDifference(expected.annotations, actual.annotations, inMetadata('annotations'));
  if (annotation) return differs(6, sandboxAt, fieldPath(annotation.path), annotation.found, annotation.wanted);
  if (actual.labels[providerKeys.claimUid] !== claimUid) {
    return differs(
      7,
      sandboxAt,
      `spec.podTemplate.metadata.labels[${providerKeys.claimUid}]`,
      actual.labels[providerKeys.claimUid],
      claimUid,
    );
  }
  const label = firstDifference(podLabels, actual.labels, inMetadata('labels'));
  if (label) return differs(8, sandboxAt, fieldPath(label.path), label.found, label.wanted);
  if (sandbox.metadata.uid === undefined || controllerOf(pod) !== sandbox.metadata.uid) {
    return differs(
      9,
      `Pod ${pod.metadata.namespace ?? ''}/${pod.metadata.name}`,
      'metadata.ownerReferences',
      controllerOf(pod),
      `the Sandbox ${sandbox.metadata.uid ?? ''} as controller`,
    );
  }
  return undefined;
}

/** A claim that asks for exactly the pool's sandbox. Ours asks for nothing else, so nothing else may stand there. */
export function claimMatches(claim: Manifest, warmPoolName: string): boolean {
  const { warmPoolRef, ...rest } = compact(specOf(claim)) as JsonObject;
  return equalJson(warmPoolRef, { name: warmPoolName }) && Object.keys(rest).length === 0;
}

/** Is an object a pool's own: in its namespace and with every label of the pool, exactly? Foreign objects are never touched. */
export function isOwned(object: Manifest, namespace: string, labels: Readonly<Record<string, string>>): boolean {
  const found = object.metadata.labels ?? {};
  return object.metadata.namespace === namespace && Object.entries(labels).every(([name, value]) => found[name] === value);
}

/** With a managed policy the provider also rewrites DNS; our templates never ask for one. */
function managesNetwork(template: Manifest): boolean {
  return specOf(template)['networkPolicyManagement'] !== 'Unmanaged';
}

function controllerOf(object: Manifest): string | undefined {
  return object.metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
}
