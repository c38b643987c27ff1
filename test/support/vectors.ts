import { readFileSync } from 'node:fs';

/** One golden value: what goes in and what the reference implementation makes of it. */
export interface Vector<I, O> {
  readonly name: string;
  readonly input: I;
  readonly output: O;
}

/** A file of golden values, see `test/vectors/README.md`. */
export function readVectors<T>(file: string): T {
  return JSON.parse(readFileSync(new URL(`../vectors/${file}.json`, import.meta.url), 'utf8')) as T;
}
