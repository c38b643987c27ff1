import type { Manifest } from '../../src/api/index.js';
import { worldIndexes } from '../../src/controller/world.js';
import type { WatchedName } from '../../src/controller/world.js';
import type { IndexFunction } from '../../src/kube/indexer.js';

/** What an index of the world finds among the objects that there are, by looking at each of them. */
export function foundBy(name: WatchedName, list: () => readonly Manifest[]) {
  const indexes: Readonly<Record<string, IndexFunction>> = worldIndexes[name];
  return (index: string, value: string): readonly Manifest[] => {
    const find = indexes[index];
    if (!find) throw new Error(`${name} have no index ${index}`);
    return list().filter((object) => find(object) === value);
  };
}
