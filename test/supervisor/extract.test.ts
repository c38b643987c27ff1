/** Archives that attack: what is refused leaves no link, no file outside, and a reason that names the entry. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { TarReader } from '../../src/supervisor/tar-reader.js';
import { compareAs, extractAs } from '../../src/supervisor/session-user.js';
import type { ExtractAnswer, ExtractOrder } from '../../src/supervisor/session-user.js';
import { archive, tree } from '../support/archive.js';
import type { ArchiveEntry } from '../support/archive.js';
import { eventually } from '../support/eventually.js';
import { recordFolder } from '../support/workspace-record.js';

let root: string;
let folder: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'extract-'));
  folder = path.join(root, 'workspace');
  mkdirSync(folder);
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

const feedOf = (bytes: Buffer) => async (target: NodeJS.WritableStream) => {
  await new Promise<void>((resolve) => target.write(bytes, () => resolve()));
};

function extract(bytes: Buffer, more: Partial<ExtractOrder> = {}): Promise<ExtractAnswer> {
  return extractAs(undefined, { folder, ...more }, feedOf(bytes), 20_000);
}

/** Names below the folder, at any depth. */
const inside = () => readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();

const refusedFor = (says: string) => ({ code: 'refused', finding: { says: expect.stringContaining(says) } });

