import { randomUUID } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { CodedError } from '../lib/errors.js';
import { isSystemError, systemWords } from '../lib/system-words.js';
import type { RenderedFile } from './app.js';
import { header } from './dist.js';

/** An output folder holds what we did not write, or cannot be written; it was left as it is. */
export class OutputError extends CodedError<'output-foreign' | 'output-failed'> {}

/** How the committed output differs from what would be written now. */
export interface OutputDifference {
  readonly path: string;
  readonly kind: 'missing' | 'stale' | 'foreign' | 'left-over';
}

/**
 * Writes an output folder as a whole: into a temporary folder beside it, then by renaming. A folder that holds a file which is not
 * ours is refused and left as it is.
 * @returns the paths that changed
 */
export function writeOutput(folder: string, files: readonly RenderedFile[]): readonly string[] {
  const target = resolve(folder);
  const differences = compareOutput(folder, files);
  const foreign = differences.find(({ kind }) => kind === 'foreign');
  if (foreign) {
    throw new OutputError('output-foreign', {
      at: join(folder, foreign.path),
      found: 'a file that orka-workspaces did not write',
      allowed: 'an output folder of its own; move the file away, or choose another folder with --out',
    });
  }
  if (differences.length === 0 && existsSync(target)) return [];
  try {
    replaceFolder(target, files);
  } catch (cause) {
    throw failed(cause, folder);
  }
  return differences.map(({ path }) => path);
}

function failed(cause: unknown, folder: string): OutputError {
  return new OutputError('output-failed', { at: folder, says: `cannot be written: ${systemWords(cause)}` }, { cause });
}

/** Unlike `recursive: true`, ends where the file system says that a folder which exists does not. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** The new folder is complete before the old one moves, and the old one comes back when the new one cannot take its place. */
function replaceFolder(target: string, files: readonly RenderedFile[]): void {
  const beside = join(dirname(target), `.${basename(target)}-${randomUUID()}`);
  const [fresh, old] = [`${beside}.new`, `${beside}.old`];
  try {
    for (const { path, text } of files) {
      makeFolder(dirname(join(fresh, path)));
      writeFileSync(join(fresh, path), text);
    }
    const replaced = existsSync(target);
    if (replaced) renameSync(target, old);
    try {
      renameSync(fresh, target);
    } catch (cause) {
      if (replaced && !existsSync(target)) renameSync(old, target);
      throw cause;
    }
  } finally {
    rmSync(fresh, { recursive: true, force: true });
    rmSync(old, { recursive: true, force: true });
  }
}

/**
 * Compares an output folder with what would be written now; empty = equal to the byte.
 * Throws {@link OutputError} when the folder cannot be read.
 */
export function compareOutput(folder: string, files: readonly RenderedFile[]): readonly OutputDifference[] {
  refuseEmptyName(folder);
  try {
    return differencesOf(folder, files);
  } catch (cause) {
    if (!isSystemError(cause)) throw cause;
    const at = join(folder, relative(resolve(folder), cause.path ?? resolve(folder)));
    throw new OutputError('output-failed', { at, says: `cannot be read: ${systemWords(cause)}` }, { cause });
  }
}

/** `resolve('')` is the working folder, which would be replaced although it was not named. */
function refuseEmptyName(folder: string): void {
  if (folder === '')
    throw new OutputError('output-foreign', { at: 'output folder', found: folder, allowed: 'the path of a folder' });
}

function differencesOf(folder: string, files: readonly RenderedFile[]): readonly OutputDifference[] {
  const wanted = new Map(files.map(({ path, text }) => [path, text]));
  // The same path as writeOutput replaces: after a link, `..` means another folder to the file system than to `resolve`.
  const target = resolve(folder);
  const present = listFiles(folder, target);
  const known = present.flatMap((path): readonly OutputDifference[] => {
    const file = join(target, path);
    const text = lstatSync(file).isSymbolicLink() ? '' : readFileSync(file, 'utf8');
    if (!text.startsWith(header)) return [{ path, kind: 'foreign' }];
    const other = wanted.get(path);
    return other === undefined ? [{ path, kind: 'left-over' }] : other === text ? [] : [{ path, kind: 'stale' }];
  });
  const missing = [...wanted.keys()]
    .filter((path) => !present.includes(path))
    .map((path): OutputDifference => ({ path, kind: 'missing' }));
  return [...known, ...missing].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Relative paths of all files below a folder, with `/`. Links count as files: they are never followed. */
function listFiles(folder: string, target: string): readonly string[] {
  const found = lstatSync(target, { throwIfNoEntry: false });
  if (!found) return [];
  if (!found.isDirectory())
    throw new OutputError('output-foreign', {
      at: folder,
      found: found.isFile() ? 'a file' : 'no folder',
      allowed: 'a folder, or nothing',
    });
  const walk = (at: string): string[] =>
    readdirSync(at, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? walk(join(at, entry.name)) : [join(at, entry.name)],
    );
  return walk(target)
    .map((path) => relative(target, path).split(sep).join('/'))
    .sort();
}
