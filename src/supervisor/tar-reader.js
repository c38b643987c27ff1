// Plain JavaScript: a child process loads this file as it is, before and after a build.

/**
 * Reads the one form of tar that a workspace archive has, in pieces of any size: POSIX headers, of which a PAX header may lengthen path,
 * link target and size, for files, folders and links. Everything else is refused, since two readers could understand it differently: other
 * kinds of entries, sparse files, numbers in base 256, and bytes after the end. Source: repository.md §2.8, §4.3.
 */

const block = 512;
/** Bytes of the records before one entry: two long texts and a few numbers. */
const longestRecords = 16 * 1024;

/** @typedef {{ readonly kind: 'file' | 'folder' | 'link', readonly path: Buffer, readonly mode: number, readonly size: number, readonly target: Buffer }} TarEntry */
/** @typedef {{ readonly entry: (entry: TarEntry) => void, readonly data: (part: Buffer) => void, readonly finish: () => void }} TarTaker called in this order; `finish` ends the entry */
/** @typedef {{ readonly path?: Buffer, readonly linkpath?: Buffer, readonly size?: number }} Records */

/** The archive is not one that we write. The message quotes nothing of it. */
export class TarError extends Error {}

/** @type {Readonly<Record<string, TarEntry['kind']>>} */
const kinds = { 0: 'file', 2: 'link', 5: 'folder' };
const numbers = new Set(['atime', 'ctime', 'mtime']);

const none = Buffer.alloc(0);

export class TarReader {
  #taker;
  /** Of a header, or of records. @type {Buffer} */
  #held = none;
  /** Bytes that `#held` waits for. */
  #wanted = block;
  #isRecords = false;
  /** Bytes of the file that are still to come, and of the filling after them. */
  #left = 0;
  #filling = 0;
  /** @type {Records | undefined} */
  #records;
  #zeroBlocks = 0;

  /** @param {TarTaker} taker */
  constructor(taker) {
    this.#taker = taker;
  }

