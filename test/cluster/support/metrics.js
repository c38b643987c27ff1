// What the controller counts, and what its process holds.

/**
 * Asks the controller's Pod, of which there is one.
 *
 * @param {import('./model.js').Kubectl} kubectl
 * @param {import('./installation.js').Installation} installation
 * @returns {Promise<(name: string, label?: string) => number>} the sum of all series of a name, or of those with a label, as in `code="409"`
 */
export async function metricsOf(kubectl, installation) {
  const { controller } = installation.namespaces;
  const pod = await podOf(kubectl, installation);
  const text = await kubectl(['get', '--raw', `/api/v1/namespaces/${controller}/pods/${pod}:8081/proxy/metrics`]);
  return (name, label = '') =>
    [...text.matchAll(new RegExp(`^${name}(\\{.*\\})? (\\S+)$`, 'gm'))]
      .filter(([, labels = '']) => labels.includes(label))
      .reduce((total, [, , value]) => total + Number(value), 0);
}

/** @param {import('./model.js').Kubectl} kubectl @param {import('./installation.js').Installation} installation */
async function podOf(kubectl, { namespaces, deployment }) {
  const where = ['-n', namespaces.controller, '-l', `app.kubernetes.io/name=${deployment.metadata.name}`];
  return kubectl(['get', 'pods', ...where, '-o', 'jsonpath={.items[0].metadata.name}']);
}

/**
 * @param {import('./model.js').Kubectl} kubectl
 * @param {import('./installation.js').Installation} installation
 * @returns {Promise<number>} sockets that its process has open
 */
export async function socketsOf(kubectl, installation) {
  const pod = await podOf(kubectl, installation);
  const script =
    "const fs=require('fs');console.log(fs.readdirSync('/proc/1/fd').filter((fd)=>{try{return fs.readlinkSync('/proc/1/fd/'+fd).startsWith('socket:')}catch{return false}}).length)";
  const exec = ['exec', '-n', installation.namespaces.controller, pod, '--', '/usr/local/bin/node', '-e', script];
  return Number(await kubectl(exec));
}
