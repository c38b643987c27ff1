// What a running cluster tells its tests.

import { existsSync, readFileSync, rmSync } from 'node:fs';

import { put } from './files.js';
import { inWork } from './settings.js';

/**
 * @typedef {object} ClusterInfo
 * @property {string} kubeconfig
 * @property {string} kubectl path of a kubectl of the cluster's version
 * @property {string} node name of the only node
 * @property {string} nodeIp also the API server's address
 * @property {string} apiServer URL
 * @property {string} containerdSocket for `ctr -a <socket> -n k8s.io`
 * @property {string} auditLog JSON lines, metadata level
 * @property {string} logs folder with one log per component
 * @property {Record<string, import('./images/oci.js').Image>} images by name; `ref` is what a pod names
 * @property {Record<string, string>} versions
 */

const file = inWork('cluster.json');

/** @param {ClusterInfo} info */
export function writeInfo(info) {
  put(file, `${JSON.stringify(info, null, 2)}\n`);
}

/** @returns {ClusterInfo | undefined} undefined when no cluster was brought up here */
export function readInfo() {
  try {
    return /** @type {ClusterInfo} */ (JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}

const productFile = inWork('product-images', 'images.json');

/** @typedef {Record<string, import('./images/oci.js').Image>} Images by name */

/** @param {Images} images */
export function writeProductImages(images) {
  put(productFile, `${JSON.stringify(images, null, 2)}\n`);
}

/** Called before archives are replaced: the record must not outlive what it describes. */
export function forgetProductImages() {
  rmSync(productFile, { force: true });
}

/** @returns {Images} empty when they were not built, or not all of them */
export function readProductImages() {
  try {
    const images = /** @type {Images} */ (JSON.parse(readFileSync(productFile, 'utf8')));
    return Object.values(images).every(({ tar }) => existsSync(tar)) ? images : {};
  } catch {
    return {};
  }
}
