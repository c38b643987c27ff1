// What `npm run demo -- --keep` leaves, and how to remove it.

import path from 'node:path';

import { modelNames } from './support/model.js';

/**
 * The text for a person: the files that the installation came from, the next command, and the commands that remove everything.
 *
 * @param {{ readonly kubeconfig: string, readonly kubectl: string, readonly example: string }} cluster `kubectl`: the program; `example`: a file with a Task
 * @param {Pick<import('./support/installation.js').Installation, 'dist' | 'namespaces' | 'poolClass'>} installation
 * @returns {string}
 */
export function keptText({ kubeconfig, kubectl, example }, { dist, namespaces, poolClass }) {
  const folder = path.dirname(dist);
  const { namespace } = poolClass.providerProxy;
  const apply = (/** @type {string} */ file) => path.join(dist, 'apply', file);
  return [
    'The controller and the model stay. Their settings:',
    `  ${path.join(folder, 'platform.yaml')}   rendered into ${dist}`,
    'A Task of your own:',
    `  export KUBECONFIG=${kubeconfig}`,
    `  ${kubectl} apply -f ${example}`,
    'To change a setting, edit that platform.yaml, then:',
    `  node lib/bin/orka-workspaces.js synth --platform ${path.join(folder, 'platform.yaml')} --out ${dist}`,
    `  ${kubectl} apply --server-side -k ${dist}`,
    'To remove everything, in this order:',
    `  ${kubectl} delete tasks,runtimepools --all -n ${namespaces.tasks}`,
    `  ${kubectl} delete --ignore-not-found -f ${apply('0002-classes.k8s.yaml')} -f ${apply('0001-install.k8s.yaml')}`,
    `  ${kubectl} delete -f ${apply('0000-crds.k8s.yaml')}`,
    `  ${kubectl} delete --ignore-not-found -n ${namespace} ${modelNames(poolClass).join(' ')}`,
    `  ${kubectl} delete namespace ${namespaces.tasks} ${namespace}`,
    `  rm -r ${folder}`,
    'Or take the whole cluster away: npm run cluster:down',
  ].join('\n');
}
