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
  let reached: string | undefined = '1';
  const view = createView(() => ({ get: () => known, list: () => (known ? [known] : []), reached: () => reached }), { clock });
  return {
    view,
    clock,
    told: (next: Manifest | undefined, at = next?.metadata.resourceVersion ?? reached) => {
      const before = known;
      known = next;
      view.changed('a/x', before, next);
      reached = at;
    },
    /** Other objects of the kind changed, or nothing did and the server says so. */
    reach: (version: string | undefined) => {
      reached = version;
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

test('what we wrote counts for as long as the watch has not come that far', async () => {
  const { view, told, version, reach, clock } = viewed();
  told(object('9'));
  view.wrote(object('12'));
  await clock.advance(500_000);
  reach('11');
  expect(version()).toBe('12');
});

test('an object that we made, and that the watch knows nothing of when it has come that far, is gone', () => {
  const { view, version, listed, reach } = viewed();
  view.wrote(object('10'));
  reach('10');
  expect([version(), listed()]).toEqual([undefined, []]);
});

test('the answer to a write that comes after the watch told the deletion brings nothing back', () => {
  const { view, told, version } = viewed();
  told(object('5'));
  told(undefined, '7');
  view.wrote(object('6'));
  expect(version()).toBeUndefined();
});

test('answers that come in another order than they were given in do not take a state back', () => {
  const { view, version } = viewed();
  view.wrote(object('12'));
  view.wrote(object('11'));
  expect(version()).toBe('12');
  view.wrote(object('14', 'uid-2'));
  view.wrote(object('13'));
  expect(version()).toBe('14');
});

test('the late answer to a write brings no deleted object back', () => {
  const { view, told, version } = viewed();
  told(object('5'));
  view.removed(object('6'));
  view.wrote(object('6'));
  expect(version()).toBeUndefined();
});

test('an object that was made and deleted before the watch told of it does not appear when the watch tells that it came', () => {
  const { view, told, version } = viewed();
  view.wrote(object('6'));
  view.removed(object('6'));
  expect(version()).toBeUndefined();
  told(object('6'));
  expect(version()).toBeUndefined();
});

test('the late news that a former object was deleted does not hide the one that was made since', () => {
  const { view, version } = viewed();
  view.wrote(object('8', 'uid-2'));
  view.removed(object('5'));
  expect(version()).toBe('8');
});

test('an object that was deleted after a write of ours stays away when the watch tells that write', () => {
  const { view, told, version } = viewed();
  told(object('5'));
  view.wrote(object('6'));
  // What was decided on, not what was written since.
  view.removed(object('5'));
  told(object('6'));
  expect(version()).toBeUndefined();
});

test('an object that is gone stays away while the watch tells what happened to it before', () => {
  const { view, told, version } = viewed();
  told(object('5'));
  view.removed(object('5'));
  told(object('6'));
  expect(version()).toBeUndefined();
});

test('an object that is gone does not give way to a former one that the watch tells late', () => {
  const { view, told, version } = viewed();
  view.wrote(object('9', 'uid-2'));
  view.removed(object('9', 'uid-2'));
  told(object('5', 'uid-1'));
  expect(version()).toBeUndefined();
});

test('after ten minutes the watch is right, whatever was written: versions of a restored server are lower', async () => {
  const { view, told, version, clock } = viewed();
  told(object('9'));
  view.wrote(object('10'));
  await clock.advance(600_001);
  expect(version()).toBe('9');
});

test.each([
  ['versions cannot be compared', 'ten', '10'],
  ['the kind is missing', '10', undefined],
])('after ten seconds the watch is right when %s', async (_, written, reached) => {
  const { view, version, reach, clock } = viewed();
  reach(reached);
  view.wrote(object(written));
  await clock.advance(10_000);
  expect(version()).toBe(written);
  await clock.advance(1);
  expect(version()).toBeUndefined();
});
