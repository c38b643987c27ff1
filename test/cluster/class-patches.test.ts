import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { refOf } from '../../src/kube/client.js';
import { poolClass } from '../support/objects.js';
import { acceptedObjects, objectsOfClass, sampleClasses } from '../support/patched-classes.js';
import { applyAll, cleanUp, kube, manager, namespace } from './support/cluster.js';

const place = namespace('orka-class-patches');

/** What the API server must accept of an object: itself, and its Pod template as it accepts that of a Pod. */
function sent(object: Manifest): readonly Manifest[] {
  const metadata = { ...object.metadata, namespace: place.metadata.name };
  const { podTemplate } = object['spec'] as { readonly podTemplate?: Manifest };
  return [
    { ...object, metadata },
    ...(podTemplate === undefined ? [] : [{ apiVersion: 'v1', kind: 'PodTemplate', metadata, template: podTemplate }]),
  ];
}

/** Sends an object as a dry run of the controller's apply. Returns the server's objection, if any. */
async function problem(object: Manifest): Promise<string | undefined> {
  const path = await kube.pathOf(refOf(object));
  const query = { fieldManager: manager, fieldValidation: 'Strict', dryRun: 'All', force: 'true' };
  const contentType = 'application/apply-patch+yaml';
  return kube.request({ method: 'PATCH', path, query, contentType, body: object }).then(
    () => undefined,
    (error: unknown) => `${String(error)}: ${JSON.stringify(object)}`,
  );
}

async function problems(objects: readonly Manifest[]): Promise<readonly string[]> {
  const queue = [...objects];
  const found: string[] = [];
  const send = async (): Promise<void> => {
    for (let object = queue.pop(); object; object = queue.pop()) {
      const says = await problem(object);
      if (says !== undefined) found.push(says);
    }
  };
  await Promise.all(Array.from({ length: 8 }, send));
  return found;
}

beforeAll(() => applyAll([place]));
afterAll(() => cleanUp([refOf(place)]));

test('the API server accepts every object of 500 classes that synth accepts, unknown fields refused', async () => {
  const rendered = sampleClasses(500).flatMap((spec) => {
    const objects = acceptedObjects(spec);
    return objects ? [objects] : [];
  });
  expect(rendered.length).toBeGreaterThan(150);
  expect(rendered.length).toBeLessThan(350);
  const texts = new Set(
    rendered
      .flat()
      .flatMap(sent)
      .map((object) => JSON.stringify(object)),
  );
  console.log(`${rendered.length} classes accepted, ${500 - rendered.length} refused; ${texts.size} different objects sent`);
  expect(await problems([...texts].map((text) => JSON.parse(text) as Manifest))).toEqual([]);
});

test.each([
  ['tolerations', 'all'],
  ['tolerations', [{ operator: 'Equal' }]],
  ['volumes', [{ name: 'Bad_Name', emptyDir: {} }]],
  ['tomorrow', true],
])('the API server refuses both templates of a class with %s: %j', async (member, value) => {
  for (const template of objectsOfClass(poolClass()).filter(({ kind }) => ['Deployment', 'SandboxTemplate'].includes(kind))) {
    const copy = structuredClone(template) as unknown as { spec: Record<string, { spec: Record<string, unknown> }> };
    copy.spec[template.kind === 'Deployment' ? 'template' : 'podTemplate']!.spec[member] = value;
    expect(await problems(sent(copy as unknown as Manifest))).not.toEqual([]);
  }
});
