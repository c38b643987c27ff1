// kubectl as admin of the cluster.

import { attempt, run } from './run.js';
import { adminKubeconfig } from './settings.js';

const account = ['--kubeconfig', adminKubeconfig];

/**
 * @param {string} kubectl path
 * @returns the few calls that the cluster's own set-up needs
 */
export function client(kubectl) {
  const call = (/** @type {readonly string[]} */ args, input = '') => run(kubectl, [...account, ...args], { input });
  return {
    call,
    /** @param {readonly object[]} objects */
    apply: (objects) =>
      call(
        // The server checks what it is given; checking here first would fetch all of its schemas.
        ['apply', '--server-side', '--force-conflicts', '--validate=false', '--field-manager=orka-cluster', '-f', '-'],
        JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
      ),
    /**
     * The value of a JSONPath, or an empty text when the object is not there (yet).
     *
     * @param {readonly string[]} what
     * @param {string} jsonPath
     */
    value: async (what, jsonPath) => {
      const { status, stdout } = await attempt(kubectl, [...account, 'get', ...what, '-o', `jsonpath=${jsonPath}`], {
        timeout: 10_000,
      });
      return status === 0 ? stdout.trim() : '';
    },
  };
}

/** @typedef {ReturnType<typeof client>} Kubectl */