describe('an archive', () => {
  test('becomes folders, files and links of its own modes', async () => {
    const long = `${'d'.repeat(120)}/${'f'.repeat(150)}`;
    const entries: readonly ArchiveEntry[] = [
      { path: 'README.md', content: 'hello\n', records: { atime: '0', ctime: '0' } },
      { path: 'bin/run', content: '#!/bin/sh\n', mode: 0o755 },
      { path: 'readme.MD', content: 'another case' },
      { path: long, content: 'x'.repeat(70_000) },
      { path: 'l', target: long },
      { path: 'empty', content: '' },
      { path: 'dangling', target: 'nowhere/x' },
    ];
    const answer = await extract(tree(entries));
    expect(answer).toMatchObject({ entries: 9, files: 5, links: 2 });
    expect(inside()).toEqual(
      ['README.md', 'bin', 'bin/run', 'dangling', 'd'.repeat(120), long, 'empty', 'l', 'readme.MD'].sort(),
    );
    expect(lstatSync(path.join(folder, 'bin/run')).mode & 0o7777).toBe(0o755);
    expect(lstatSync(path.join(folder, 'README.md')).mode & 0o7777).toBe(0o644);
    expect(lstatSync(path.join(folder, 'bin')).mode & 0o7777).toBe(0o700);
    expect(readFileSync(path.join(folder, 'l'), 'utf8')).toBe('x'.repeat(70_000));
    expect(readlinkSync(path.join(folder, 'dangling'))).toBe('nowhere/x');
  });

  const outside = { path: '../outside', content: 'x' };
  const cases: readonly (readonly [string, Buffer, string])[] = [
    ['a path that leads out', archive([outside]), 'the path has an empty name, `.` or `..`: ../outside'],
    ['an absolute path', archive([{ path: '/tmp/outside' }]), 'the path is absolute: /tmp/outside'],
    ['a long path that leads out', archive([{ path: 'x', records: { path: 'a/../../outside' } }]), 'the path has an empty name'],
    [
      'a file below a link',
      archive([{ path: 'l', target: 'd' }, { path: 'l/x' }]),
      'an entry is in no folder of the archive: l/x',
    ],
    ['a file below a file', archive([{ path: 'f' }, { path: 'f/x' }]), 'an entry is in no folder of the archive: f/x'],
    [
      'a file in a folder that comes later',
      archive([{ path: 'd/x' }, { path: 'd/' }]),
      'an entry is in no folder of the archive: d/x',
    ],
    ['a link in the place of a folder', archive([{ path: 'd/' }, { path: 'd', target: '.x' }]), 'an entry is there twice: d'],
    ['a file in the place of a link', archive([{ path: 'l', target: 'x' }, { path: 'l' }]), 'an entry is there twice: l'],
    ['a file twice', archive([{ path: 'f' }, { path: 'f' }]), 'an entry is there twice: f'],
    ['a link out of the root', archive([{ path: 'l', target: '../../etc/passwd' }]), 'the link leads out of the repository'],
    ['an absolute link', archive([{ path: 'l', target: '/etc/passwd' }]), 'the target of the link is absolute: l'],
    ['a link into .git', archive([{ path: 'l', target: '.git/config' }]), 'the link leads to Git metadata: l'],
    [
      'links in a cycle',
      archive([
        { path: 'a', target: 'b' },
        { path: 'b', target: 'a' },
      ]),
      'form a cycle',
    ],
    [
      'links that lead out together',
      tree([{ path: 'deep/er/b', target: '../../s' }, { path: 's/' }, { path: 'l', target: 'deep/er/b/../../x' }]),
      'the link leads out of the repository through another link: l',
    ],
    ['a .git', archive([{ path: '.Git/' }]), 'the name .Git is reserved: .Git'],
    ['a reserved name', archive([{ path: '.orka-credentials' }]), 'is reserved'],
    ['a name that is not UTF-8', archive([{ path: Buffer.from([0x61, 0xff]) }]), 'the path is not UTF-8: a\\xff'],
    ['a newline in a name', archive([{ path: 'a\nb' }]), 'the path has a control character: a\\x0ab'],
    ['a name of 256 bytes', archive([{ path: 'n'.repeat(256) }]), 'a name of the path has more than 255 bytes'],
    ['a device', archive([{ path: 'd', type: '3' }]), 'an entry is no file, folder or link'],
    ['a named pipe', archive([{ path: 'd', type: '6' }]), 'an entry is no file, folder or link'],
    ['a hard link', archive([{ path: 'f' }, { path: 'h', type: '1', target: 'f' }]), 'an entry is no file, folder or link'],
    ['a file of the old form', archive([{ path: 'f', type: '\0' }]), 'an entry is no file, folder or link'],
    ['a sparse file', archive([{ path: 'f', type: 'S' }]), 'an entry is no file, folder or link'],
    [
      'records for all entries',
      archive([{ path: 'f', type: 'g', content: '12 path=abcd\n' }]),
      'an entry is no file, folder or link',
    ],
    ['a long name in the form of GNU', archive([{ path: '././@LongLink', type: 'L', content: 'x' }]), 'an entry is no file'],
    ['sparse records', archive([{ path: 'f', records: { 'GNU.sparse.major': '1' } }]), 'a record is unknown, or there twice'],
    [
      'extended attributes',
      archive([{ path: 'f', records: { 'SCHILY.xattr.security.capability': 'x' } }]),
      'a record is unknown',
    ],
    ['a NUL in a record', archive([{ path: 'f', records: { path: 'a\0/../b' } }]), 'a record has a NUL'],
    [
      'a size in a record that is no number',
      archive([{ path: 'f', records: { size: '1e3' } }]),
      'the size in a record is not a number',
    ],
    ['a setuid bit', archive([{ path: 'f', mode: 0o4755 }]), 'a file has the mode 4755: f'],
    ['a file that others may write', archive([{ path: 'f', mode: 0o666 }]), 'a file has the mode 666: f'],
    ['a folder with contents', archive([{ path: 'd/', size: 5 }]), 'a folder or link has contents'],
    [
      'a number in base 256',
      archive([{ path: 'f', patch: (header) => header.fill(0x80, 124, 125) }]),
      'the size of a header is not an octal number',
    ],
    ['a file of 64 GiB', archive([{ path: 'f', size: 0o77777777777 - 7 }]), 'a file has more than 67108864 bytes: f'],
    [
      'a size of 999 GB in a record',
      archive([{ path: 'f', records: { size: '999999999999' } }]),
      'a file has more than 67108864 bytes: f',
    ],
    [
      'a header that is not POSIX',
      archive([{ path: 'f', patch: (header) => header.write('ustar  \0', 257, 'latin1') }]),
      'not in the POSIX form',
    ],
    [
      'text after the end of a name',
      archive([{ path: 'f', patch: (header) => header.write('x', 5, 'latin1') }]),
      'a text of a header goes on',
    ],
    ['bytes after its end', Buffer.concat([archive([{ path: 'f' }]), archive([{ path: 'g' }])]), 'there are bytes after its end'],
    ['zeros after its end', Buffer.concat([archive([{ path: 'f' }]), Buffer.alloc(512)]), 'there are bytes after its end'],
    [
      'an entry after one block of zeros',
      Buffer.concat([Buffer.alloc(512), archive([{ path: 'f' }])]),
      'there are bytes after its end',
    ],
    ['no end', archive([{ path: 'f' }]).subarray(0, -1024), 'it ends early'],
    ['half an end', archive([{ path: 'f' }]).subarray(0, -512), 'it ends early'],
    ['no bytes', Buffer.alloc(0), 'it ends early'],
    ['a broken file', archive([{ path: 'f', content: 'x'.repeat(2000) }]).subarray(0, 1000), 'it ends early'],
  ];

  test.each(cases)('with %s is refused', async (_, bytes, says) => {
    await expect(extract(bytes)).rejects.toMatchObject(refusedFor(says));
    expect(readdirSync(root)).toEqual(['workspace']);
    expect(inside().filter((name) => lstatSync(path.join(folder, name)).isSymbolicLink())).toEqual([]);
    expect(existsSync('/tmp/outside')).toBe(false);
  });

  test.each([
    ['a wrong checksum', 0, 'a header has a wrong checksum'],
    ['bytes in the filling of a block', 512 + 5, 'a block is not filled with zeros'],
  ])('with %s is refused', async (_, at, says) => {
    const bytes = archive([{ path: 'f', content: 'abc' }]);
    bytes.writeUInt8(0x39, at);
    await expect(extract(bytes)).rejects.toMatchObject(refusedFor(says));
  });

  test.each([
    ['entries', { entries: 2 }, 'the archive has more than 2 entries: c'],
    ['bytes in a file', { fileBytes: 4 }, 'a file has more than 4 bytes: c'],
    ['bytes in all files', { treeBytes: 10 }, 'the files have more than 10 bytes together: d'],
  ])('with too many %s is refused', async (_, changed, says) => {
    const limits = { entries: 100, fileBytes: 100, treeBytes: 100, ...changed };
    const bytes = archive([
      { path: 'a', content: '12' },
      { path: 'b', content: '34' },
      { path: 'c', content: '56789' },
      { path: 'd', target: 'aa' },
    ]);
    await expect(extract(bytes, { limits })).rejects.toMatchObject(refusedFor(says));
  });

  test('is not put into a folder that has something, or is a link', async () => {
    await extract(archive([{ path: 'a' }]));
    await expect(extract(archive([{ path: 'b' }]))).rejects.toMatchObject(refusedFor('the workspace is not empty'));
    rmSync(folder, { recursive: true });
    const { symlinkSync } = await import('node:fs');
    symlinkSync('/tmp', folder);
    await expect(extract(archive([{ path: 'b' }]))).rejects.toMatchObject({ code: 'failed' });
  });

  test('is recorded as a walk of what it became finds it', async () => {
    const names = [
      'a-b',
      'a/z',
      'a/a',
      'a.b',
      'a0',
      'B',
      'Ä',
      '\u{1f600}',
      '\uffee',
      'é/ü/ö',
      `${'d'.repeat(120)}/${'f'.repeat(150)}`,
    ];
    const files = names.map((name, i) => ({
      path: name,
      content: name.repeat(i * 1000),
      ...(i % 2 === 0 ? { mode: 0o755 } : {}),
    }));
    const bytes = tree([...files, { path: 'l', target: 'a/ü' }, { path: 'empty', content: '' }]);
    for (const relativeRoot of ['', 'a']) {
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
      const [made, read] = ['made', 'read'].map((name) => path.join(root, `${name}-${relativeRoot}`)) as [string, string];
      const [madeFile, readFile] = [openSync(made, 'wx'), openSync(read, 'wx')];
      await extractAs(undefined, { folder, relativeRoot }, feedOf(bytes), 20_000, madeFile);
      recordFolder(folder, readFile);
      for (const file of [madeFile, readFile]) closeSync(file);
      expect(readFileSync(made, 'utf8')).toBe(readFileSync(read, 'utf8'));
      expect(readFileSync(made, 'utf8').trim().split('\n').length).toBe(relativeRoot === '' ? 17 : 2);
    }
  });

  test('has what another put beside its files found as a change', async () => {
    const file = openSync(path.join(root, 'record'), 'wx+');
    const feed = async (target: NodeJS.WritableStream) => {
      await new Promise<void>((resolve) =>
        target.write(archive([{ path: 'd/' }, { path: 'd/f', content: 'x' }]), () => resolve()),
      );
      await eventually(() => existsSync(path.join(folder, 'd/f')));
      writeFileSync(path.join(folder, 'd/f'), 'other');
      writeFileSync(path.join(folder, 'd/g'), '');
    };
    await extractAs(undefined, { folder }, feed, 20_000, file);
    const found = await compareAs(undefined, { folder, maxEntries: 10, mostPaths: 10 }, file, 20_000);
    closeSync(file);
    expect(found).toMatchObject({ entries: 2, changedPaths: ['d/f', 'd/g'] });
  });

  test('of 41 links one after the other is refused, and of 40 is not', async () => {
    const chain = (length: number) => Array.from({ length }, (_, i) => ({ path: `l${i}`, target: `l${i + 1}` }));
    await expect(extract(archive(chain(41)))).rejects.toMatchObject(refusedFor('are more than 40'));
    await expect(extract(archive(chain(40)))).resolves.toMatchObject({ links: 40 });
  });

  test('whose bytes turn out to be wrong leaves no link', async () => {
    const wrong = new Error('another digest');
    const feed = async (target: NodeJS.WritableStream) => {
      await new Promise<void>((resolve) => target.write(archive([{ path: 'f' }, { path: 'l', target: 'f' }]), () => resolve()));
      throw wrong;
    };
    await expect(extractAs(undefined, { folder }, feed, 20_000)).rejects.toBe(wrong);
    expect(inside()).not.toContain('l');
  });

  test('that does not end is given up', async () => {
    const feed = (_: NodeJS.WritableStream, signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    await expect(extractAs(undefined, { folder }, feed, 500)).rejects.toMatchObject({ code: 'time' });
  });
});

test('a tar file is read the same in parts of any size', () => {
  const bytes = tree([
    { path: 'a/b', content: 'x'.repeat(600) },
    { path: 'n'.repeat(150), content: 'y' },
    { path: 'l', target: 'a' },
  ]);
  const read = (parts: readonly Buffer[]) => {
    const seen: string[] = [];
    let content = '';
    const reader = new TarReader({
      entry: ({ kind, path: name, mode, size, target }) =>
        seen.push(JSON.stringify([kind, name.toString(), mode, size, target.toString()])),
      data: (part) => (content += part.toString()),
      finish: () => seen.push(`${content} end`),
    });
    for (const part of parts) reader.push(part);
    reader.end();
    return seen;
  };
  const whole = read([bytes]);
  expect(whole).toHaveLength(8);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 40 }), (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      expect(read(at.slice(1).map((end, i) => bytes.subarray(at[i], end)))).toEqual(whole);
    }),
  );
});
