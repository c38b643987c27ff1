import { existsSync } from 'node:fs';
import { patterns } from '../api/index.js';
import type { Agent, Task } from '../api/index.js';
import { admit } from '../domain/admission/admit.js';
import { assess } from '../domain/admission/assess.js';
import type { Hosting } from '../domain/admission/rule.js';
import { available } from '../domain/available.js';
import { missingClass } from '../domain/missing-class.js';
import { nameOf, selectableResourceClass } from '../domain/plan.js';
import { readRepository } from '../domain/repository/repository.js';
import { workspaceSource } from '../domain/repository/source.js';
import { withoutEffect } from '../domain/without-effect.js';
import { describeFinding } from '../lib/errors.js';
import { isObject } from '../lib/json.js';
import { isDnsLabel } from '../lib/kubernetes-names.js';
import { classDigest, compile } from '../render/compile.js';
import { approveAll } from '../render/approve.js';
import { readPlatform } from '../render/platform.js';
import type { Platform } from '../render/platform.js';
import { classWarnings } from '../render/warnings.js';
import { InputError, inputName, readInput, refuseTwoInputs } from './files.js';
import { maxInput } from './max-input.js';
import { liveInputs } from './plan-facts.js';
import type { LiveInput } from './plan-facts.js';
import { readClass, readDocuments } from './plan-input.js';
import type { PlanDocuments } from './plan-input.js';
import { outputs, print } from './plan-print.js';
import { acceptedResult, refusedResult, stoppedResult } from './plan-result.js';
import type { ChosenClass } from './plan-result.js';
import { sourceSlips } from './plan-slips.js';
import { classObstacle, platformObstacle } from './plan-today.js';
import { namespaceForm, readFacts } from './read-facts.js';

export interface PlanOptions {
  readonly filename: readonly string[];
  readonly namespace?: string;
  readonly platform: string;
  readonly class?: string;
  readonly facts?: string;
  readonly output: string;
  /** Bytes of each file of Tasks and Agents, as a quantity. */
  readonly maxInput?: string;
  /** Asks what would happen with the switches on, the namespace served and the class approved. */
  readonly assumeEnabled?: true;
  readonly agentSandboxEnabled?: string | true;
  readonly acpWorkspaceDispatchEnabled?: string | true;
  readonly executionWorkspaceDefaultProvider?: string;
  readonly sourceForge?: readonly string[];
}

/** Says what the installed controller would do with a Task today, by the controller's own functions. */
export function plan(options: PlanOptions): void {
  const output = outputs.find((form) => form === options.output);
  if (!output)
    throw new InputError('input-invalid', { at: 'plan', field: '--output', found: options.output, allowed: outputs.join(', ') });
  refuseTwoInputs('plan', [
    ...options.filename.map((file) => ['--filename', file] as const),
    ['--facts', options.facts],
    ['--class', options.class],
    ['--platform', options.platform],
  ]);
  const given = options.facts === undefined ? {} : readFacts(options.facts);
  const documents = readDocuments(options.filename, namespaceOf(options, given), maxInput('plan', options.maxInput));
  const platform = platformOf(options);
  const { live, known } = liveValues(documents, given);
  const task = withUid(documents.task, live.taskUid);
  const found = agentOf(documents);
  const agent = found && withUid(found, live.agentUid, Number(live.agentGeneration));
  const hosting = hostingOf(task, options, platform);
  const chosen = agent && chooseClass(agent, options, platform);
  const input = {
    task,
    agent,
    poolClass: chosen?.compiled.spec,
    classMissing: classMissing(agent, options, platform),
    ...systemPromptOf(agent, documents),
  };
  const outcome = assess({ ...input, hosting });
  const inTheWay = [
    platformObstacle(task.metadata.namespace ?? '', platform, options.platform),
    'plan' in outcome && chosen ? classObstacle(chosen) : undefined,
  ].filter((one) => one !== undefined);
  const [obstacle] = options.assumeEnabled ? [] : inTheWay;
  const result = obstacle
    ? stoppedResult(obstacle, chosen)
    : 'plan' in outcome && chosen
      ? acceptedResult({ plan: outcome.plan, task }, chosen, live, known)
      : refusedResult(task, 'refusal' in outcome ? outcome.refusal : unplanned(task), hosting.defaultProvider, chosen, live.now);
  const { verdict } = result.result;
  const assumed = { ...input, hosting: hostingOf(task, { ...options, assumeEnabled: true }, platform) };
  const couldRun = verdict !== 'accepted' && 'plan' in assess(assumed);
  const notes = [
    ...inTheWay.map(({ says }) => says),
    ...(couldRun ? ['--assume-enabled shows what would be created once an operator has allowed it'] : []),
    ...notesOn({ task, documents, agent, hosting, platform, options, accepted: verdict === 'accepted' }),
    ...(chosen ? classWarnings(chosen.compiled).map((text) => `class ${chosen.name}: ${text}`) : []),
  ];
  print(task, result, notes, output);
  if (verdict !== 'accepted') process.exitCode = 1;
}

