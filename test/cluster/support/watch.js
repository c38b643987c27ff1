// What happens to the objects of a collection, the moment it happens.

import { spawn } from 'node:child_process';

/** @typedef {import('../../../src/api/index.js').Manifest} Manifest */
/** @typedef {{ readonly type: 'ADDED' | 'MODIFIED' | 'DELETED', readonly object: Manifest, readonly at: number }} Change `at`: milliseconds since the epoch, by our clock */
/** @typedef {{ readonly stop: () => void }} Watch */

/**
 * Tells every change of a collection, beginning with what is there. A watch that ends begins again, with what is there.
 *
 * @param {{ readonly kubectl: string, readonly kubeconfig: string }} cluster
 * @param {string} path of the collection, as in `/api/v1/namespaces/default/pods`
 * @param {(change: Change) => void} onChange
 * @returns {Watch}
 */
export function watch({ kubectl, kubeconfig }, path, onChange) {
  let stopped = false;
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child;
  const end = () => child?.kill();
  process.once('exit', end);

  function begin() {
    // kubectl has the credentials of any cluster; this way it passes on the server's answer as it comes.
    const started = spawn(kubectl, ['--kubeconfig', kubeconfig, 'get', '--raw', `${path}?watch=true`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    child = started;
    let partial = '';
    started.stdout.setEncoding('utf8').on('data', (/** @type {string} */ chunk) => {
      const at = Date.now();
      const lines = (partial + chunk).split('\n');
      partial = lines.pop() ?? '';
      if (stopped) return;
      for (const line of lines.filter((one) => one !== '')) {
        const { type, object } = /** @type {Change} */ (JSON.parse(line));
        if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') onChange({ type, object, at });
      }
    });
    started.once('error', () => undefined);
    started.once('close', () => {
      if (!stopped) setTimeout(() => stopped || begin(), 500).unref();
    });
  }

  begin();
  return {
    stop: () => {
      stopped = true;
      process.off('exit', end);
      end();
    },
  };
}
