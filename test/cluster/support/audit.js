// What the API server's audit log says about one account.

import { createReadStream, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';

/**
 * The members that are used here.
 *
 * @typedef {object} AuditEvent
 * @property {string} stage
 * @property {string} verb
 * @property {string} requestURI
 * @property {{ readonly username: string, readonly extra?: Readonly<Record<string, readonly string[]>> }} user
 * @property {{ readonly apiGroup?: string, readonly resource?: string, readonly subresource?: string, readonly namespace?: string, readonly name?: string }} [objectRef]
 * @property {{ readonly code?: number }} [responseStatus]
 * @property {string} requestReceivedTimestamp with microseconds
 */

/**
 * One request of an account.
 *
 * @typedef {object} ApiRequest
 * @property {number} at milliseconds since the epoch, when the server received it
 * @property {boolean} watch
 * @property {string} what verb and resource, as in `patch runtimepools/status`; verb and path of what is no resource
 * @property {number} code of the answer
 * @property {ApiTarget} [target] undefined for what is no resource
 * @property {string} [pod] that asked; undefined for whoever has no token of a Pod
 */

/**
 * What a right must cover for a request to be allowed.
 *
 * @typedef {object} ApiTarget
 * @property {string} verb
 * @property {string} resource with group and subresource, as in `core.orka.ai/runtimepools/status`, or `secrets`
 * @property {string} namespace `''` for what is in none, a Namespace among it
 * @property {string} name `''` for a list, and for a creation
 */

/**
 * @param {AuditEvent} event
 * @returns {ApiRequest | undefined} undefined for the second line of a watch, and for what ended in no answer
 */
function requestOf({ stage, verb, requestURI, user, objectRef, responseStatus, requestReceivedTimestamp }) {
  const watch = verb === 'watch';
  // A watch is told twice, when it begins and when it ends; everything else once.
  if (stage !== (watch ? 'ResponseStarted' : 'ResponseComplete')) return undefined;
  const target = targetOf(verb, objectRef);
  const { resource, subresource } = objectRef ?? {};
  const pod = user.extra?.['authentication.kubernetes.io/pod-name']?.[0];
  const what = target ? [resource, subresource].filter(Boolean).join('/') : requestURI.replace(/\?.*/, '');
  return {
    at: Date.parse(requestReceivedTimestamp),
    watch,
    what: `${verb} ${what}`,
    code: responseStatus?.code ?? 0,
    ...(target ? { target } : {}),
    ...(pod === undefined ? {} : { pod }),
  };
}

/** @param {string} verb @param {AuditEvent['objectRef']} objectRef @returns {ApiTarget | undefined} */
function targetOf(verb, { apiGroup, resource, subresource, namespace = '', name = '' } = {}) {
  if (resource === undefined) return undefined;
  // The server names a Namespace as the namespace of a request for itself.
  const scope = resource === 'namespaces' ? '' : namespace;
  // What a client names itself is in the log, and in no rule: the right is checked before the body is read.
  const of = verb === 'create' && subresource === undefined ? '' : name;
  return { verb, resource: [apiGroup, resource, subresource].filter(Boolean).join('/'), namespace: scope, name: of };
}

/**
 * The requests of an account since a moment, oldest first. Reads what the server rotated away as well.
 *
 * @param {string} log path of the audit log
 * @param {string} username
 * @param {number} since milliseconds since the epoch
 * @returns {Promise<readonly ApiRequest[]>}
 */
export async function requestsOf(log, username, since) {
  const { dir, name, ext } = path.parse(log);
  const files = readdirSync(dir)
    .filter((file) => file.startsWith(name) && file.endsWith(ext))
    .map((file) => path.join(dir, file))
    .filter((file) => statSync(file).mtimeMs >= since);
  /** @type {ApiRequest[]} */
  const found = [];
  for (const file of files) {
    for await (const line of createInterface({ input: createReadStream(file) })) {
      if (!line.includes(username)) continue;
      const event = parsed(line);
      const request = event?.user.username === username ? requestOf(event) : undefined;
      if (request && request.at >= since) found.push(request);
    }
  }
  return found.sort((a, b) => a.at - b.at);
}

/** @param {string} line @returns {AuditEvent | undefined} undefined for a line that is still being written */
function parsed(line) {
  try {
    return /** @type {AuditEvent} */ (JSON.parse(line));
  } catch {
    return undefined;
  }
}

/**
 * How many requests of each sort; watches are counted apart, since each stays open.
 *
 * @param {readonly ApiRequest[]} requests
 * @returns {{ readonly requests: number, readonly watches: number, readonly by: ReadonlyMap<string, number> }} `by`: most frequent first
 */
export function count(requests) {
  const plain = requests.filter(({ watch }) => !watch);
  /** @type {Map<string, number>} */
  const by = new Map();
  for (const { what } of plain) by.set(what, (by.get(what) ?? 0) + 1);
  const sorted = [...by].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  return { requests: plain.length, watches: requests.length - plain.length, by: new Map(sorted) };
}
