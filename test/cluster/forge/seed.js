// Writes repositories as bare ones, object by object, so that a tree may hold what git itself would refuse to add. Runs in the Pod of the forge:
// node seed.js <folder> reads a list of repositories from standard input and prints the OID of each ref.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { deflateSync } from 'node:zlib';

/**
 * @typedef {object} SeedEntry a file, unless it says what else it is
 * @property {string} path its parts are names of trees, whatever they are
 * @property {string} [content]
 * @property {string} [mode] as in `100755`
 * @property {string} [link] target of a symbolic link
 * @property {string} [submodule] OID of its commit
 * @property {number} [bytes] content of this size that differs by path and seed
 * @property {string} [seed]
 */

/**
 * @typedef {object} SeedRepository
 * @property {string} name as in `acme/app`
 * @property {string} [head] branch that HEAD names; `main` by default
 * @property {Readonly<Record<string, readonly SeedEntry[]>>} refs trees by full name of the ref
 * @property {readonly string[]} [annotated] tags that get a tag object
 * @property {{ readonly files: number, readonly bytes: number }} [filled] so many files more in every tree, of so many bytes together; their
 *   content differs by the name of the repository
 */

/** A repository whose objects are written directly. */
class ObjectStore {
  /** @type {string} */
  #folder;
  /** @type {Set<string>} */
  #written = new Set();

  /** @param {string} folder */
  constructor(folder) {
    this.#folder = folder;
  }

  /**
   * @param {'blob' | 'tree' | 'commit' | 'tag'} type
   * @param {Buffer} content
   * @returns {string} its OID
   */
  write(type, content) {
    const object = Buffer.concat([Buffer.from(`${type} ${content.length}\0`), content]);
    const oid = createHash('sha1').update(object).digest('hex');
    if (this.#written.has(oid)) return oid;
    this.#written.add(oid);
    const file = path.join(this.#folder, 'objects', oid.slice(0, 2), oid.slice(2));
    mkdirSync(path.dirname(file), { recursive: true });
    if (!existsSync(file)) writeFileSync(file, deflateSync(object, { level: 1 }));
    return oid;
  }
}

/**
 * @typedef {{ readonly mode: string, readonly oid: string }} Leaf
 * @typedef {Map<string, unknown>} Tree of leaves and trees
 */

/** More than the window of deflate, which would find a shorter one again. */
const mostLines = 1024;

/** Lines of hexadecimal digits: they compress about as well as source does, and differ by seed. @param {string} seed @param {number} bytes */
function filling(seed, bytes) {
  const lines = [];
  for (let part = seed; lines.length < Math.min(bytes / 65, mostLines);) {
    part = createHash('sha256').update(part).digest('hex');
    lines.push(part);
  }
  return Buffer.alloc(bytes, lines.length === 0 ? '' : `${lines.join('\n')}\n`);
}

/** @param {ObjectStore} store @param {SeedEntry} entry @returns {Leaf} */
function leafOf(store, { path: at, content = '', mode = '100644', link, submodule, bytes, seed = '' }) {
  if (submodule !== undefined) return { mode: '160000', oid: submodule };
  if (link !== undefined) return { mode: '120000', oid: store.write('blob', Buffer.from(link)) };
  return { mode, oid: store.write('blob', bytes === undefined ? Buffer.from(content) : filling(`${seed}${at}`, bytes)) };
}

/** @param {ObjectStore} store @param {ReadonlyMap<string, unknown>} tree @returns {string} */
function writeTree(store, tree) {
  const entries = [...tree].map(([name, node]) => {
    const folder = node instanceof Map;
    const { mode, oid } = folder ? { mode: '40000', oid: writeTree(store, node) } : /** @type {Leaf} */ (node);
    const entry = Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(oid, 'hex')]);
    return { entry, key: Buffer.from(folder ? `${name}/` : name) };
  });
  entries.sort((one, other) => Buffer.compare(one.key, other.key));
  return store.write('tree', Buffer.concat(entries.map(({ entry }) => entry)));
}

/** @param {ObjectStore} store @param {readonly SeedEntry[]} entries @returns {string} OID of the tree */
function treeOf(store, entries) {
  /** @type {Tree} */
  const root = new Map();
  for (const entry of entries) {
    const names = entry.path.split('/');
    const name = names.pop() ?? '';
    let tree = root;
    for (const one of names) {
      const below = tree.get(one);
      const next = /** @type {Tree} */ (below instanceof Map ? below : new Map());
      tree.set(one, next);
      tree = next;
    }
    tree.set(name, leafOf(store, entry));
  }
  return writeTree(store, root);
}

/** @param {NonNullable<SeedRepository['filled']>} filled @param {string} seed @returns {readonly SeedEntry[]} a hundred files in each folder */
function fillOf({ files, bytes }, seed) {
  const size = Math.floor(bytes / files);
  return Array.from({ length: files }, (_, index) => ({
    path: `src/part-${Math.floor(index / 100)}/file-${index}.txt`,
    bytes: size,
    seed,
  }));
}

const identity = 'Fixture <fixture@example.test> 1700000000 +0000';

/**
 * @param {string} root
 * @param {SeedRepository} repository
 * @returns {Record<string, string>} OIDs of the commits by ref
 */
function writeRepository(root, { name, head = 'main', refs, annotated = [], filled }) {
  const folder = path.join(root, `${name}.git`);
  rmSync(folder, { recursive: true, force: true });
  for (const part of ['objects', 'refs']) mkdirSync(path.join(folder, part), { recursive: true });
  const settings = '[core]\n\trepositoryformatversion = 0\n\tbare = true\n[http]\n\treceivepack = true\n';
  // A forge serves any commit that it has.
  writeFileSync(path.join(folder, 'config'), `${settings}[uploadpack]\n\tallowAnySHA1InWant = true\n`);
  writeFileSync(path.join(folder, 'HEAD'), `ref: refs/heads/${head}\n`);
  const store = new ObjectStore(folder);
  /** @type {Record<string, string>} */
  const commits = {};
  for (const [ref, entries] of Object.entries(refs)) {
    const tree = treeOf(store, [...entries, ...(filled ? fillOf(filled, name) : [])]);
    const text = `tree ${tree}\nauthor ${identity}\ncommitter ${identity}\n\nbaseline of ${ref}\n`;
    const commit = store.write('commit', Buffer.from(text));
    commits[ref] = commit;
    const tag = `object ${commit}\ntype commit\ntag ${path.basename(ref)}\ntagger ${identity}\n\na tag\n`;
    const target = annotated.includes(ref) ? store.write('tag', Buffer.from(tag)) : commit;
    mkdirSync(path.dirname(path.join(folder, ref)), { recursive: true });
    writeFileSync(path.join(folder, ref), `${target}\n`);
  }
  // A forge serves packs.
  if (filled) execFileSync('git', ['-C', folder, 'repack', '-a', '-d', '-q', '--window=0'], { stdio: 'inherit' });
  return commits;
}

/** @returns {Promise<string>} */
async function input() {
  const parts = [];
  for await (const part of process.stdin) parts.push(part);
  return Buffer.concat(parts).toString();
}

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: node seed.js <folder>');
const repositories = /** @type {readonly SeedRepository[]} */ (JSON.parse(await input()));
const written = Object.fromEntries(repositories.map((one) => [one.name, writeRepository(folder, one)]));
process.stdout.write(`${JSON.stringify(written)}\n`);
