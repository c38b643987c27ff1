/** Looks for credentials inside running Pods: in the environment and the arguments of every process, and in every file. */
import { kubectl } from './cluster.js';
import { formsOf } from './leaks.js';

/**
 * Prints, for each credential, where one of its forms stands. Runs inside the Pod, so that no file leaves it. What is mounted on purpose is left out.
 */
const program = `
const fs = require('node:fs');
const { credentials, folders, skipped } = JSON.parse(fs.readFileSync(0, 'utf8'));
const found = [];
const look = (where, bytes) => {
  for (const [name, forms] of credentials) if (forms.some((form) => bytes.includes(form))) found.push(name + ' in ' + where);
};
const attempt = (read) => { try { return read(); } catch { return undefined; } };
let looked = 0;
function file(path, size) {
  const handle = attempt(() => fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK));
  if (handle === undefined) return;
  const part = Buffer.alloc(1 << 20);
  for (let at = 0; at < Math.max(size, 1); at += part.length - 4096) {
    const length = attempt(() => fs.readSync(handle, part, 0, part.length, at)) ?? 0;
    look(path, part.subarray(0, length));
    if (length < part.length) break;
  }
  looked += 1;
  fs.closeSync(handle);
}
function walk(folder) {
  for (const entry of attempt(() => fs.readdirSync(folder, { withFileTypes: true })) ?? []) {
    const path = folder === '/' ? '/' + entry.name : folder + '/' + entry.name;
    if (skipped.some((one) => path === one || path.startsWith(one + '/'))) continue;
    look('the name ' + path, Buffer.from(path));
    if (entry.isDirectory()) walk(path);
    else if (entry.isFile()) file(path, attempt(() => fs.lstatSync(path).size) ?? 0);
    else if (entry.isSymbolicLink()) look('the target of ' + path, Buffer.from(attempt(() => fs.readlinkSync(path)) ?? ''));
  }
}
for (const pid of fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name) && name !== String(process.pid)))
  for (const what of ['environ', 'cmdline']) look('/proc/' + pid + '/' + what, attempt(() => fs.readFileSync('/proc/' + pid + '/' + what)) ?? Buffer.alloc(0));
for (const folder of folders) walk(folder);
console.log(JSON.stringify({ found: [...new Set(found)], looked }));
`;

export interface Search {
  readonly namespace: string;
  readonly pod: string;
  readonly container?: string;
  /** Roots of the search. @default everything */
  readonly folders?: readonly string[];
  /** What holds a credential on purpose, or is no file system of the Pod. */
  readonly skipped?: readonly string[];
}

export interface Searched {
  /** Which credential stands where. */
  readonly found: readonly string[];
  /** How many files were read. */
  readonly looked: number;
}

/** Folders of the kernel, and those of the image that never change. */
const ofImage = ['/proc', '/sys', '/dev', '/usr', '/lib', '/lib64', '/bin', '/sbin', '/opt'];

export async function searchPod(
  { namespace, pod, container, folders = ['/'], skipped = [] }: Search,
  credentials: ReadonlyMap<string, string>,
): Promise<Searched> {
  const order = {
    credentials: [...credentials].map(([name, secret]) => [name, formsOf(secret)]),
    folders,
    skipped: [...ofImage, ...skipped],
  };
  const where = ['-n', namespace, pod, ...(container === undefined ? [] : ['-c', container])];
  const printed = await kubectl(['exec', '-i', ...where, '--', '/usr/local/bin/node', '-e', program], JSON.stringify(order));
  return JSON.parse(printed) as Searched;
}
