/** What is found in a workspace that began with a tree: read by a child, compared with the record of its beginning. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { compareAs, WalkError } from '../../src/supervisor/session-user.js';
import type { CompareAnswer } from '../../src/supervisor/session-user.js';
import type { Vector } from '../support/vectors.js';
import { readVectors } from '../support/vectors.js';
import { recordFolder } from '../support/workspace-record.js';

interface Entry {
  readonly path: string;
  readonly type?: string;
  readonly mode?: string;
  readonly content?: string;
  readonly target?: string;
}
interface DeltaOutput {
  readonly classification?: string;
  readonly error?: string | true;
  readonly entries?: number;
  readonly deletions?: number;
  readonly symlinks?: number;
}
type DeltaVector = Vector<
  { readonly before: readonly Entry[] | null; readonly after: readonly Entry[]; readonly intent: string },
  DeltaOutput
>;
interface Sections {
  readonly delta: { readonly vectors: readonly DeltaVector[] };
}
const { delta } = readVectors<{ readonly sections: Sections }>('repository').sections;

let root: string;
let workspace: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'tree-'));
  workspace = path.join(root, 'workspace');
});
afterEach(() => {
  spawnSync('chmod', ['-R', 'u+rwx', root]);
  rmSync(root, { recursive: true, force: true });
});

function make(entries: readonly Entry[]): void {
  mkdirSync(workspace);
  for (const { path: name, type = 'file', mode = '0644', content = '', target = '' } of entries) {
    const at = path.join(workspace, name);
    mkdirSync(type === 'directory' ? at : path.dirname(at), { recursive: true });
    if (type === 'symlink') symlinkSync(target, at);
    if (type !== 'file') continue;
    writeFileSync(at, content);
    chmodSync(at, Number.parseInt(mode, 8));
  }
}

function capture(): void {
  const file = openSync(path.join(root, 'record'), 'wx', 0o600);
  try {
    recordFolder(workspace, file);
  } finally {
    closeSync(file);
  }
}

async function compare(maxEntries = 1000): Promise<CompareAnswer> {
  const file = openSync(path.join(root, 'record'), 'r');
  try {
    return await compareAs(undefined, { folder: workspace, maxEntries, mostPaths: 20 }, file, 20_000);
  } finally {
    closeSync(file);
  }
}

function run(script: string): void {
  const { status, stderr } = spawnSync('/bin/bash', ['-e', '-c', script], { cwd: workspace, encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
}

const guarded: readonly Entry[] = [
  { path: 'README.md', content: 'hello\n' },
  { path: 'bin/run', content: '#!/bin/sh\n', mode: '0755' },
  { path: 'docs/link', type: 'symlink', target: '../README.md' },
  { path: 'src/main.go', content: 'package main\n' },
  { path: '.claude/settings.json', content: '{}' },
  { path: '.claude/skills/x', content: 'x' },
  { path: '.agents/skills', type: 'symlink', target: '../.claude/skills' },
  { path: 'sub/.Config/x' },
];

describe('a workspace', () => {
  test.each(delta.vectors)('is judged as by the reference: $name', async ({ input, output }) => {
    make(input.before ?? []);
    capture();
    renameSync(workspace, path.join(root, 'before'));
    make(input.after);
    const found = await compare().catch((error: unknown) => error);
    if (output.error !== undefined) expect(found).toMatchObject({ code: 'refused' });
    else {
      const { entries = 0, deletions = 0, symlinks = 0, classification } = output;
      expect(found).toMatchObject({ entries, deleted: deletions, links: symlinks });
      expect(entries + deletions === 0).toBe(classification === 'no_change');
    }
  });

  test.each([
    ['a change of the same size', 'echo HELLO > README.md', ['README.md']],
    ['a bit that makes a file a program', 'chmod +x README.md', ['README.md']],
    ['an empty folder', 'mkdir empty', ['empty']],
    ['a link that leads elsewhere', 'ln -sfn ../bin docs/link', ['docs/link']],
    ['a file in the place of a folder', 'rm -r src; echo > src', ['src', 'src/main.go']],
    ['a folder that was renamed', 'mv src lib', ['lib', 'lib/main.go', 'src', 'src/main.go']],
    ['a .gitmodules', 'echo > .gitmodules', ['.gitmodules']],
    ['more than 20 files', 'for i in $(seq 10 60); do echo > f$i; done', Array.from({ length: 20 }, (_, i) => `f${10 + i}`)],
    [
      'a long name',
      `echo > ${'x'.repeat(255)}; mkdir d; echo > d/${'y'.repeat(255)}`,
      ['d', `d/${'y'.repeat(251)}…`, 'x'.repeat(255)],
    ],
  ])('is changed by %s', async (_, script, changedPaths) => {
    make(guarded);
    capture();
    run(script);
    expect(await compare()).toMatchObject({ changedPaths });
  });

  test.each([
    ['a protected file that was changed', 'echo > .claude/settings.json', 'a protected entry was changed: .claude/settings.json'],
    [
      'a protected file with another mode',
      'chmod 600 .claude/settings.json',
      'a protected entry was changed: .claude/settings.json',
    ],
    ['a protected file that is gone', 'rm sub/.Config/x', 'a protected entry is gone: sub/.Config/x'],
    ['a protected folder that is new', 'mkdir src/.SSH', 'a protected entry is new: src/.SSH'],
    ['a file below a protected folder that is new', 'echo > .claude/skills/y', 'a protected entry is new: .claude/skills/y'],
    ['a reserved name', 'echo > src/.Orka-Publisher', 'a name is reserved: src/.Orka-Publisher'],
    ['a .git below the root', 'mkdir -p src/.GIT', 'a name is reserved: src/.GIT'],
    ['a named pipe', 'mkfifo src/pipe', 'an entry is no file, folder or link: src/pipe'],
    ['a hard link', 'ln README.md other', 'a file has another hard link: README.md'],
    ['a link out of the root', 'ln -s ../../x src/l', 'the link leads out of the repository, or to its root: src/l'],
    ['an absolute link', 'ln -s /etc/passwd l', 'the target of the link is absolute: l'],
    ['a link to the root', 'ln -s .. src/l', 'the link leads out of the repository, or to its root: src/l'],
    [
      'a link to its own folder',
      'mkdir src/sub; ln -s ../../src src/sub/l',
      'the link leads to itself, or to a folder that it is in: src/sub/l',
    ],
    ['a link into a protected folder', 'ln -s .claude/settings.json l', 'a link leads to a protected entry: l'],
    ['links in a cycle', 'ln -s b a; ln -s a b', 'the links that it leads through form a cycle, or are more than 40: a'],
    ['a control character', `printf x > "$(printf 'a\\001b')"`, 'the path has a control character: a\\x01b'],
    ['a name that is not UTF-8', `printf x > "$(printf 'a\\377b')"`, 'the path is not UTF-8: a\\xffb'],
  ])('is refused for %s, by path', async (_, script, says) => {
    make(guarded);
    capture();
    run(script);
    await expect(compare()).rejects.toMatchObject({ code: 'refused', finding: { says } });
  });

  test.each([
    ['nothing', ':'],
    ['a repository of its root', 'git init -q; git -c user.name=a -c user.email=b commit -qm x --allow-empty'],
    ['a link in the place of its .git', 'ln -s /etc .git'],
    ['other times', 'touch -d 2001-01-01 README.md src'],
    ['rights that Git does not know', 'chmod 600 README.md; chmod 711 bin/run; chmod 000 src/main.go; chmod 700 src'],
  ])('is unchanged by %s', async (_, script) => {
    make(guarded);
    capture();
    run(script);
    expect(await compare()).toMatchObject({ entries: 0, deleted: 0, changedPaths: [] });
    expect(await compare()).toMatchObject({ entries: 0, deleted: 0, changedPaths: [] });
  });

  test.each([
    ['entries', 'for i in $(seq 1 13); do echo > f$i; done', 'the workspace has more than 20 entries'],
    ['bytes in a file', 'truncate -s 300M f', 'a file has more than 268435456 bytes: f'],
    ['bytes in all files', 'for i in $(seq 1 9); do truncate -s 250M f$i; done', 'the workspace has more than 2147483648 bytes'],
  ])('is refused for too many %s', async (_, script, says) => {
    make(guarded);
    capture();
    run(script);
    await expect(compare(20)).rejects.toMatchObject({ code: 'exceeded', finding: { says } });
  });

  test('of names in any order of bytes is found the same', async () => {
    make(
      ['a-b', 'a/z', 'a/a', 'a', 'B', 'Ä', 'a.b', 'a0', '\u{1f600}', '\uffee'].map((name) => ({
        path: name === 'a' ? 'a/q' : name,
      })),
    );
    capture();
    expect(await compare()).toMatchObject({ entries: 0, deleted: 0 });
    run('rm -r a; echo > a-; echo x > a0');
    expect(await compare()).toMatchObject({ changedPaths: ['a', 'a/a', 'a/q', 'a/z', 'a-', 'a0'], deleted: 4, files: 2 });
  });

  test('whose folders are swapped for links while it is read is never left', async () => {
    make([...guarded, ...Array.from({ length: 300 }, (_, i) => ({ path: `d/${i}/f`, content: 'x' }))]);
    capture();
    const outside = path.join(root, 'outside');
    mkdirSync(outside);
    spawnSync('mkfifo', [path.join(outside, 'f')]);
    const swap = `while :; do mv d x; ln -s ${outside} d; mv d y; mv x d; for i in 1 100 299; do mv d/$i x; ln -s ${outside} d/$i; rm d/$i; mv x d/$i; done; rm y; done`;
    const swapper = spawn('/bin/bash', ['-c', swap], { cwd: workspace, stdio: 'ignore' });
    try {
      for (let i = 0; i < 5; i++) {
        const found = await compare(10_000).catch((error: unknown) => error);
        if (found instanceof WalkError) expect(['failed', 'refused']).toContain(found.code);
        else expect(JSON.stringify(found)).not.toContain('outside');
      }
    } finally {
      swapper.kill('SIGKILL');
    }
  });
});
