// Builds all images, loads them into the node when the machine's cluster is up, and writes the platform file that names them:
// node test/cluster/images.js [--no-load]. Prints references and digests as JSON.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { Failure, describe } from './failure.js';
import { claimFolder } from './folder.js';
import { forgeImage } from './images/forge.js';
import { loadImages } from './images/load.js';
import { platformFile, platformOf } from './images/platform.js';
import { productImages } from './images/product.js';
import { forgetProductImages, readInfo, writeProductImages } from './info.js';
import { otherCluster } from './preflight.js';
import { running } from './processes.js';
import { inWork } from './settings.js';

const usage = `usage: node test/cluster/images.js [--no-load]
  builds the images, loads them into this machine's cluster if it is up, and prints references and digests as JSON
  [--no-load]  build only`;

function parse() {
  try {
    return parseArgs({ options: { 'no-load': { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } }).values;
  } catch (error) {
    throw new Failure(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

/** @param {readonly import('./images/oci.js').Image[]} images */
async function load(images) {
  const other = otherCluster();
  if (other) console.error(`KUBECONFIG names another cluster (${other}): images are not loaded there.`);
  if (running('containerd')) await loadImages(images);
  else console.error('no cluster is up: images are built, not loaded; cluster:up loads them');
}

async function main() {
  const options = parse();
  if (options.help) {
    console.log(usage);
    return;
  }
  claimFolder();
  forgetProductImages();
  const folder = inWork('product-images');
  const { images: product, adapterDigests } = await productImages(folder);
  const images = { ...product, forge: await forgeImage(folder) };
  writeProductImages(images);
  if (!options['no-load']) await load(Object.values(images));
  mkdirSync(path.dirname(platformFile), { recursive: true });
  writeFileSync(
    platformFile,
    platformOf({ controller: images.controller.ref, runtime: images['acp-codex'].ref, adapterDigests }),
  );
  const all = { ...readInfo()?.images, ...images };
  const printed = Object.fromEntries(Object.entries(all).map(([name, { ref, digest }]) => [name, { ref, digest }]));
  console.log(JSON.stringify({ images: printed, adapterDigests, platform: platformFile }, null, 2));
}

try {
  await main();
} catch (error) {
  console.error(describe(error));
  process.exitCode = 1;
}
