/** What listens where a supervisor should, keeps whatever is sent to it, and answers nothing. */
import type { JsonObject } from '../../../src/lib/json.js';
import { base, shell } from '../images/cluster.js';
import { loadImages } from '../images/load.js';
import { buildImage } from '../images/oci.js';
import { inWork } from '../settings.js';
import { cluster } from './cluster.js';

/** Prints every byte that comes in on the port of a supervisor. Needs busybox alone, which all images of the tests have. */
export const recording: readonly string[] = [
  '/bin/busybox',
  'sh',
  '-c',
  "trap exit TERM; /bin/busybox nc -ll -p 8080 -e /bin/busybox sh -c '/bin/busybox cat >&2' & wait",
];

/** A container that records. */
export const recordingContainer: JsonObject = {
  name: 'recorder',
  image: cluster.node?.images['test']?.ref ?? 'busybox:stable',
  command: recording,
  securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
};

/** An image that records, for whoever can choose the image alone. Without access to the node: one that ends at once. */
export async function recordingImage(): Promise<string> {
  if (!cluster.node) return 'busybox:stable';
  const image = buildImage({
    name: 'recorder',
    folder: inWork('test-images'),
    files: [...base, ...(await shell())],
    config: { Entrypoint: recording, Env: ['PATH=/bin'] },
  });
  await loadImages([image]);
  return image.ref;
}
