// Images into the node's containerd.

import { containerdSocket } from '../components.js';
import { run } from '../run.js';

const ctr = (/** @type {readonly string[]} */ args) => run('ctr', ['-a', containerdSocket, '-n', 'k8s.io', ...args]);

/**
 * Imports the images that the node does not have yet, each under its tag and its digest.
 *
 * @param {readonly import('./oci.js').Image[]} images
 */
export async function loadImages(images) {
  const held = (await ctr(['images', 'ls'])).split('\n').map((line) => line.split(/\s+/));
  const has = (/** @type {string} */ name, /** @type {string} */ digest) =>
    held.some((row) => row[0] === name && row[2] === digest);
  for (const { tar, tag, ref, digest } of images) {
    if (has(tag, digest) && has(ref, digest)) continue;
    await ctr(['images', 'import', tar]);
    await ctr(['images', 'tag', '--force', tag, ref]);
  }
}
