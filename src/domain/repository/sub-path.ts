import type { RepositoryProblem } from './repository.js';

const longest = 1024;

/** The directory that the session sees, relative to the root of the repository; `undefined` = the whole. Source: repository.md §1.1 row 3. */
export function relativeRootOf(subPath: string | undefined): string | undefined {
  const path = (subPath ?? '').trim();
  return path === '' || path === '.' ? undefined : path;
}

/** Why a `subPath` is not safe to use. */
export function subPathProblem(subPath: string | undefined): RepositoryProblem | undefined {
  const path = relativeRootOf(subPath);
  if (path === undefined) return undefined;
  const allowed = 'a path from the root of the repository, such as services/api';
  const size = Buffer.byteLength(path);
  if (size > longest) return { foundKind: `${size} bytes`, allowed: `${allowed}, of at most ${longest} bytes` };
  if (/[\p{Cc}\\]/u.test(path) || !path.isWellFormed())
    return { found: subPath, allowed: `${allowed}, without "\\" and control characters` };
  const unsafe = path.split('/').find((segment) => segment.trim() === '' || segment === '.' || segment === '..');
  return unsafe === undefined ? undefined : { found: subPath, allowed: `${allowed}, without ${unsafePart(path, unsafe)}` };
}

function unsafePart(path: string, segment: string): string {
  if (segment !== '') return `the segment ${JSON.stringify(segment)}`;
  if (path.endsWith('/')) return '"/" at the end';
  return path.startsWith('/') ? '"/" at the start' : '"//"';
}
