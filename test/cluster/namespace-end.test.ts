/** Task namespaces that are deleted while Tasks and pools live in them. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually, kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { applyObjects, example, marker, readTask, taskLike, taskOver } from './support/first-task.js';
import { applyDist, install, leftovers, uninstall } from './support/installation.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';

const { namespace = '' } = example.task.metadata;
/** Seconds within which a namespace ends while a controller runs. */
const soon = 60;

let product: Installed;
beforeAll(async () => {
  product = await installed({ gates: true });
}, 600_000);
afterAll(() => product.remove(), 600_000);

const namespaceExists = async () => (await kubectl(['get', 'namespace', namespace, '--ignore-not-found', '-o', 'name'])) !== '';
const namespaceGone = (seconds: number) =>
  eventually('the end of the namespace', async () => ((await namespaceExists()) ? undefined : true), seconds);
const stateReached = (name: string, states: readonly string[]) =>
  eventually(
    `Task ${name} in ${states.join(', ')}`,
    async () => {
      const state = (await readTask(kubectl, { name, namespace }))?.status?.execution?.state;
      return states.includes(state ?? '') ? state : undefined;
    },
    180,
  );
const nothingLeft = () =>
  eventually(
    'nothing in the runtime namespace',
    async () => ((await leftovers(kubectl, product)).length === 0 ? true : undefined),
    soon,
  );

/** A Task that is over and whose pool idles, one that runs, and one that waits. */
async function lived(): Promise<void> {
  const long = { prompt: `Wait 120 seconds. Reply exactly: ${marker}` };
  await applyObjects(kubectl, [example.agent, taskLike('ended')]);
  await taskOver(kubectl, { name: 'ended', namespace }, 240);
  await applyObjects(kubectl, [taskLike('runs', long)]);
  await stateReached('runs', ['Running']);
  await applyObjects(kubectl, [taskLike('waits', long)]);
  await stateReached('waits', ['Queued', 'Reserved', 'SessionStarting', 'Submitting', 'Accepted', 'Running']);
}

describe('while the controller runs', () => {
  test('it ends by itself within a minute, and nothing is left of its sandboxes', async () => {
    await explained(product, async () => {
      await lived();
      const after = stopwatch('a namespace that is deleted');
      await kubectl(['delete', 'namespace', namespace, '--wait=false']);
      await namespaceGone(soon);
      after('gone');
      await nothingLeft();
    });
  }, 900_000);

  test('it is served again once it is made again with its Role', async () => {
    await explained(product, async () => {
      await install(kubectl, product);
      await applyObjects(kubectl, [example.agent, taskLike('again')]);
      expect((await taskOver(kubectl, { name: 'again', namespace }, 240)).status?.phase).toBe('Succeeded');
    });
  }, 600_000);
});

describe('after its installation was deleted', () => {
  test('the installation goes by itself, and what it left ends once it is applied again', async () => {
    await lived();
    const kept = ['CustomResourceDefinition', 'Namespace'];
    const items = product.manifests.filter(({ kind }) => !kept.includes(kind));
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
    await kubectl(['delete', '--ignore-not-found', '--timeout=60s', '-f', '-'], list);
    await kubectl(['delete', 'namespace', namespace, '--wait=false']);
    const condition = await eventually('a namespace that says what it waits for', async () => {
      const found = await kubectl([
        'get',
        'namespace',
        namespace,
        '-o',
        'jsonpath={.status.conditions[?(@.status=="True")].message}',
      ]);
      return found.includes('finalizers remaining') ? found : undefined;
    });
    expect(condition).toMatch(/orka\.ai\//);
    await explained(product, async () => {
      // The Role of a namespace that is being deleted is refused, and nothing else.
      await expect(applyDist(kubectl, product.dist)).rejects.toThrow(/because it is being terminated/);
      await namespaceGone(150);
      await nothingLeft();
    });
  }, 900_000);

  test('an installation over it ends like any other', async () => {
    await install(kubectl, product);
    expect(await uninstall(kubectl, product)).toEqual([]);
  }, 600_000);
});
