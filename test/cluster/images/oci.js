// OCI images from listed files, without a registry or a builder: the same files and configuration give the same digest.

import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readdirSync, readlinkSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import path from 'node:path';

import { archive } from './tar.js';

/** @typedef {import('./tar.js').Entry} Entry */
/**
 * @typedef {object} ImageFile
 * @property {string} path absolute path in the image
 * @property {string} [source] regular file to copy
 * @property {string | Buffer} [content]
 * @property {string} [link] target of a symbolic link
 * @property {boolean} [folder]
 * @property {number} [mode] permission bits; default 0755 for folders and executable sources, 0777 for links, 0644 otherwise
 * @property {number} [uid] default 0
 * @property {number} [gid] default 0
 */

/**
 * @typedef {object} ImageConfig the part of the OCI image configuration that images here use
 * @property {readonly string[]} [Entrypoint]
 * @property {readonly string[]} [Cmd]
 * @property {readonly string[]} [Env]
 * @property {string} [User]
 * @property {string} [WorkingDir]
 * @property {Readonly<Record<string, string>>} [Labels]
 */

/**
 * @typedef {object} Image
 * @property {string} name
 * @property {string} ref `localhost/<name>@<digest>`: what a pod names
 * @property {string} tag `localhost/<name>:1`
 * @property {string} digest of the manifest, `sha256:<hex>`
 * @property {string} tar OCI layout as one archive, ready for an import
 */

const architecture = { x64: 'amd64', arm64: 'arm64' }[/** @type {string} */ (process.arch)] ?? process.arch;

/**
 * Lists a folder's content as image files. Nothing but files, folders and symbolic links is allowed.
 *
 * @param {string} source
 * @param {string} target absolute path of the folder in the image
 * @param {(relative: string) => boolean} [wanted] default: all; asked for folders too, which are left out with their content
 * @returns {ImageFile[]}
 */
export function filesOf(source, target, wanted = () => true) {
  /** @type {ImageFile[]} */
  const found = [];
  const visit = (/** @type {string} */ relative) => {
    for (const entry of readdirSync(path.join(source, relative), { withFileTypes: true })) {
      const name = path.posix.join(relative, entry.name);
      if (!wanted(name)) continue;
      const [from, to] = [path.join(source, name), path.posix.join(target, name)];
      if (entry.isSymbolicLink()) found.push({ path: to, link: readlinkSync(from) });
      else if (entry.isFile()) found.push({ path: to, source: from });
      else if (entry.isDirectory()) {
        found.push({ path: to, folder: true });
        visit(name);
      } else throw new Error(`${from} is neither a file, a folder nor a symbolic link`);
    }
  };
  visit('');
  return found;
}

/** @param {ImageFile} file @returns {Entry} */
function entryOf(file) {
  const name = path.posix.normalize(file.path).replace(/^\/+|\/+$/g, '');
  const owner = { uid: file.uid ?? 0, gid: file.gid ?? 0 };
  if (file.folder) return { path: `${name}/`, mode: file.mode ?? 0o755, size: 0, ...owner };
  if (file.link !== undefined) return { path: name, mode: file.mode ?? 0o777, link: file.link, size: 0, ...owner };
  if (file.source !== undefined) {
    const { mode, size } = statSync(file.source);
    return { path: name, mode: file.mode ?? (mode & 0o111 ? 0o755 : 0o644), source: file.source, size, ...owner };
  }
  const content = Buffer.from(file.content ?? '');
  return { path: name, mode: file.mode ?? 0o644, content, size: content.length, ...owner };
}

/**
 * Adds the folders above the listed files and refuses two files of one path.
 *
 * @param {readonly ImageFile[]} files
 */
function layerEntries(files) {
  /** @type {Map<string, Entry>} */
  const entries = new Map();
  for (const entry of files.map(entryOf)) {
    if (entries.has(entry.path)) throw new Error(`${entry.path} is listed twice`);
    entries.set(entry.path, entry);
  }
  for (const { path: below } of [...entries.values()]) {
    for (let slash = below.indexOf('/'); slash > 0 && slash < below.length - 1; slash = below.indexOf('/', slash + 1)) {
      const folder = below.slice(0, slash + 1);
      if (!entries.has(folder)) entries.set(folder, { path: folder, mode: 0o755, size: 0 });
    }
  }
  return [...entries.values()];
}

/**
 * Writes an archive and answers its digest and size.
 *
 * @param {string} file
 * @param {readonly Entry[]} entries
 */
function writeArchive(file, entries) {
  const hash = createHash('sha256');
  const descriptor = openSync(file, 'w');
  let size = 0;
  try {
    for (const chunk of archive(entries)) {
      hash.update(chunk);
      for (let at = 0; at < chunk.length;) at += writeSync(descriptor, chunk, at);
      size += chunk.length;
    }
  } finally {
    closeSync(descriptor);
  }
  return { digest: `sha256:${hash.digest('hex')}`, size };
}

/** @param {object} value */
function blob(value) {
  const content = Buffer.from(JSON.stringify(value));
  return { content, size: content.length, digest: `sha256:${createHash('sha256').update(content).digest('hex')}` };
}

/** @param {string} digest */
const blobPath = (digest) => `blobs/${digest.replace(':', '/')}`;

/**
 * Builds an image with one layer.
 *
 * @param {object} input
 * @param {string} input.name last part of the reference
 * @param {readonly ImageFile[]} input.files
 * @param {ImageConfig} [input.config]
 * @param {string} input.folder where the archive is put, as `<name>.tar`
 * @returns {Image}
 */
export function buildImage({ name, files, config = {}, folder }) {
  mkdirSync(folder, { recursive: true });
  const tar = path.join(folder, `${name}.tar`);
  const layerFile = `${tar}.layer`;
  const part = `${tar}.part`;
  try {
    const layer = writeArchive(layerFile, layerEntries(files));
    const configuration = blob({
      created: '1970-01-01T00:00:00Z',
      architecture,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: [layer.digest] },
      history: [{ created: '1970-01-01T00:00:00Z', created_by: 'test/cluster/images' }],
    });
    const manifest = blob({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: configuration.digest, size: configuration.size },
      layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', ...layer }],
    });
    const tag = `localhost/${name}:1`;
    const index = blob({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      manifests: [
        {
          mediaType: 'application/vnd.oci.image.manifest.v1+json',
          digest: manifest.digest,
          size: manifest.size,
          platform: { architecture, os: 'linux' },
          annotations: { 'io.containerd.image.name': tag, 'org.opencontainers.image.ref.name': '1' },
        },
      ],
    });
    const layout = blob({ imageLayoutVersion: '1.0.0' });
    writeArchive(part, [
      { path: 'oci-layout', mode: 0o644, ...layout },
      { path: 'index.json', mode: 0o644, ...index },
      { path: blobPath(manifest.digest), mode: 0o644, ...manifest },
      { path: blobPath(configuration.digest), mode: 0o644, ...configuration },
      { path: blobPath(layer.digest), mode: 0o644, source: layerFile, size: layer.size },
    ]);
    renameSync(part, tar);
    return { name, ref: `localhost/${name}@${manifest.digest}`, tag, digest: manifest.digest, tar };
  } finally {
    rmSync(layerFile, { force: true });
    rmSync(part, { force: true });
  }
}
