/** Archives as the publisher writes them, and ones that it would not write. */
import { sha256Hex } from '../../src/lib/sha256.js';

export interface ArchiveEntry {
  readonly path: string | Buffer;
  /** @default a file; a folder if the path ends in `/`, a link if there is a target */
  readonly type?: string;
  readonly content?: string | Buffer;
  readonly target?: string;
  readonly mode?: number;
  /** Stands in the header instead of the size of the content. */
  readonly size?: number;
  /** Records before the entry, unchecked. */
  readonly records?: Readonly<Record<string, string>>;
  /** Changes the header before its checksum is made. */
  readonly patch?: (header: Buffer) => void;
}

/** A tar file: headers, contents and two blocks of zeros. */
export function archive(entries: readonly ArchiveEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap(parts), Buffer.alloc(1024)]);
}

/** Folders of all entries first, as the publisher does. */
export function tree(entries: readonly ArchiveEntry[]): Buffer {
  const folders = new Set<string>();
  for (const { path } of entries) {
    const names = String(path).replace(/\/$/, '').split('/');
    for (let i = 1; i < names.length; i++) folders.add(`${names.slice(0, i).join('/')}/`);
  }
  const made = [...folders].sort((a, b) => a.split('/').length - b.split('/').length).map((path) => ({ path }));
  return archive([...made, ...entries]);
}

export const digestOfArchive = (bytes: Buffer) => `sha256:${sha256Hex(bytes)}` as const;

function parts(entry: ArchiveEntry): readonly Buffer[] {
  const path = Buffer.from(entry.path);
  const type = entry.type ?? (entry.target !== undefined ? '2' : path.at(-1) === 0x2f ? '5' : '0');
  const content = Buffer.from(entry.content ?? '');
  const target = Buffer.from(entry.target ?? '');
  const records = {
    ...(path.length > 100 ? { path: path.toString('utf8') } : {}),
    ...(target.length > 100 ? { linkpath: target.toString('utf8') } : {}),
    ...entry.records,
  };
  const mode = entry.mode ?? (type === '0' ? 0o644 : type === '5' ? 0o755 : 0o777);
  const own = header(
    { name: path.subarray(0, 100), type, mode, size: entry.size ?? content.length, target: target.subarray(0, 100) },
    entry.patch,
  );
  const before = Object.entries(records).map(([key, value]) => record(key, value));
  if (before.length === 0) return [own, padded(content)];
  const all = Buffer.concat(before);
  const extended = header({ name: Buffer.from('pax'), type: 'x', mode: 0o644, size: all.length, target: Buffer.alloc(0) });
  return [extended, padded(all), own, padded(content)];
}

/** Its own length counts its own digits. */
function record(key: string, value: string): Buffer {
  const rest = Buffer.from(` ${key}=${value}\n`);
  let size = rest.length + 1;
  while (String(size).length + rest.length !== size) size = String(size).length + rest.length;
  return Buffer.concat([Buffer.from(String(size)), rest]);
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

function header(
  of: { readonly name: Buffer; readonly type: string; readonly mode: number; readonly size: number; readonly target: Buffer },
  patch: (header: Buffer) => void = () => undefined,
): Buffer {
  const block = Buffer.alloc(512);
  const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, '0')}\0`;
  of.name.copy(block, 0);
  block.write(octal(of.mode, 8), 100, 'latin1');
  block.write(octal(0, 8) + octal(0, 8) + octal(of.size, 12) + octal(0, 12), 108, 'latin1');
  block.write(of.type, 156, 'latin1');
  of.target.copy(block, 157);
  block.write('ustar\u000000', 257, 'latin1');
  patch(block);
  const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}
