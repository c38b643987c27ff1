import { agentKind, runtimePoolClassKind, taskKind, validate, withDefaults } from '../api/index.js';
import type { Agent, Kind, Manifest, RuntimePoolClass, Task } from '../api/index.js';
import { describeFinding } from '../lib/errors.js';
import { isObject } from '../lib/json.js';
import type { JsonObject } from '../lib/json.js';
import { nameOf } from '../domain/plan.js';
import { InputError, inputName } from './files.js';
import type { InputLimit } from './files.js';
import { liveInputs } from './plan-facts.js';
import { sorted } from './plan-kinds.js';
import { progress } from './progress.js';
import { readObjects } from './read-objects.js';
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
  /** Documents that were skipped, and names that were made up. */
  readonly notes: readonly string[];
}

/**
 * Reads one Task and its Agents. Objects of other kinds are skipped with a note; anything twice and anything unknown is refused, all
 * problems of a document at once. `namespace` is that of documents that name none, as with `kubectl -n`.
 */
export function readDocuments(files: readonly string[], namespace: string | undefined, limit?: InputLimit): PlanDocuments {
  const { planned, notes: skipped } = sorted(files.flatMap((file) => readObjects(file, limit)));
  const named = planned.map(withName);
  const written = named.map(({ document }) => document);
  const documents = written.map((document) => withNamespace(document, namespace ?? liveInputs.namespace));
  const tasks = documents.filter(({ value }) => value.kind === 'Task');
  const [task] = tasks;
  if (!task || tasks.length > 1) {
    throw new InputError('input-invalid', {
      at: files.map(inputName).join(', '),
      ...(skipped[0] === undefined ? {} : { says: skipped[0] }),
      found: tasks.length === 0 ? 'no Task' : tasks.map(({ at }) => at),
      allowed: 'exactly one Task',
    });
  }
  const agents = documents.filter(({ value }) => value.kind === 'Agent').map(agentAt);
  const configMaps = documents.filter(({ value }) => value.kind === 'ConfigMap').map(configMapOf);
  refuseTwice('Agent', agents);
  refuseTwice('ConfigMap', configMaps);
  const namespaceKnown = namespace !== undefined || written.some((one) => one.value.kind === 'Task' && hasNamespace(one));
  const notes = [...skipped, ...named.flatMap(({ note }) => note ?? [])];
  return { task: checked<Task>(taskKind, task), agents, configMaps, namespaceKnown, notes };
}

const manyAgents = 1_000;

function agentAt(document: ReadObject, index: number, { length }: readonly ReadObject[]): Agent {
  progress.at(length >= manyAgents, () => `checked ${index} of ${length} Agents`);
  return checked<Agent>(agentKind, document);
}

/** What the API server appends to a `generateName`, and how much of that it keeps. */
const appended = 'xxxxx';
const keptOfGenerateName = 63 - appended.length;

/** `kubectl create` takes an object without a name that has a `generateName`. */
function withName(document: ReadObject): { readonly document: ReadObject; readonly note?: string } {
  const { at, value } = document;
  const metadata = value['metadata'];
  if (!isObject(metadata) || (metadata['name'] ?? '') !== '') return { document };
  const base = metadata['generateName'];
  if (typeof base !== 'string' || base === '') return { document };
  const name = `${base.slice(0, keptOfGenerateName)}${appended}`;
  return {
    document: { at, value: { ...value, metadata: { ...metadata, name } } },
    note: `${value.kind} ${name}: the API server makes the last ${appended.length} characters of the name out of metadata.generateName`,
  };
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
  const seen = new Set<string>();
  for (const object of objects) {
    const name = nameOf(kind, object);
    if (seen.has(name)) throw new InputError('input-invalid', { at: name, found: 'two documents', allowed: `each ${kind} once` });
    seen.add(name);
  }
}

function configMapOf({ at, value }: ReadObject): Manifest {
  const { apiVersion, metadata } = value;
  if (apiVersion !== 'v1') throw new InputError('input-invalid', { at, field: 'apiVersion', found: apiVersion, allowed: 'v1' });
  if (isObject(metadata) && typeof metadata['name'] === 'string') return value as Manifest;
  throw new InputError('input-invalid', { at, field: 'metadata.name', found: metadata, allowed: 'the name of the ConfigMap' });
}

/** A RuntimePoolClass as kubectl prints it. */
export function readClass(file: string): RuntimePoolClass {
  const documents = readObjects(file);
  for (const { at, value } of documents) {
    if (value.kind !== 'RuntimePoolClass')
      throw new InputError('input-invalid', { at, field: 'kind', found: value.kind, allowed: 'RuntimePoolClass' });
  }
  const [document] = documents;
  if (!document || documents.length > 1)
    throw new InputError('input-invalid', {
      at: inputName(file),
      found: `${documents.length} documents`,
      allowed: 'one RuntimePoolClass',
    });
  return checked<RuntimePoolClass>(runtimePoolClassKind, document);
}

/** Problems of one document that are told. */
const mostProblems = 100;

function checked<T>(kind: Kind<T>, { at, value }: ReadObject): T {
  const object = {
    ...value,
    metadata: isObject(value['metadata']) ? withoutManagedFields(value['metadata']) : value['metadata'],
  };
  const violations = validate(kind, object);
  if (violations.length > 0) {
    const name = isObject(object.metadata) && typeof object.metadata['name'] === 'string' ? ` ${object.metadata['name']}` : '';
    const lines = violations
      .slice(0, mostProblems)
      .map(({ field, found, allowed }) => describeFinding({ at: `${kind.kind}${name} (${at})`, field, found, allowed }));
    const untold = violations.length - lines.length;
    const more = untold > 0 ? [`${kind.kind}${name} (${at}): ${untold} more`] : [];
    throw new InputError('input-invalid', { at: [...lines, ...more].join('\nerror: ') });
  }
  return withDefaults(kind, object as unknown as T);
}

function withoutManagedFields({ managedFields: _managedFields, ...metadata }: JsonObject): JsonObject {
  return metadata;
}