  /** Throws {@link TarError}, and what the taker throws. @param {Buffer} part */
  push(part) {
    let rest = part;
    while (rest.length > 0) {
      if (this.#left > 0) rest = this.#data(rest);
      else if (this.#filling > 0) rest = this.#fill(rest);
      else rest = this.#hold(rest);
    }
  }

  /** The stream has ended. Throws {@link TarError}. */
  end() {
    if (this.#zeroBlocks !== 2) throw new TarError('it ends early');
  }

  /** @param {Buffer} part */
  #data(part) {
    const taken = part.subarray(0, this.#left);
    this.#taker.data(taken);
    this.#left -= taken.length;
    if (this.#left === 0) this.#taker.finish();
    return part.subarray(taken.length);
  }

  /** @param {Buffer} part */
  #fill(part) {
    const taken = part.subarray(0, this.#filling);
    if (!isZero(taken)) throw new TarError('a block is not filled with zeros');
    this.#filling -= taken.length;
    return part.subarray(taken.length);
  }

  /** @param {Buffer} part */
  #hold(part) {
    if (this.#zeroBlocks === 2) throw new TarError('there are bytes after its end');
    const taken = part.subarray(0, this.#wanted - this.#held.length);
    this.#held = this.#held.length === 0 ? taken : Buffer.concat([this.#held, taken]);
    if (this.#held.length === this.#wanted) {
      const whole = this.#held;
      this.#held = none;
      if (this.#isRecords) this.#takeRecords(whole);
      else this.#takeHeader(whole);
    }
    // A part is its giver's again after it was pushed.
    else if (this.#held === taken) this.#held = Buffer.from(taken);
    return part.subarray(taken.length);
  }

  /** @param {Buffer} whole */
  #takeRecords(whole) {
    this.#filling = fillingOf(whole.length);
    this.#records = recordsOf(whole);
    this.#isRecords = false;
    this.#wanted = block;
  }

  /** @param {Buffer} header */
  #takeHeader(header) {
    if (isZero(header)) {
      if (this.#records) throw new TarError('records stand before no entry');
      this.#zeroBlocks++;
      return;
    }
    if (this.#zeroBlocks > 0) throw new TarError('there are bytes after its end');
    checkForm(header);
    const type = header.toString('latin1', 156, 157);
    const size = this.#records?.size ?? octal(header, 124, 12, 'size');
    if (type === 'x') this.#expectRecords(size);
    else this.#takeEntry(type, header, size);
  }

  /** @param {number} size */
  #expectRecords(size) {
    if (this.#records) throw new TarError('records stand before records');
    if (size === 0 || size > longestRecords) throw new TarError(`records have no bytes, or more than ${longestRecords}`);
    this.#isRecords = true;
    this.#wanted = size;
  }

  /** @param {string} type @param {Buffer} header @param {number} size */
  #takeEntry(type, header, size) {
    const kind = kinds[type];
    if (!kind) throw new TarError('an entry is no file, folder or link');
    if (kind !== 'file' && size > 0) throw new TarError('a folder or link has contents');
    const target = this.#records?.linkpath ?? textOf(header, 157, 100);
    if (kind !== 'link' && target.length > 0) throw new TarError('a file or folder has a link target');
    const path = this.#records?.path ?? nameOf(header);
    const named = kind === 'folder' && path.at(-1) === 0x2f ? path.subarray(0, -1) : path;
    this.#records = undefined;
    this.#taker.entry({ kind, path: named, mode: octal(header, 100, 8, 'mode'), size, target });
    this.#left = size;
    this.#filling = fillingOf(size);
    if (size === 0) this.#taker.finish();
  }
}

/** @param {number} size */
const fillingOf = (size) => (block - (size % block)) % block;

const zeros = Buffer.alloc(longestRecords);

/** Never of more bytes than records may have. @param {Buffer} bytes */
const isZero = (bytes) => bytes.compare(zeros, 0, bytes.length) === 0;

/** @param {Buffer} header */
function checkForm(header) {
  if (header.toString('latin1', 257, 265) !== 'ustar\u000000') throw new TarError('a header is not in the POSIX form');
  let sum = 8 * 0x20;
  for (let at = 0; at < block; at++) if (at < 148 || at >= 156) sum += header[at] ?? 0;
  if (octal(header, 148, 8, 'checksum') !== sum) throw new TarError('a header has a wrong checksum');
}

/** @param {Buffer} header @param {number} at @param {number} length @param {string} field */
function octal(header, at, length, field) {
  const found = /^ *([0-7]+)[ \0]*$/.exec(header.toString('latin1', at, at + length));
  if (!found) throw new TarError(`the ${field} of a header is not an octal number`);
  return Number.parseInt(found[1] ?? '', 8);
}

/** A text that ends at its first NUL, and with it the field. @param {Buffer} header @param {number} at @param {number} length */
function textOf(header, at, length) {
  const field = header.subarray(at, at + length);
  const end = field.indexOf(0);
  if (end === -1) return Buffer.from(field);
  if (!isZero(field.subarray(end))) throw new TarError('a text of a header goes on after its end');
  return Buffer.from(field.subarray(0, end));
}

/** @param {Buffer} header */
function nameOf(header) {
  const [name, prefix] = [textOf(header, 0, 100), textOf(header, 345, 155)];
  return prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from('/'), name]);
}

/** Records as `25 path=dir/name`, each with its own length and a line end. @param {Buffer} bytes @returns {Records} */
function recordsOf(bytes) {
  /** @type {Map<string, Buffer>} */
  const found = new Map();
  for (let at = 0; at < bytes.length;) {
    const space = bytes.indexOf(0x20, at);
    const digits = bytes.toString('latin1', at, space === -1 ? at : space);
    const end = at + (/^[1-9]\d{0,5}$/.test(digits) ? Number(digits) : NaN);
    const equals = bytes.indexOf(0x3d, space);
    if (!(end <= bytes.length) || equals === -1 || equals >= end - 1 || bytes[end - 1] !== 0x0a)
      throw new TarError('a record has a wrong length');
    const key = bytes.toString('latin1', space + 1, equals);
    const value = Buffer.from(bytes.subarray(equals + 1, end - 1));
    const known = numbers.has(key) || key === 'path' || key === 'linkpath' || key === 'size';
    if (!known || found.has(key)) throw new TarError('a record is unknown, or there twice');
    if (value.includes(0)) throw new TarError('a record has a NUL');
    if (key !== 'size' || /^\d{1,12}$/.test(value.toString('latin1'))) found.set(key, value);
    else throw new TarError('the size in a record is not a number');
    at = end;
  }
  const [path, linkpath, size] = [found.get('path'), found.get('linkpath'), found.get('size')];
  return { ...(path && { path }), ...(linkpath && { linkpath }), ...(size && { size: Number(size.toString('latin1')) }) };
}
