import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readLines } from '../../src/kube/lines.js';
import type { JsonObject } from '../../src/lib/json.js';

async function* chunksOf(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  let start = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)) {
    yield await Promise.resolve(bytes.subarray(start, cut));
    start = cut;
  }
}
async function read(text: string, longest = 1000, cuts: readonly number[] = []): Promise<JsonObject[]> {
  const objects: JsonObject[] = [];
  for await (const object of readLines(chunksOf(Buffer.from(text), cuts), longest)) objects.push(object);
  return objects;
}

test('the same objects come out however the stream is cut, inside a character too', async () => {
  const object = fc.dictionary(fc.string({ unit: 'grapheme', maxLength: 5 }), fc.string({ unit: 'grapheme' }), {
    noNullPrototype: true,
  });
  await fc.assert(
    fc.asyncProperty(fc.array(object), fc.array(fc.nat(500)), async (objects, cuts) => {
      const text = objects.map((one) => `${JSON.stringify(one)}\n`).join('');
      expect(await read(text, 10_000, cuts)).toEqual(objects);
    }),
  );
});

test('empty lines are skipped', async () => {
  expect(await read('\n{"a":1}\r\n\n')).toEqual([{ a: 1 }]);
});

test.each(['{"password":"hunter2"', '"hunter2"', 'hunter2'])(
  'a line that is no object is refused and not quoted: %s',
  async (line) => {
    const failed = read(`${line}\n`);
    await expect(failed).rejects.toThrow(SyntaxError);
    await expect(failed).rejects.not.toThrow(/hunter2/);
  },
);

test('a stream that ends inside a line is an error, even where its rest could be read', async () => {
  await expect(read('{"a":1}\n{"a":2}')).rejects.toThrow('the stream ended inside a line');
});

test.each([
  ['a whole one', []],
  ['one that is cut and never ends', [20, 60]],
])('a line that is too long is refused: %s', async (_, cuts) => {
  await expect(read(`{"a":"${'x'.repeat(100)}"}\n`, 50, cuts)).rejects.toThrow(RangeError);
});
