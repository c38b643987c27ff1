import { expect, test } from '@jest/globals';
import type { Manifest, RuntimePoolClassSpec } from '../../src/api/index.js';
import { createClasses } from '../../src/controller/classes.js';
import type { JsonObject } from '../../src/lib/json.js';
import { classDigest, compile } from '../../src/render/compile.js';
import { poolClass } from '../support/objects.js';

const at = '2030-01-01T00:00:00Z';
const digest = classDigest(compile(poolClass()));

/** A stored class; approved as it is, unless something else is said. */
function stored(name: string, change: Partial<RuntimePoolClassSpec> = {}, generation = 1): Manifest {
  return {
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'RuntimePoolClass',
    metadata: { name, namespace: 'orka-system', uid: `${name}-uid`, generation },
    spec: poolClass({ approvedDigests: [digest], ...change }),
  };
}
const otherDigest = `sha256:${'0'.repeat(64)}` as const;
const readyOf = (classes: ReturnType<typeof createClasses>, name: string) =>
  classes.statusChange(name, at)?.status.conditions?.find(({ type }) => type === 'Ready');

test('a class whose digest is approved is ready', () => {
  expect(createClasses(() => [stored('codex')]).of('codex')).toMatchObject({ state: 'ready', name: 'codex', digest });
});

test('one of several approved digests is enough', () => {
  expect(createClasses(() => [stored('codex', { approvedDigests: [otherDigest, digest] })]).of('codex').state).toBe('ready');
});

test('a class that compiles to another digest has drifted, and says to which', () => {
  const classes = createClasses(() => [stored('codex', { approvedDigests: [otherDigest] })]);
  expect(classes.of('codex')).toMatchObject({
    state: 'drifted',
    name: 'codex',
    says: expect.stringContaining(digest) as unknown,
  });
  expect(readyOf(classes, 'codex')).toMatchObject({ status: 'False', reason: 'Drifted' });
});

test('two classes of one pair are both ambiguous, and name each other', () => {
  const classes = createClasses(() => [stored('b'), stored('a')]);
  expect(classes.of('codex')).toMatchObject({ state: 'ambiguous', says: expect.stringContaining('a and b') as unknown });
  expect(['a', 'b'].map((name) => readyOf(classes, name)?.reason)).toEqual(['Ambiguous', 'Ambiguous']);
});

test('a class of another resource class is no twin', () => {
  const large = stored('large', { resourceClass: 'large', approvedDigests: [otherDigest] });
  expect(createClasses(() => [stored('codex'), large]).of('codex').state).toBe('ready');
});

test('a class that does not compile is invalid, and says why', () => {
  const broken = stored('codex', { providerProxy: { ...poolClass().providerProxy, podLabels: {} } });
  const classes = createClasses(() => [broken]);
  expect(classes.of('codex').state).toBe('invalid');
  expect(readyOf(classes, 'codex')).toMatchObject({ status: 'False', reason: 'Invalid' });
});

test('a provider kind without a class names the missing pair', () => {
  expect(createClasses(() => []).of('claude')).toEqual({
    state: 'missing',
    says: 'there is no RuntimePoolClass for claude/standard, and no other class either',
  });
});

test('a class that is missing is reported with the classes that exist', () => {
  const large = { ...stored('codex'), metadata: { ...stored('codex').metadata, name: 'large' } };
  expect(createClasses(() => [large]).of('claude')).toMatchObject({
    says: 'there is no RuntimePoolClass for claude/standard; classes that exist: large (codex/standard)',
  });
});

test('a class that cannot be listed is not said to be missing', () => {
  const classes = createClasses(
    () => [],
    () => false,
  );
  expect(classes.of('codex')).toEqual({ state: 'unreadable', says: 'the controller may not list RuntimePoolClasses' });
});

test('the status says which digest the class has here', () => {
  expect(createClasses(() => [stored('codex')]).statusChange('codex', at)?.status).toMatchObject({
    observedGeneration: 1,
    digest,
    conditions: [{ type: 'Ready', status: 'True', reason: 'Approved', lastTransitionTime: at }],
  });
});

test('a status that is written is not written again', () => {
  const fresh = stored('codex');
  const { status } = createClasses(() => [fresh]).statusChange('codex', at)!;
  const written = { ...fresh, status: status as unknown as JsonObject };
  expect(createClasses(() => [written]).statusChange('codex', '2031-01-01T00:00:00Z')).toBeUndefined();
});

test('a new generation that is still ready keeps the time of its condition', () => {
  const { status } = createClasses(() => [stored('codex')]).statusChange('codex', at)!;
  const next = { ...stored('codex', {}, 2), status: status as unknown as JsonObject };
  const [ready] = createClasses(() => [next]).statusChange('codex', '2031-01-01T00:00:00Z')!.status.conditions ?? [];
  expect(ready).toMatchObject({ observedGeneration: 2, lastTransitionTime: at });
});

test('a class that is not there has no status', () => {
  expect(createClasses(() => []).statusChange('codex', at)).toBeUndefined();
});

test('a class is compiled once for each generation', () => {
  let object = stored('codex');
  const classes = createClasses(() => [object]);
  const compiled = () => {
    const verdict = classes.of('codex');
    return verdict.state === 'ready' ? verdict.compiled : undefined;
  };
  const first = compiled();
  expect(first).toBeDefined();
  expect(compiled()).toBe(first);
  object = stored('codex', {}, 2);
  expect(compiled()).not.toBe(first);
});
