// Builds all images, loads them into the node of a cluster that is up, and writes the platform file that names them:
// node test/cluster/images.js [--no-load]. Prints references and digests as JSON.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { describe } from './failure.js';
import { loadImages } from './images/load.js';
import { platformFile, platformOf } from './images/platform.js';
import { productImages } from './images/product.js';
import { readInfo } from './info.js';
import { inWork } from './settings.js';

const info = readInfo();
try {
  const { images, adapterDigests } = await productImages(inWork('product-images'));
  if (info && !process.argv.includes('--no-load')) await loadImages(Object.values(images));
  mkdirSync(path.dirname(platformFile), { recursive: true });
  writeFileSync(
    platformFile,
    platformOf({ controller: images.controller.ref, runtime: images['acp-codex'].ref, adapterDigests }),
  );
  const all = { ...info?.images, ...images };
  const printed = Object.fromEntries(Object.entries(all).map(([name, { ref, digest }]) => [name, { ref, digest }]));
  console.log(JSON.stringify({ images: printed, adapterDigests, platform: platformFile }, null, 2));
} catch (error) {
  console.error(describe(error));
  process.exitCode = 1;
}
