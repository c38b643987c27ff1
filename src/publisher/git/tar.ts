/** Headers of a tar archive: ustar, with a PAX record where a name does not fit or is not ASCII. Times, owners and their names are empty. */
const block = 512;
const nameBytes = 100;

type TypeFlag = '0' | '2' | '5' | 'x';

export interface TarEntry {
  readonly path: string;
  readonly type: 'file' | 'directory' | 'link';
  /** Of a file. */
  readonly mode?: 0o644 | 0o755;
  readonly size?: number;
  /** Of a link. */
  readonly target?: string;
}

/** What stands before the content of an entry. */
export function tarHeader({ path, type, mode = 0o755, size = 0, target = '' }: TarEntry): Buffer {
  const long = [
    ...(needsRecord(path) ? [record('path', path)] : []),
    ...(needsRecord(target) ? [record('linkpath', target)] : []),
  ];
  const main = header({ name: path, flag: flags[type], mode: type === 'link' ? 0o777 : mode, size, target });
  if (long.length === 0) return main;
  const records = Buffer.concat(long);
  const before = header({ name: 'PaxHeaders.0/entry', flag: 'x', mode: 0, size: records.length, target: '' });
  return Buffer.concat([before, records, tarPadding(records.length), main]);
}

/** What stands after a content of this size. */
export const tarPadding = (size: number): Buffer => zeros.subarray(0, (block - (size % block)) % block);

/** What stands at the end of an archive. */
export const tarEnd = Buffer.alloc(2 * block);

const zeros = Buffer.alloc(block);
const flags = { file: '0', link: '2', directory: '5' } as const;

const needsRecord = (text: string): boolean => Buffer.byteLength(text) > nameBytes || !/^[\x20-\x7e]*$/.test(text);

/** `<length> <key>=<value>\n`, where the length counts its own digits. */
function record(key: string, value: string): Buffer {
  const body = Buffer.from(` ${key}=${value}\n`);
  let length = body.length;
  while (String(length).length + body.length !== length) length = String(length).length + body.length;
  return Buffer.concat([Buffer.from(String(length)), body]);
}

function header(of: { name: string; flag: TypeFlag; mode: number; size: number; target: string }): Buffer {
  const bytes = Buffer.alloc(block);
  const number = (value: number, at: number, digits: number): void => {
    bytes.write(value.toString(8).padStart(digits, '0'), at, digits, 'latin1');
  };
  Buffer.from(of.name).copy(bytes, 0, 0, nameBytes);
  number(of.mode, 100, 7);
  number(0, 108, 7);
  number(0, 116, 7);
  number(of.size, 124, 11);
  number(0, 136, 11);
  bytes.write('        ', 148, 'latin1');
  bytes.write(of.flag, 156, 'latin1');
  Buffer.from(of.target).copy(bytes, 157, 0, nameBytes);
  bytes.write('ustar\u000000', 257, 'latin1');
  number(0, 329, 7);
  number(0, 337, 7);
  number(
    bytes.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  );
  bytes[154] = 0;
  return bytes;
}
