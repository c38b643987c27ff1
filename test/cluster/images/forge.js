// The image of the forge that tests clone from: Node, and git with its server side and its HTTPS client.

import { realpathSync } from 'node:fs';
import path from 'node:path';

import { run } from '../run.js';
import { base, shell } from './cluster.js';
import { buildImage } from './oci.js';
import { once, program } from './product.js';

/** @typedef {import('./oci.js').Image} Image */
/** @typedef {import('./oci.js').ImageFile} ImageFile */

/** Parts of git that the one program does not hold. */
const parts = ['git-http-backend', 'git-remote-http'];

/** Names under which git calls itself or a part of it. */
const links = { git: '/usr/bin/git', 'git-upload-pack': 'git', 'git-receive-pack': 'git', 'git-remote-https': 'git-remote-http' };

/** @returns {Promise<readonly ImageFile[]>} */
async function git() {
  const folder = (await run('git', ['--exec-path'])).trim();
  const programs = [
    program(realpathSync('/usr/bin/git'), '/usr/bin/git'),
    ...parts.map((name) => program(path.join(folder, name), path.join(folder, name))),
  ];
  return [
    ...(await Promise.all(programs)).flat(),
    ...Object.entries(links).map(([name, link]) => ({ path: path.join(folder, name), link })),
    { path: '/usr/share/git-core/templates', folder: true },
  ];
}

/**
 * @param {string} folder where the archive is put
 * @returns {Promise<Image>}
 */
export async function forgeImage(folder) {
  return buildImage({
    name: 'forge',
    folder,
    files: once([...base, ...(await shell()), ...(await program(process.execPath, '/usr/local/bin/node')), ...(await git())]),
    config: { Cmd: ['/usr/local/bin/node'], Env: ['PATH=/usr/local/bin:/usr/bin:/bin'], User: '65532:65532' },
  });
}
