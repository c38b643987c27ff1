// The images that the cluster itself and its tests need.

import { realpathSync } from 'node:fs';

import { run } from '../run.js';
import { buildImage } from './oci.js';

/** @typedef {import('./oci.js').Image} Image */
/** @typedef {import('./oci.js').ImageFile} ImageFile */

/** Users and a writable /tmp, so that programs that ask for either behave. @type {readonly ImageFile[]} */
export const base = [
  { path: '/etc/passwd', content: 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' },
  { path: '/etc/group', content: 'root:x:0:\nnogroup:x:65534:\n' },
  { path: '/tmp', folder: true, mode: 0o1777 },
];

const busybox = '/bin/busybox';

/** Debian's static busybox with a link for each of its commands. @returns {Promise<readonly ImageFile[]>} */
export async function shell() {
  const commands = (await run(busybox, ['--list'])).split('\n').filter((name) => name && name !== 'busybox');
  return [
    { path: '/bin/busybox', source: realpathSync(busybox) },
    ...commands.map((name) => ({ path: `/bin/${name}`, link: 'busybox' })),
  ];
}

/**
 * @param {(program: string) => string} program
 * @param {string} folder where the archives are put
 * @returns {Promise<Record<'pause' | 'coredns' | 'test', Image>>}
 */
export async function clusterImages(program, folder) {
  return {
    pause: buildImage({
      name: 'pause',
      folder,
      files: [{ path: '/pause', source: program('pause') }],
      config: { Entrypoint: ['/pause'], User: '65534:65534' },
    }),
    coredns: buildImage({
      name: 'coredns',
      folder,
      files: [{ path: '/coredns', source: program('coredns') }],
      config: { Entrypoint: ['/coredns'] },
    }),
    test: buildImage({
      name: 'test',
      folder,
      files: [...base, ...(await shell())],
      config: { Cmd: ['sh'], Env: ['PATH=/bin'] },
    }),
  };
}
