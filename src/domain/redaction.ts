/** Names of what a pool is made of end like this; see `domain/names.ts`. A long end leaves little of the name of the pool. */
const endings =
  'sandbox-(?:claim|pool|template)|deny-all|control-in|dns-egress|provider-proxy-egress|controller-egress|artifact-egress|pdb|(?:auth|provider)-e\\d[0-9a-z-]*';
/** Service, Deployment and the start of every other name: the name of the pool and ten digits. The pool itself is the user's to see. */
const base = '(?:ws-)?[a-z]+-[0-9a-f]{16}-[0-9a-f]{10}(?:-[0-9a-z.-]*[0-9a-z])?';
const internalName = new RegExp(`\\b(?:acp-${base}|[a-z0-9][a-z0-9.-]*-(?:${endings}))\\b`, 'g');

const address =
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\[(?=[0-9a-f]*:[0-9a-f]*:)[0-9a-f:]+\](?::\d+)?|\b(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}\b|\b(?:[0-9a-f]{1,4}:)+:[0-9a-f:]*/g;

/** Characters that are searched: the time grows with their square, and no Task shows as many. */
const longest = 5_000;

/** What a terminal or a line of a log would act on. Tabs and line breaks stay. */
// eslint-disable-next-line no-control-regex
const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/**
 * A text as a Task may show it, and as the API server stores it: without control characters and half characters. Names of the objects that a pool is made of, and addresses of Pods, are replaced; the name of the pool stays.
 * Every message and event of a Task passes through here. Source: dispatch.md §1.2.
 */
export function redacted(text: string): string {
  const head = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return head.toWellFormed().replace(control, ' ').replace(internalName, '(its instance)').replace(address, '(its address)');
}
