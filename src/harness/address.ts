import { isIP } from 'node:net';
import { HarnessError } from './errors.js';
import { supervisorPort } from './protocol.js';

/**
 * The URL of the supervisor at an address of its Pod: `http://10.0.0.1:8080`, `http://[fd00::1]:8080`. Throws {@link HarnessError}
 * `configuration` for what is no address, so that no name is ever resolved, and for an address of one link (`fe80::1%eth0`).
 */
export function supervisorUrl(podAddress: string, port: number = supervisorPort): string {
  const family = podAddress.includes('%') ? 0 : isIP(podAddress);
  if (family === 0) {
    const says = `found Pod address ${JSON.stringify(podAddress)}, allowed: an IPv4 or IPv6 address`;
    throw new HarnessError('configuration', { at: 'harness client', says, evidence: 'zero_bytes_written' });
  }
  return `http://${family === 6 ? `[${podAddress}]` : podAddress}:${port}`;
}
