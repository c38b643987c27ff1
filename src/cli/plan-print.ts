import type { Manifest, Task, TaskStatus } from '../api/index.js';
import { nameOf } from '../domain/plan.js';
import { fieldPath } from '../lib/json.js';
import { toYamlStream } from '../render/yaml.js';
import { liveInputs } from './plan-facts.js';
import type { MarkedResult, PlanResult } from './plan-result.js';

export const outputs = ['summary', 'yaml', 'json'] as const;
export type Output = (typeof outputs)[number];

/** Data on stdout; what a person wants to know beside it on a terminal. */
export function print(task: Task, { result: outcome, marks }: MarkedResult, notes: readonly string[], output: Output): void {
  const result: PlanResult = { ...outcome, notes };
  const summary = summaryOf(task, result);
  if (output === 'summary') {
    process.stdout.write(summary);
    return;
  }
  if (process.stderr.isTTY) process.stderr.write(summary);
  process.stdout.write(output === 'json' ? `${JSON.stringify(result, null, 2)}\n` : yamlOf(task, result, marks));
}

/** The notes as comments, then the objects with each place-holder marked; without objects, the Task with the status it would get. */
function yamlOf(task: Task, { verdict, objects, status, source, notes }: PlanResult, marks: MarkedResult['marks']): string {
  const documents = verdict === 'accepted' ? objects : [{ ...task, status } as unknown as Manifest];
  const comment = (name: string, text: string): string => `# ${name}: ${text.replaceAll(/\s+/g, ' ')}\n`;
  const head = [...sourceLines(source), ...notes.map((note) => ['note', note] as const)]
    .map(([name, text]) => comment(name, text))
    .join('');
  return (
    head +
    toYamlStream(documents, {
      comment: (path, document) => {
        const fact = marks.get(document as unknown as Manifest)?.get(fieldPath(path));
        return fact === undefined ? undefined : `live: ${fact}`;
      },
    })
  );
}

function summaryOf(task: Task, { verdict, status, pool, source, poolClass, facts, objects, secrets, notes }: PlanResult): string {
  const line = (name: string, text: string): string => `  ${name.padEnd(9)} ${text}\n`;
  const standIns = Object.entries(facts).flatMap(([name, { source }]) =>
    source === 'placeholder' && name in liveInputs ? [name] : [],
  );
  return [
    `${nameOf('Task', task)}: ${verdict}\n`,
    ...(verdict === 'refused' ? [line('because', status.message ?? ''), line('status', statusText(status))] : []),
    ...(pool ? poolLines(pool).map(([name, text]) => line(name, text)) : []),
    ...sourceLines(source).map(([name, text]) => line(name, text)),
    ...(poolClass ? [line('class', `${poolClass.name} ${poolClass.digest}${poolClass.approved ? '' : ' (not approved)'}`)] : []),
    ...(objects.length > 0 ? [line('creates', counted(objects))] : []),
    ...(secrets.length > 0 ? [line('secrets', secrets.map(({ name, keys }) => `${name} (${keys.join(', ')})`).join(', '))] : []),
    ...(standIns.length > 0 ? [line('live', `${standIns.join(', ')}: place-holders, known only in the cluster`)] : []),
    ...notes.map((note) => line('note', note)),
  ].join('');
}

function poolLines({ name, family, runtimeImage, profileDigest, workspaceBindingDigest }: NonNullable<PlanResult['pool']>) {
  return [
    ['pool', `${name} (${family})`],
    ['image', runtimeImage],
    ['profile', profileDigest],
    ...(workspaceBindingDigest === null ? [] : [['binding', workspaceBindingDigest] as const]),
  ] as const;
}

/** The repository, as far as it is known before it is fetched. */
function sourceLines(source: PlanResult['source']): readonly (readonly [string, string])[] {
  if (!source) return [];
  const { repository, url, ref, subPath, credential } = source;
  return [
    ['source', `${repository} (${url})`],
    ['ref', ref ?? 'default branch'],
    ...(subPath === null ? [] : [['folder', subPath] as const]),
    ['access', credential ? `Secret ${credential.secret}, key ${credential.key}` : 'without a credential'],
  ];
}

/** `RuntimePool, Service, 5 NetworkPolicy, …` */
function counted(objects: readonly Manifest[]): string {
  const kinds = [...new Set(objects.map(({ kind }) => kind))];
  return kinds
    .map((kind) => {
      const count = objects.filter((object) => object.kind === kind).length;
      return count > 1 ? `${count} ${kind}` : kind;
    })
    .join(', ');
}

function statusText({ phase, executionWorkspace, execution }: TaskStatus): string {
  const workspace = executionWorkspace
    ? `, executionWorkspace ${executionWorkspace.phase ?? ''}/${executionWorkspace.reason ?? ''}`
    : '';
  const reason = execution?.reason === undefined ? '' : `, execution ${execution.state ?? ''}/${execution.reason}`;
  return `${phase ?? ''}${workspace}${reason}`;
}
