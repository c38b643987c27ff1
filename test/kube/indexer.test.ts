import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Manifest } from '../../src/api/index.js';
import { Indexer } from '../../src/kube/indexer.js';
import { createView } from '../../src/kube/own-writes.js';
import { createStore } from '../../src/kube/store.js';
import { fakeClock } from '../support/fake-clock.js';

const object = (name: string, version: number, color?: string, uid = name): Manifest => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    namespace: 'a',
    name,
    uid,
    resourceVersion: String(version),
    ...(color === undefined ? {} : { labels: { color } }),
  },
});
const colorOf = ({ metadata }: Manifest) => metadata.labels?.['color'];

test('a key is found by each of its states, and not by states of before', () => {
  const indexer = new Indexer({ color: colorOf });
  indexer.update('a/x', [object('x', 1, 'red'), object('x', 2, 'blue')]);
  indexer.update('a/y', [object('y', 1, 'red')]);
  expect([indexer.keys('color', 'red'), indexer.keys('color', 'blue')]).toEqual([['a/x', 'a/y'], ['a/x']]);
  indexer.update('a/x', [object('x', 2, 'blue')]);
  indexer.update('a/y', []);
  expect([indexer.keys('color', 'red'), indexer.keys('color', 'blue')]).toEqual([[], ['a/x']]);
});

test('an object without a value is found by none', () => {
  const indexer = new Indexer({ color: colorOf });
  indexer.update('a/x', [object('x', 1)]);
  expect(indexer.keys('color', 'undefined')).toEqual([]);
});

/** Something that happens to one of three objects: the watch tells it, or we wrote it, as of a version that may be old. */
const happening = fc.record({
  what: fc.constantFrom('told', 'went', 'listed', 'wrote', 'removed', 'time'),
  name: fc.constantFrom('x', 'y', 'z'),
  ahead: fc.integer({ min: -2, max: 3 }),
});

test('a view finds by an index exactly what it lists, whatever was watched, written or forgotten', () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 30 }), (happenings) => {
      const clock = fakeClock();
      let [version, reached, elapsed] = [10, 10, 0];
      const store = createStore((key, before, after) => view.changed(key, before, after));
      const view = createView(() => ({ ...store, reached: () => String(reached) }), {
        clock: { ...clock, elapsed: () => elapsed },
        indexes: { color: colorOf },
      });
      for (const { what, name, ahead } of happenings) {
        version++;
        // One resourceVersion stands for one content.
        const at = version + ahead;
        const one = object(name, at, ['red', 'blue', undefined][at % 3], `uid-${Math.floor(at / 7)}`);
        if (what === 'told') store.put(one);
        if (what === 'went') store.remove(`a/${name}`);
        if (what === 'listed') store.replace([one]);
        if (['told', 'went', 'listed'].includes(what)) reached = at;
        if (what === 'wrote') view.wrote(one);
        if (what === 'removed') view.removed(one);
        if (what === 'time') elapsed += 400_000;
        for (const value of ['red', 'blue']) {
          const listed = view.list().filter((found) => colorOf(found) === value);
          const byName = (a: Manifest, b: Manifest) => a.metadata.name.localeCompare(b.metadata.name);
          expect([...view.by('color', value)].sort(byName)).toEqual([...listed].sort(byName));
        }
      }
    }),
    { numRuns: 500 },
  );
});

test('an index that there is not is a defect of who asks', () => {
  const view = createView(() => ({ get: () => undefined, list: () => [], reached: () => '1' }));
  expect(() => view.by('color', 'red')).toThrow('there is no index color');
});
