// Tar archives that depend on their entries alone: fixed owner and time, sorted names.

import { closeSync, openSync, readSync } from 'node:fs';

/**
 * @typedef {object} Entry
 * @property {string} path without leading slash; a folder's ends with one
 * @property {number} mode
 * @property {number} [uid]
 * @property {number} [gid]
 * @property {string} [link] target of a symbolic link
 * @property {string} [source] file with the content
 * @property {Buffer} [content]
 * @property {number} size bytes of the content
 */

const block = 512;
const chunkSize = 1 << 20;

/** @param {number} size */
const padding = (size) => Buffer.alloc((block - (size % block)) % block);

/**
 * @param {number} value
 * @param {number} width
 */
function octal(value, width) {
  const digits = value.toString(8);
  if (digits.length >= width) throw new RangeError(`${value} does not fit a tar field of ${width} bytes`);
  return `${digits.padStart(width - 1, '0')}\0`;
}

/**
 * Name and prefix field of a path, or undefined when it needs an extended header.
 *
 * @param {string} path
 */
function split(path) {
  if (Buffer.byteLength(path) <= 100) return { name: path, prefix: '' };
  for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1)) {
    const [prefix, name] = [path.slice(0, slash), path.slice(slash + 1)];
    if (name && Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(name) <= 100) return { name, prefix };
  }
  return undefined;
}

/**
 * @param {{ name: string, prefix: string, link: string, type: string, mode: number, uid: number, gid: number, size: number }} fields
 */
function header({ name, prefix, link, type, mode, uid, gid, size }) {
  const bytes = Buffer.alloc(block);
  bytes.write(name, 0);
  bytes.write(octal(mode, 8), 100);
  bytes.write(octal(uid, 8), 108);
  bytes.write(octal(gid, 8), 116);
  bytes.write(octal(size, 12), 124);
  bytes.write(octal(0, 12), 136);
  bytes.write(' '.repeat(8), 148);
  bytes.write(type, 156);
  bytes.write(link, 157);
  bytes.write('ustar\u000000', 257);
  bytes.write(prefix, 345);
  let sum = 0;
  for (const byte of bytes) sum += byte;
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return bytes;
}

/**
 * One record of an extended header; its length counts its own digits.
 *
 * @param {string} key
 * @param {string} value
 */
function record(key, value) {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest;
  while (length !== rest + String(length).length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

/** @param {Entry} entry */
function* headers(entry) {
  const named = split(entry.path);
  const link = entry.link ?? '';
  const longLink = Buffer.byteLength(link) > 100;
  if (!named || longLink) {
    const data = Buffer.from((named ? '' : record('path', entry.path)) + (longLink ? record('linkpath', link) : ''));
    yield header({ name: 'pax', prefix: '', link: '', type: 'x', mode: 0o644, uid: 0, gid: 0, size: data.length });
    yield Buffer.concat([data, padding(data.length)]);
  }
  const type = entry.link !== undefined ? '2' : entry.path.endsWith('/') ? '5' : '0';
  yield header({
    name: named?.name ?? 'long',
    prefix: named?.prefix ?? '',
    link: longLink ? '' : link,
    type,
    mode: entry.mode,
    uid: entry.uid ?? 0,
    gid: entry.gid ?? 0,
    size: entry.size,
  });
}

/**
 * @param {string} file
 * @param {number} size
 */
function* readChunks(file, size) {
  const descriptor = openSync(file, 'r');
  try {
    for (;;) {
      const chunk = Buffer.allocUnsafe(Math.min(chunkSize, size + 1));
      const length = readSync(descriptor, chunk);
      if (length === 0) return;
      yield chunk.subarray(0, length);
    }
  } finally {
    closeSync(descriptor);
  }
}

/**
 * The bytes of an archive, entry by entry in the order of their paths.
 *
 * @param {readonly Entry[]} entries
 * @returns {Generator<Buffer>}
 */
export function* archive(entries) {
  const sorted = [...entries].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
  for (const entry of sorted) {
    yield* headers(entry);
    let written = 0;
    for (const chunk of entry.source !== undefined ? readChunks(entry.source, entry.size) : [entry.content ?? Buffer.alloc(0)]) {
      written += chunk.length;
      yield chunk;
    }
    if (written !== entry.size) throw new Error(`${entry.source ?? entry.path} changed while it was read`);
    yield padding(entry.size);
  }
  yield Buffer.alloc(2 * block);
}
