import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';

/**
 * Objects of a stream that holds one in each line, however it is cut into chunks. Empty lines are skipped.
 *
 * Throws `SyntaxError` for a line that is no JSON object, `RangeError` for one longer than `longest` bytes, and `Error` for a stream that
 * ends inside a line: its rest may be the beginning of anything.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  longest: number,
): AsyncGenerator<JsonObject, void, undefined> {
  const newline = 0x0a;
  let rest: Uint8Array[] = [];
  let size = 0;
  const keep = (part: Uint8Array) => {
    size += part.length;
    if (size > longest) throw new RangeError(`a line is longer than ${longest} bytes`);
    if (part.length > 0) rest.push(part);
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      keep(chunk.subarray(start, end));
      start = end + 1;
      const line = Buffer.concat(rest).toString().trim();
      rest = [];
      size = 0;
      if (line !== '') yield parseLine(line);
    }
    // A copy: the small part of a large chunk would keep all of it in memory.
    keep(Uint8Array.from(chunk.subarray(start)));
  }
  if (size > 0) throw new Error('the stream ended inside a line');
}

function parseLine(line: string): JsonObject {
  let value: Json | undefined;
  try {
    value = JSON.parse(line) as Json;
  } catch {
    // The parser's own words quote the line, which may be a Secret.
  }
  if (!isObject(value)) throw new SyntaxError('a line that is no JSON object');
  return value;
}
