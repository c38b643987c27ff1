import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { CodedError } from '../lib/errors.js';
import type { RenderedFile } from './app.js';
import { header } from './dist.js';

/** An output folder holds what we did not write; it was left alone. */
export class OutputError extends CodedError<'output-foreign'> {}

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
  const differences = compareOutput(target, files);
  const foreign = differences.find(({ kind }) => kind === 'foreign');
  if (foreign) {
    throw new OutputError('output-foreign', {
      at: join(folder, foreign.path),
      found: 'a file that orka-workspaces did not write',
      allowed: 'an output folder of its own; move the file away, or choose another folder with --out',
    });
  }
  if (differences.length === 0 && existsSync(target)) return [];
  mkdirSync(dirname(target), { recursive: true });
  const fresh = mkdtempSync(join(dirname(target), `.${basename(target)}-`));
  try {
    for (const { path, text } of files) {
      mkdirSync(dirname(join(fresh, path)), { recursive: true });
      writeFileSync(join(fresh, path), text);
    }
    const old = `${fresh}.old`;
    if (existsSync(target)) renameSync(target, old);
    renameSync(fresh, target);
    rmSync(old, { recursive: true, force: true });
  } catch (cause) {
    rmSync(fresh, { recursive: true, force: true });
    throw cause;
  }
  return differences.map(({ path }) => path);
}

/** Compares an output folder with what would be written now; empty = equal to the byte. */
export function compareOutput(folder: string, files: readonly RenderedFile[]): readonly OutputDifference[] {
  const wanted = new Map(files.map(({ path, text }) => [path, text]));
  const present = listFiles(folder);
  const known = present.flatMap((path): readonly OutputDifference[] => {
    const text = readFileSync(join(folder, path), 'utf8');
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
function listFiles(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  if (!lstatSync(folder).isDirectory())
    throw new OutputError('output-foreign', { at: folder, found: 'a file', allowed: 'a folder, or nothing' });
  const walk = (at: string): string[] =>
    readdirSync(at, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? walk(join(at, entry.name)) : [join(at, entry.name)],
    );
  return walk(folder)
    .map((path) => relative(folder, path).split(sep).join('/'))
    .sort();
}