/** A plan needs a class, so that there is none without the other. */
function unplanned(task: Task): never {
  throw new InputError('input-invalid', { at: nameOf('Task', task), found: 'a plan without a class', allowed: 'a class' });
}

const usualPlatform = 'platform.yaml';

/** With --class only the usual file may be missing; a platform adds what it would say today. */
function platformOf({ class: poolClass, platform }: PlanOptions): Platform | undefined {
  return poolClass === undefined || platform !== usualPlatform || existsSync(platform)
    ? readPlatform(readInput(platform), inputName(platform))
    : undefined;
}

/** The namespace of documents that name none; `undefined` = the place-holder. */
function namespaceOf({ namespace, facts }: PlanOptions, given: Readonly<Partial<Record<LiveInput, string>>>): string | undefined {
  if (namespace !== undefined && !isDnsLabel(namespace))
    throw new InputError('input-invalid', { at: 'plan', field: '--namespace', found: namespace, allowed: namespaceForm });
  if (namespace !== undefined && given.namespace !== undefined && namespace !== given.namespace)
    throw new InputError('input-invalid', {
      at: facts ?? 'facts',
      field: 'namespace',
      found: given.namespace,
      allowed: `${namespace}, as --namespace says`,
    });
  return namespace ?? given.namespace;
}

/** uid and generation come from the YAML where it has them, as `kubectl get -o yaml` prints them. */
function liveValues(documents: PlanDocuments, given: Readonly<Partial<Record<LiveInput, string>>>) {
  const { task, namespaceKnown } = documents;
  const agent = agentOf(documents);
  const fromFiles: Partial<Record<LiveInput, string | undefined>> = {
    taskUid: task.metadata.uid,
    agentUid: agent?.metadata.uid,
    agentGeneration: agent?.metadata.generation?.toString(),
    ...given,
    namespace: namespaceKnown ? task.metadata.namespace : undefined,
  };
  const known = (Object.keys(liveInputs) as LiveInput[]).filter((name) => fromFiles[name] !== undefined);
  const values = Object.fromEntries(known.map((name) => [name, fromFiles[name]])) as Partial<Record<LiveInput, string>>;
  return { live: { ...liveInputs, ...values }, known: new Set(known) };
}

function withUid<T extends Task | Agent>(object: T, uid: string, generation?: number): T {
  return { ...object, metadata: { ...object.metadata, uid, ...(generation === undefined ? {} : { generation }) } };
}

/** The Agent that the Task names, in the Task's namespace. A Task of `type: agent` without one in the files cannot be planned. */
function agentOf({ task, agents }: PlanDocuments): Agent | undefined {
  const { agentRef, type } = task.spec;
  if (type !== 'agent' || agentRef === undefined) return undefined;
  const { namespace } = task.metadata;
  const agent = agents.find(({ metadata }) => metadata.name === agentRef.name && metadata.namespace === namespace);
  if (agent) return agent;
  const others = listed(agents.map((one) => nameOf('Agent', one)));
  throw new InputError('input-invalid', {
    at: nameOf('Task', task),
    field: 'spec.agentRef',
    found: agentRef,
    allowed: `an Agent in namespace ${namespace ?? ''} that one of the files holds${others === '' ? '' : ` (found ${others})`}`,
  });
}

/** The first few of many names. */
function listed(names: readonly string[]): string {
  const first = names.slice(0, 10).join(', ');
  return names.length > 10 ? `${first} and ${names.length - 10} more` : first;
}

/** The switches: of a flag, else of the platform. Without a platform, or to answer the other question, they are on. */
function hostingOf(task: Task, options: PlanOptions, platform: Platform | undefined): Hosting {
  const gates = options.assumeEnabled ? undefined : platform?.controller.gates;
  return {
    agentSandboxEnabled: flag('--agent-sandbox-enabled', options.agentSandboxEnabled ?? gates?.agentSandbox ?? true),
    workspaceDispatchEnabled: flag(
      '--acp-workspace-dispatch-enabled',
      options.acpWorkspaceDispatchEnabled ?? gates?.workspaceDispatch ?? true,
    ),
    defaultProvider: options.executionWorkspaceDefaultProvider ?? platform?.controller.defaultProvider ?? '',
    forges: options.sourceForge?.map(forge) ?? (gates ? (platform?.controller.forges ?? []) : forgesOf(task)),
    available,
  };
}

/** The forge of the Task's own repository, where none is refused. */
function forgesOf({ spec }: Task): readonly string[] {
  const read = readRepository(spec.workspace?.gitRepo ?? '');
  return 'problem' in read ? [] : [`${read.forge.host}:${read.forge.port}`];
}

