import { expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { createView } from '../../src/kube/own-writes.js';
import { fakeClock } from '../support/fake-clock.js';

const object = (resourceVersion: string, uid = 'uid-1'): Manifest => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'a', name: 'x', uid, resourceVersion },
});

/** A view over what a watch has told so far. */
function viewed() {
  const clock = fakeClock();
  let known: Manifest | undefined;
  const view = createView(() => ({ get: () => known, list: () => (known ? [known] : []) }), clock);
  return {
    view,
    clock,
    told: (next: Manifest | undefined) => {
      const before = known;
      known = next;
      view.changed('a/x', before, next);
    },
    version: () => view.get('a/x')?.metadata.resourceVersion,
    listed: () => view.list().map(({ metadata }) => metadata.resourceVersion),
  };
}

test('what the watch tells is there', () => {
  const { told, version, listed } = viewed();
  told(object('5'));
  expect([version(), listed()]).toEqual(['5', ['5']]);
});

test('an object that was just written is there before the watch tells it', () => {
  const { view, version, listed } = viewed();
  view.wrote(object('5'));
  expect([version(), listed()]).toEqual(['5', ['5']]);
});

test('our own write counts while the watch has an older state', () => {
  const { view, told, version, listed } = viewed();
  told(object('9'));
  view.wrote(object('10'));
  expect([version(), listed()]).toEqual(['10', ['10']]);
});

test('the watch counts as soon as it has a newer state', () => {
  const { view, told, version } = viewed();
  view.wrote(object('10'));
  told(object('11'));
  expect(version()).toBe('11');
});

test('a state that the watch had long is not taken for news by an old answer', () => {
  const { view, told, version } = viewed();
  told(object('11'));
  view.wrote(object('10'));
  expect(version()).toBe('11');
});

test('a deleted object is gone before the watch tells it', () => {
  const { view, told, version, listed } = viewed();
  told(object('5'));
  view.removed(object('5'));
  expect([version(), listed()]).toEqual([undefined, []]);
});

test('an object that was made again under the name of a deleted one is there', () => {
  const { view, told, version } = viewed();
  told(object('5'));
  view.removed(object('5'));
  told(object('7', 'uid-2'));
  expect(version()).toBe('7');
});

test('a deletion that the watch tells ends what was written before', () => {
  const { view, told, version } = viewed();
  told(object('5'));
  view.wrote(object('6'));
  told(undefined);
  expect(version()).toBeUndefined();
});

test('the deletion of a former object does not end the one that was made since', () => {
  const { view, told, version } = viewed();
  told(object('5'));
  view.wrote(object('8', 'uid-2'));
  told(undefined);
  expect(version()).toBe('8');
});

test('after ten seconds the watch is right, whatever was written', async () => {
  const { view, told, version, clock } = viewed();
  told(object('9'));
  view.wrote(object('10'));
  await clock.advance(10_001);
  expect(version()).toBe('9');
});

test('after ten seconds an object whose deletion was delayed is there again', async () => {
  const { view, told, version, clock } = viewed();
  told(object('5'));
  view.removed(object('5'));
  await clock.advance(10_001);
  expect(version()).toBe('5');
});
