import { describe, expect, test } from '@jest/globals';
import { App, Chart } from 'cdk8s';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { agentKind, taskKind, withDefaults } from '../src/api/index.js';
import type { Agent, Task } from '../src/api/index.js';
import { SandboxClaim, SandboxWarmPool } from '../src/constructs/index.js';
import { withoutEffect } from '../src/domain/without-effect.js';
import { readYaml } from '../src/render/yaml-read.js';
import { cli } from './support/cli.js';

const pages = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'],
  ...['docs', 'gitops', 'test/cluster', 'test/vectors', 'images'].flatMap(pagesOf),
];
const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly scripts: Readonly<Record<string, string>> };

const sources = ['src', 'test', 'examples'].flatMap((root) =>
  readdirSync(root, { recursive: true, encoding: 'utf8' }).map((path) => join(root, path)),
);

function pagesOf(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.md')).map((name) => join(folder, name));
}

/** Every text of a page that matches, by its first group. */
function named(page: string, pattern: RegExp): readonly string[] {
  return [...readFileSync(page, 'utf8').matchAll(pattern)].map(([, name]) => name ?? '');
}

const rows = pages.map((page) => [page] as const);

describe('docs name only what exists:', () => {
  test.each(rows)('scripts of npm in %s', (page) => {
    expect(named(page, /npm run (?:--silent )?([\w:-]+)/g).filter((name) => !(name in scripts))).toEqual([]);
  });

  test.each(rows)('links of %s', (page) => {
    const local = named(page, /\]\(([^)\s]+)\)/g).filter((link) => !/^(https?:|mailto:|#)/.test(link));
    expect(local.filter((link) => !existsSync(join(dirname(page), link.replace(/#.*$/, ''))))).toEqual([]);
  });

  test.each(rows)('paths of the repository in %s', (page) => {
    const paths = named(page, /(?<![\w./@-])((?:src|test|docs|examples|lib|dist|scripts|gitops|imports)\/[\w./-]*[\w/])/g);
    expect(paths.filter((path) => !['.', 'src', dirname(page)].some((root) => existsSync(join(root, path))))).toEqual([]);
  });

  test.each(rows)('source files that %s names by the end of their path', (page) => {
    const files = named(page, /`([\w./-]+\.ts)`/g);
    expect(files.filter((name) => !sources.some((path) => `/${path}`.endsWith(`/${name}`)))).toEqual([]);
  });

  test.each(rows)('no package of a registry for our command in %s', (page) => {
    expect(named(page, /(npx (?:-\S+ )*orka-workspaces)/g)).toEqual([]);
  });

  test('commands and flags of orka-workspaces', () => {
    const calls = pages.flatMap((page) =>
      [
        ...readFileSync(page, 'utf8').matchAll(/(?:\.bin\/|bin\/|`)orka-workspaces(?:\.js)? ([a-z]+)((?:(?! [#|>])[^`\n])*)/g),
      ].map(([, command = '', rest = '']) => ({ page, command, flags: rest.match(/(?<=\s)--?[a-z][\w-]*/g) ?? [] })),
    );
    expect(calls.length).toBeGreaterThan(5);
    const help = new Map([...new Set(calls.map(({ command }) => command))].map((name) => [name, cli([name, '--help'])]));
    const unknown = calls.flatMap(({ page, command, flags }) => {
      const { code, stdout = '' } = help.get(command) ?? {};
      const bad = code === 0 ? flags.filter((flag) => !new RegExp(`(^|[\\s,])${flag}([\\s,]|$)`, 'm').test(stdout)) : [command];
      return bad.map((name) => `${page}: ${command} ${name}`);
    });
    expect(unknown).toEqual([]);
  });
});

test('the error that the README shows is what the construct says', () => {
  const chart = new Chart(new App(), 'agents');
  const warmPool = SandboxWarmPool.fromName('coder');
  const [, shown = ''] = /^```\n(agents\/claim: .*?)\n```$/ms.exec(readFileSync('README.md', 'utf8')) ?? [];
  expect(() => new SandboxClaim(chart, 'claim', { metadata: { name: '1agent' }, warmPool })).toThrow(
    new Error(shown.replace(/\n */g, ' ')),
  );
});

describe('examples', () => {
  const files = readdirSync('examples').filter((name) => name.endsWith('.yaml') && !name.startsWith('platform'));

  test.each(files)('%s has only fields with an effect', (name) => {
    const objects = readYaml(readFileSync(join('examples', name), 'utf8'), name).map(
      ({ value }) => value as unknown as Task | Agent,
    );
    const task = objects.find((one): one is Task => one.kind === 'Task');
    if (!task) throw new Error('no Task');
    const agent = objects.find((one): one is Agent => one.kind === 'Agent');
    expect(withoutEffect(withDefaults(taskKind, task), agent && withDefaults(agentKind, agent))).toEqual([]);
  });
});