function forge(text: string): string {
  const { pattern, says } = patterns.forge;
  if (new RegExp(pattern, 'u').test(text)) return text;
  throw new InputError('input-invalid', { at: 'plan', field: '--source-forge', found: text, allowed: says });
}

function flag(name: string, value: string | boolean): boolean {
  const text = String(value).toLowerCase();
  if (text === 'true' || text === 'false') return text === 'true';
  throw new InputError('input-invalid', { at: 'plan', field: name, found: value, allowed: 'true or false' });
}

function chooseClass(agent: Agent, options: PlanOptions, platform: Platform | undefined): ChosenClass | undefined {
  const serves = (spec: { readonly providerKind: string; readonly resourceClass: string }): boolean =>
    spec.providerKind === agent.spec.runtime?.type && spec.resourceClass === selectableResourceClass;
  if (options.class === undefined) {
    const found = platform?.classes.find(({ spec }) => serves(spec));
    const [approved] = found ? approveAll([found], options.platform) : [];
    return approved && { ...approved, approved: true };
  }
  const { metadata, spec } = readClass(options.class);
  if (!serves(spec)) return undefined;
  const compiled = compile(spec);
  const digest = classDigest(compiled);
  return { name: metadata.name, compiled, digest, approved: spec.approvedDigests.includes(digest) };
}

/** Names what there is to choose from. */
function classMissing(agent: Agent | undefined, options: PlanOptions, platform: Platform | undefined): string {
  const given = options.class === undefined ? undefined : readClass(options.class);
  const all = given ? [{ name: given.metadata.name, spec: given.spec }] : (platform?.classes ?? []);
  const names = all.map(({ name, spec: { providerKind, resourceClass } }) => ({ name, providerKind, resourceClass }));
  return missingClass(agent?.spec.runtime?.type ?? 'a runtime', names);
}

function systemPromptOf(agent: Agent | undefined, { configMaps }: PlanDocuments): { readonly systemPromptText?: string } {
  const ref = agent?.spec.systemPrompt?.configMapRef;
  if (!agent || !ref) return {};
  const map = configMaps.find(({ metadata }) => metadata.name === ref.name && metadata.namespace === agent.metadata.namespace);
  const data = map?.['data'];
  const text = isObject(data) ? data[ref.key] : undefined;
  if (typeof text === 'string') return { systemPromptText: text };
  throw new InputError('input-invalid', {
    at: nameOf('Agent', agent),
    field: 'spec.systemPrompt.configMapRef',
    found: ref,
    allowed: 'a ConfigMap with that key in one of the files: its text is part of the name of the pool',
  });
}

interface Situation {
  readonly task: Task;
  readonly documents: PlanDocuments;
  readonly agent: Agent | undefined;
  readonly hosting: Hosting;
  readonly platform: Platform | undefined;
  readonly options: PlanOptions;
  readonly accepted: boolean;
}

/** `plan` reads no cluster, and no Secret anywhere. */
function credentialNote(
  { metadata: { namespace = '' } }: Task,
  { name, key }: { readonly name: string; readonly key: string },
): string {
  return `Secret ${namespace}/${name} with the key ${key} was not looked at; the controller refuses a missing Secret or key with InvalidWorkspace`;
}

/** What a person should know beside the verdict. */
function notesOn({ task, documents, agent, hosting, platform, options, accepted }: Situation): readonly string[] {
  const notes: string[] = [...documents.notes];
  if (!platform) notes.push(`there is no ${options.platform}: switches that no flag names are taken as on`);
  const source = accepted ? workspaceSource(task.spec.workspace) : undefined;
  if (source && !platform && options.sourceForge === undefined)
    notes.push(`there is no ${options.platform}: the forge of the repository is taken as one of publisher.forges`);
  if (source?.credential) notes.push(credentialNote(task, source.credential));
  notes.push(...sourceSlips(task));
  if (documents.task.metadata.deletionTimestamp !== undefined)
    notes.push('the Task is being deleted; this is the plan of a new one');
  else if (documents.task.status?.phase !== undefined)
    notes.push(`the Task is already ${documents.task.status.phase}; this is the plan of a new one`);
  for (const { at, field, because } of withoutEffect(task, agent)) notes.push(`${at}: ${field} is not used: ${because}`);
  const gates = platform?.controller.gates;
  const today =
    accepted && gates
      ? admit({
          task,
          agent,
          hosting: {
            ...hosting,
            agentSandboxEnabled: gates.agentSandbox,
            workspaceDispatchEnabled: gates.workspaceDispatch,
            forges: platform.controller.forges ?? [],
          },
        })
      : undefined;
  if (today)
    notes.push(`with the switches of ${options.platform} the Task would be refused today: ${describeFinding(today.finding)}`);
  return notes;
}
