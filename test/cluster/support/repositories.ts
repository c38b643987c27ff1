/** Repositories of the forge, and Tasks that read them. */
import type { Task, TaskSpec } from '../../../src/api/index.js';
import type { JsonObject } from '../../../src/lib/json.js';
import type { SeedEntry, SeedRepository } from '../forge/seed.js';
import { readProductImages } from '../info.js';
import { cluster, kubectl } from './cluster.js';
import { forgePlace, forgeUrl, publisherNamespace, publisherPeer, publisherSettings, startForge } from './forge.js';
import type { Forge } from './forge.js';
import { applyObjects, example, taskLike } from './first-task.js';
import type { PublisherSettings } from './installation.js';

const { namespace = '' } = example.task.metadata;

export const main = 'refs/heads/main';

/** What a file of the private repository says, and nothing else does. */
export const quoted = 'the quick brown fox of the private repository';

const file = (path: string, content = `${path}\n`): SeedEntry => ({ path, content });

/** A repository whose default branch has these entries beside a README. */
const withTree = (name: string, entries: readonly SeedEntry[], rest: Partial<SeedRepository> = {}): SeedRepository => ({
  name,
  refs: { [main]: [file('README.md'), ...entries] },
  ...rest,
});

const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 12345\n`;

/** A repository with what Tasks read and change. */
export const app: SeedRepository = {
  name: 'acme/app',
  refs: {
    [main]: [
      file('README.md', 'an app\n'),
      file('docs/answer.txt', `${quoted}\n`),
      { path: 'bin/run', content: '#!/bin/sh\necho ran\n', mode: '100755' },
      { path: 'docs/latest', link: 'answer.txt' },
      file('services/web/index.txt', 'the web service\n'),
    ],
    'refs/heads/release/1.0': [file('README.md', 'release 1.0\n')],
    'refs/heads/both': [file('README.md', 'a branch\n')],
    'refs/tags/both': [file('README.md', 'a tag\n')],
    'refs/tags/v1.0.0': [file('README.md', 'version 1.0.0\n')],
  },
  annotated: ['refs/tags/v1.0.0'],
};

/** A chain of links: each names the next one, the last one a file. */
const chain = (links: number): readonly SeedEntry[] => [
  ...Array.from({ length: links }, (_, index) => ({ path: `link-${index}`, link: `link-${index + 1}` })),
  file(`link-${links}`),
];

/** Trees that are accepted although they look odd. */
export const oddTrees = {
  'acme/lfs': withTree('acme/lfs', [file('assets/big.bin', pointer), file('assets/other.bin', pointer)]),
  'acme/odd': withTree('acme/odd', [
    file('".github/workflows/evil.yml"', 'a quoted name\n'),
    file('Readme.MD', 'another case\n'),
    file('.github/workflows/build.yml'),
    file(`${'n'.repeat(200)}/${'m'.repeat(200)}`),
  ]),
} as const;

const mebibyte = 1024 * 1024;

/** Trees that are refused: the repository, what the message must name, and how many entries a row may need. */
export const hostileTrees: readonly {
  readonly what: string;
  readonly repository: SeedRepository;
  /** The message of the Task names them. */
  readonly names: readonly (string | RegExp)[];
}[] = [
  {
    what: 'a submodule',
    repository: withTree('hostile/submodule', [{ path: 'vendor/lib', submodule: '1'.repeat(40) }]),
    names: ['vendor/lib', /submodule/i],
  },
  {
    what: 'a link to an absolute path',
    repository: withTree('hostile/absolute-link', [{ path: 'passwords', link: '/etc/passwd' }]),
    names: ['passwords', /link/i],
  },
  {
    what: 'a link out of the repository',
    repository: withTree('hostile/escaping-link', [{ path: 'docs/up', link: '../../secrets' }]),
    names: ['docs/up', /link/i],
  },
  {
    what: 'a link to what git keeps',
    repository: withTree('hostile/git-link', [{ path: 'config', link: '.git/config' }]),
    names: ['config', /link/i],
  },
  {
    what: 'a chain of 41 links',
    repository: withTree('hostile/chain', chain(41)),
    names: ['link-', /link/i],
  },
  {
    what: 'two links that name each other',
    repository: withTree('hostile/cycle', [
      { path: 'one', link: 'other' },
      { path: 'other', link: 'one' },
    ]),
    names: [/one|other/, /link/i],
  },
  {
    what: 'a folder that git itself uses',
    repository: withTree('hostile/dot-git', [file('docs/.git/config')]),
    names: [/\.git/],
  },
  {
    what: 'a short name of the folder that git uses',
    repository: withTree('hostile/short-name', [file('docs/git~1/config')]),
    names: [/git~1/],
  },
  {
    what: 'a list of submodules',
    repository: withTree('hostile/gitmodules', [file('.gitmodules', '[submodule "a"]\n')]),
    names: ['.gitmodules'],
  },
  {
    what: 'a name that is reserved in a workspace',
    repository: withTree('hostile/reserved', [file('.orka-artifacts/a')]),
    names: ['.orka-artifacts'],
  },
  {
    what: 'a path through the parent folder',
    repository: withTree('hostile/parent', [file('docs/../../escaped')]),
    names: [],
  },
  {
    what: 'a control character in a path',
    repository: withTree('hostile/control', [file('docs/a\nb')]),
    names: ['docs/a'],
  },
  {
    what: 'a backslash in a path',
    repository: withTree('hostile/backslash', [file('docs\\up')]),
    names: ['docs'],
  },
  {
    what: 'a file above 64 MiB',
    repository: withTree('hostile/big-file', [{ path: 'video.bin', bytes: 64 * mebibyte + 1 }]),
    names: ['video.bin', /64 MiB|67108864/],
  },
  {
    what: 'more than 96 MiB together',
    repository: withTree('hostile/big-tree', [], { filled: { files: 97, bytes: 97 * mebibyte } }),
    names: [/96 MiB|100663296/],
  },
  {
    what: 'more than 100000 entries',
    repository: withTree('hostile/many', [], { filled: { files: 100_001, bytes: 0 } }),
    names: [/100[ _,.]?000/],
  },
];

/** A host under which the forge is known to the publisher with the certificate of another authority. */
export const wrongCaHost = `forge.${forgePlace.namespace}.svc`;

/** What the platform file says of the publisher and the forge, which it knows on two ports and under two names. */
export function publisherFor(forge: Forge, otherCa: string): PublisherSettings {
  const settings = publisherSettings(forge);
  const [usual] = settings.forges;
  if (!usual) throw new Error('the publisher has no forge');
  const { port } = forgePlace.servers.other;
  return { ...settings, forges: [usual, { ...usual, port }, { ...usual, host: wrongCaHost, ca: otherCa }] };
}

/** Starts the forge of the test cluster, which only the publisher reaches. */
export async function startTestForge(more: readonly JsonObject[] = []): Promise<Forge> {
  const image = readProductImages()['forge']?.ref ?? cluster.node?.images['forge']?.ref;
  if (image === undefined) throw new Error('the image of the forge is not built: run npm run images');
  return startForge(kubectl, { image, peers: [publisherPeer(publisherNamespace), ...more] });
}

/** A Secret with a token, in the namespace of Tasks. */
export const tokenSecret = (name: string, data: Readonly<Record<string, string>>) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace },
  type: 'Opaque',
  stringData: data,
});

type Workspace = NonNullable<TaskSpec['workspace']>;

export interface SourceTask extends Partial<Workspace> {
  /** @default that of the app */
  readonly gitRepo?: string;
  /** A command that the agent runs; the answer is what it printed. */
  readonly command?: string;
  /** What the prompt says besides. */
  readonly says?: string;
  /** Secret of the read token; `null` = none. @default 'source-read' */
  readonly secret?: string | null;
}

export const readSecret = 'source-read';

/** A Task that reads a repository. */
export function sourceTask(
  name: string,
  { command, says = '', secret = readSecret, gitRepo = forgeUrl(app.name), ...rest }: SourceTask = {},
): Task {
  const credential = secret === null ? {} : { readCredentialRef: { name: secret } };
  const run = command === undefined ? '' : `Run exactly: \`${command}\` Reply with what it printed.`;
  return taskLike(name, {
    workspace: { gitRepo, ...credential, ...rest },
    prompt: [says, run, `Reply exactly: ${wordOf(name)}`].filter(Boolean).join(' '),
    agentRuntime: { maxTurns: 3 },
  });
}

/** By which the requests of a Task to the model are known. */
export const wordOf = (name: string): string => `SOURCE_${name.replaceAll(/\W/g, '_').toUpperCase()}`;

/** Deletes Tasks, and waits until they are gone. */
export async function deleteTasks(names: readonly string[]): Promise<void> {
  await kubectl(['delete', 'tasks.core.orka.ai', ...names, '-n', namespace, '--ignore-not-found', '--timeout=120s']);
}

export const applyTasks = (tasks: readonly Task[]): Promise<string> => applyObjects(kubectl, tasks);
