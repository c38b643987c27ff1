import { agentKind, runtimePoolClassKind, taskKind, validate, withDefaults } from '../api/index.js';
import type { Agent, Kind, Manifest, RuntimePoolClass, Task } from '../api/index.js';
import { describeFinding } from '../lib/errors.js';
import { isObject } from '../lib/json.js';
import type { JsonObject } from '../lib/json.js';
import { isDnsLabel } from '../lib/kubernetes-names.js';
import { nameOf } from '../domain/plan.js';
import { readYaml } from '../render/yaml-read.js';
import { InputError, readInput } from './files.js';
import { liveInputs } from './plan-facts.js';
import type { LiveInput } from './plan-facts.js';
import { readObjects, refuseTwoInputs } from './read-objects.js';
import type { ReadObject } from './read-objects.js';

/** The documents of a plan. */
export interface PlanDocuments {
  /** Its namespace is filled in. */
  readonly task: Task;
  readonly agents: readonly Agent[];
  /** Texts that an Agent's `systemPrompt.configMapRef` can name. */
  readonly configMaps: readonly Manifest[];
  /** False when the Task has the place-holder, because neither its file nor the command names a namespace. */
  readonly namespaceKnown: boolean;
}

const plannedKinds = ['Task', 'Agent', 'ConfigMap'];

/**
 * Reads one Task and its Agents. Anything else, anything twice and anything unknown is refused, all problems of a document at once.
 * `namespace` is that of documents that name none, as with `kubectl -n`.
 */
export function readDocuments(files: readonly string[], namespace: string | undefined): PlanDocuments {
  refuseTwoInputs('plan', files);
  const written = files.flatMap((file) => documentsOf(file, plannedKinds));
  const documents = written.map((document) => withNamespace(document, namespace ?? liveInputs.namespace));
  const tasks = documents.filter(({ value }) => value.kind === 'Task');
  const [task] = tasks;
  if (!task || tasks.length > 1) {
    throw new InputError('input-invalid', {
      at: files.join(', '),
      found: tasks.length === 0 ? 'no Task' : tasks.map(({ at }) => at),
      allowed: 'exactly one Task',
    });
  }
  const agents = documents.filter(({ value }) => value.kind === 'Agent').map((document) => checked<Agent>(agentKind, document));
  const configMaps = documents.filter(({ value }) => value.kind === 'ConfigMap').map(configMapOf);
  for (const [kind, objects] of [
    ['Agent', agents],
    ['ConfigMap', configMaps],
  ] as const)
    refuseTwice(kind, objects);
  const namespaceKnown = namespace !== undefined || written.some((one) => one.value.kind === 'Task' && hasNamespace(one));
  return { task: checked<Task>(taskKind, task), agents, configMaps, namespaceKnown };
}

function hasNamespace({ value: { metadata } }: ReadObject): boolean {
  return isObject(metadata) && (metadata['namespace'] ?? '') !== '';
}

function withNamespace(document: ReadObject, namespace: string): ReadObject {
  const { at, value } = document;
  const metadata = value['metadata'];
  if (!isObject(metadata) || hasNamespace(document)) return document;
  return { at, value: { ...value, metadata: { ...metadata, namespace } } };
}

function refuseTwice(kind: string, objects: readonly Pick<Manifest, 'metadata'>[]): void {
  const names = objects.map((object) => nameOf(kind, object));
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined)
    throw new InputError('input-invalid', { at: twice, found: 'two documents', allowed: `each ${kind} once` });
}

function configMapOf({ at, value }: ReadObject): Manifest {
  const { apiVersion, metadata } = value;
  if (apiVersion !== 'v1') throw new InputError('input-invalid', { at, field: 'apiVersion', found: apiVersion, allowed: 'v1' });
  if (isObject(metadata) && typeof metadata['name'] === 'string') return value as Manifest;
  throw new InputError('input-invalid', { at, field: 'metadata.name', found: metadata, allowed: 'the name of the ConfigMap' });
}

