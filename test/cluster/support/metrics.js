// What the controller counts.

/**
 * Asks the controller's Pod, of which there is one.
 *
 * @param {import('./model.js').Kubectl} kubectl
 * @param {import('./installation.js').Installation} installation
 * @returns {Promise<(name: string, label?: string) => number>} the sum of all series of a name, or of those with a label, as in `code="409"`
 */
export async function metricsOf(kubectl, { namespaces, deployment }) {
  const where = ['-n', namespaces.controller, '-l', `app.kubernetes.io/name=${deployment.metadata.name}`];
  const pod = await kubectl(['get', 'pods', ...where, '-o', 'jsonpath={.items[0].metadata.name}']);
  const text = await kubectl(['get', '--raw', `/api/v1/namespaces/${namespaces.controller}/pods/${pod}:8081/proxy/metrics`]);
  return (name, label = '') =>
    [...text.matchAll(new RegExp(`^${name}(\\{.*\\})? (\\S+)$`, 'gm'))]
      .filter(([, labels = '']) => labels.includes(label))
      .reduce((total, [, , value]) => total + Number(value), 0);
}
