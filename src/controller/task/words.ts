import { annotationKeys } from '../../domain/labels.js';

/** Names of what a pool has of the provider end like this; see `domain/names.ts`. */
const childName =
  /\b[a-z0-9][a-z0-9.-]*-(?:sandbox-(?:claim|pool|template)|deny-all|control-in|dns-egress|provider-proxy-egress|controller-egress|pdb|(?:auth|provider)-e\d[0-9a-z-]*)\b/g;
const address =
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\[(?=[0-9a-f]*:[0-9a-f]*:)[0-9a-f:]+\](?::\d+)?|\b(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}\b|\b(?:[0-9a-f]{1,4}:)+:[0-9a-f:]*/g;

/** A Pod of a Deployment is named after it, which is named after its pool and ten digits more. */
const deployed = /\bacp-[a-z]+-[0-9a-f]{16}-[0-9a-f]{10}(?:-[0-9a-z]+)*\b/g;

/** Characters that are searched: the time grows with their square, and no Task shows as many. */
const longest = 5_000;

/** A text as a Task may show it: no claim, template, Pod or address of a Pod is ever named there. Source: dispatch.md §1.2. */
export function neutral(text: string): string {
  const head = text.length > longest ? `${text.slice(0, longest)}…`.toWellFormed() : text;
  return head.replace(childName, '(its workspace)').replace(deployed, '(its instance)').replace(address, '(its instance)');
}

/** What a Task says while its namespace has as many as it may. */
export function waitsForPlace(namespace: string, limit: number): string {
  return `namespace ${namespace} has as many Tasks under way as it may have at once (${limit}); this one waits until one of them is over`;
}

/** What a Task says while new Tasks are paused. */
export function waitsForResume(namespace: string, by: 'platform' | 'namespace'): string {
  const who =
    by === 'platform' ? 'the platform (controller.paused)' : `namespace ${namespace} (annotation ${annotationKeys.paused})`;
  return `new Tasks are paused by ${who}; this one waits until they are resumed`;
}

export function textOf(error: unknown): string {
  return neutral(error instanceof Error ? error.message : String(error));
}