/** A RuntimePoolClass as kubectl prints it. */
export function readClass(file: string): RuntimePoolClass {
  const documents = documentsOf(file, ['RuntimePoolClass']);
  const [document] = documents;
  if (!document || documents.length > 1)
    throw new InputError('input-invalid', { at: file, found: `${documents.length} documents`, allowed: 'one RuntimePoolClass' });
  return checked<RuntimePoolClass>(runtimePoolClassKind, document);
}

export const namespaceForm = 'the name of a namespace';
const matches = (pattern: RegExp) => (text: string) => pattern.test(text);
const wholeNumber = { test: matches(/^[1-9]\d{0,15}$/), allowed: 'a whole number from 1' };
const uid = { test: matches(/^[a-z\d](?:[-a-z\d]{0,61}[a-z\d])?$/), allowed: 'a UID' };
const random = { test: matches(/^[\da-f]{24}$/), allowed: '24 lower-case hexadecimal digits' };
const key = { test: matches(/^[\w-]{43}$/), allowed: '32 bytes in base64url' };

/** What each live value can be, so that a plan cannot show what the controller would never make. */
const forms: Readonly<Record<LiveInput, { readonly test: (text: string) => boolean; readonly allowed: string }>> = {
  namespace: { test: isDnsLabel, allowed: namespaceForm },
  now: { test: matches(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/), allowed: 'an instant as 2026-01-31T08:00:00Z' },
  taskUid: uid,
  agentUid: uid,
  agentGeneration: wholeNumber,
  poolUid: uid,
  poolGeneration: wholeNumber,
  controllerEpoch: wholeNumber,
  tokenGeneration: { test: matches(/^[\da-f]{16}$/), allowed: '16 lower-case hexadecimal digits' },
  authSecretRandom: random,
  providerSecretRandom: random,
  bootstrapNonce: key,
  bootstrapPublicKey: key,
};

/** Values of live facts: a flat map of names to texts or numbers. */
export function readFacts(file: string): Readonly<Partial<Record<LiveInput, string>>> {
  const documents = readYaml(readInput(file), file);
  const names = Object.keys(liveInputs) as LiveInput[];
  const refuse = (field: string, found: unknown, allowed: string): never => {
    throw new InputError('input-invalid', { at: file, field, found, allowed });
  };
  const facts = documents[0]?.value;
  if (documents.length > 1) return refuse('', `${documents.length} documents`, 'one document');
  if (!isObject(facts)) return refuse('', facts, `a map with some of ${names.join(', ')}`);
  const given = Object.entries(facts).map(([field, value]): [LiveInput, string] => {
    const name = names.find((one) => one === field) ?? refuse(field, value, names.join(', '));
    if (typeof value !== 'string' && typeof value !== 'number') return refuse(name, value, 'a text or a number');
    if (!forms[name].test(String(value))) return refuse(name, value, forms[name].allowed);
    return [name, String(value)];
  });
  return Object.fromEntries(given);
}

function documentsOf(file: string, kinds: readonly string[]): readonly ReadObject[] {
  const documents = readObjects(file);
  for (const { at, value } of documents) {
    if (!kinds.includes(value.kind)) {
      throw new InputError('input-invalid', { at, field: 'kind', found: value.kind, allowed: kinds.join(', ') });
    }
  }
  return documents;
}

function checked<T>(kind: Kind<T>, { at, value }: ReadObject): T {
  const object = {
    ...value,
    metadata: isObject(value['metadata']) ? withoutManagedFields(value['metadata']) : value['metadata'],
  };
  const violations = validate(kind, object);
  if (violations.length > 0) {
    const name = isObject(object.metadata) && typeof object.metadata['name'] === 'string' ? ` ${object.metadata['name']}` : '';
    const [first, ...more] = violations.map(({ field, found, allowed }) =>
      describeFinding({ at: `${kind.kind}${name} (${at})`, field, found, allowed }),
    );
    throw new InputError('input-invalid', { at: [first, ...more].join('\nerror: ') });
  }
  return withDefaults(kind, object as unknown as T);
}

function withoutManagedFields({ managedFields: _managedFields, ...metadata }: JsonObject): JsonObject {
  return metadata;
}
