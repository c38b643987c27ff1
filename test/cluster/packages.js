// The Debian packages of the cluster.

import { existsSync, mkdirSync } from 'node:fs';

import { Failure } from './failure.js';
import { attempt } from './run.js';
import { inWork, logFile } from './settings.js';

const needed = [
  ...['containerd', 'runc', 'containernetworking-plugins'],
  ...['iproute2', 'iptables', 'nftables', 'ipset', 'conntrack'],
  ...['busybox-static', 'openssl', 'ca-certificates'],
  ...['tini', 'util-linux'],
];

/** @returns {Promise<string[]>} packages that are not installed */
export async function missingPackages() {
  const { stdout } = await attempt('dpkg-query', ['-W', '-f', '${Package} ${db:Status-Status}\\n', ...needed]);
  const installed = new Set(
    stdout
      .split('\n')
      .filter((line) => line.endsWith(' installed'))
      .map((line) => line.split(' ')[0]),
  );
  return needed.filter((name) => !installed.has(name));
}

/** @param {readonly string[]} names */
export async function installPackages(names) {
  if (!existsSync('/usr/bin/apt-get')) {
    throw new Failure(
      `This machine has no apt-get. Install what the Debian packages ${names.join(', ')} hold, or use Debian 12.`,
    );
  }
  mkdirSync(inWork('log'), { recursive: true });
  const log = logFile('packages');
  const options = { log, env: { DEBIAN_FRONTEND: 'noninteractive' } };
  const patience = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Acquire::Retries=3'];
  const install = () => attempt('apt-get', ['install', '-y', '--no-install-recommends', ...patience, ...names], options);
  // The lists may be absent or too old to know a package; asking first costs less than always fetching them.
  if ((await install()).status === 0) return;
  await attempt('apt-get', ['update', ...patience], options);
  if ((await install()).status !== 0) throw new Failure(`Installing ${names.join(', ')} failed.`, { log });
}
