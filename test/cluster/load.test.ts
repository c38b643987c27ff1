/** Ten Tasks at once, each with a sandbox of its own and a real agent. Thirty are in `npm run bench:cluster`; thirty pools in `many-pools`. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { cluster, eventually, kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { answerOf, applyObjects, example } from './support/first-task.js';
import { leftovers } from './support/installation.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { runMany } from './support/many-tasks.js';
import type { Many } from './support/many-tasks.js';

const { namespace = '' } = example.task.metadata;
const names = Array.from({ length: 10 }, (_, index) => `load-${String(index + 1).padStart(2, '0')}`);

let product: Installed;
let many: Many;
const answers = new Map<string, string>();
let left: readonly Manifest[] = [];

beforeAll(async () => {
  const after = stopwatch(`${names.length} Tasks at once`);
  product = await installed({ gates: true, requests: { cpu: '10m', memory: '32Mi' } });
  await applyObjects(kubectl, [example.agent]);
  await explained(product, async () => {
    many = await runMany(kubectl, cluster, product, names, 240);
    after(
      `${many.over.size} over, the last ${(Math.max(...[...many.over.values()].map(({ at }) => at)) / 1000).toFixed(1)} s after it was asked for`,
    );
    for (const name of names) answers.set(name, await answerOf(kubectl, { name, namespace }).catch(String));
    for (const kind of ['tasks.core.orka.ai', 'runtimepools.core.orka.ai'])
      await kubectl(['delete', kind, '--all', '-n', namespace, '--timeout=120s']);
    after('deleted');
  });
  const none = async () => ((await leftovers(kubectl, product)).length === 0 ? true : undefined);
  await eventually('nothing left', none).catch(() => undefined);
  left = await leftovers(kubectl, product);
}, 1_080_000);
afterAll(() => product.remove(), 600_000);

test('all of them succeed', () => {
  const ends = names.map((name) => {
    const { phase, message } = many.over.get(name)?.task.status ?? {};
    return [name, phase, message].filter(Boolean).join(' ');
  });
  expect(ends).toEqual(names.map((name) => `${name} Succeeded`));
});

test('each has the answer to its own prompt', () => {
  expect([...answers.values()]).toEqual(names.map((name) => name.toUpperCase().replaceAll('-', '_')));
});

test('each prompt is sent once', () => {
  expect([...many.prompts]).toEqual(names.map((name) => [name, 1]));
});

test('nothing is left of them', () => {
  expect(left.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([]);
});
