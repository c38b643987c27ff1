import type { KubeClient } from './client.js';

/**
 * The same client for one who leads: a write goes out only while `holds` says so. A process that stood still for longer than its Lease asks
 * before any of its timers runs. Reads are for everybody.
 */
export function whileLeading(client: KubeClient, holds: () => boolean): KubeClient {
  return {
    ...client,
    request: (wanted) => client.request(wanted.method === 'GET' ? wanted : { ...wanted, onlyIf: holds }),
  };
}
