/**
 * Labels of Pods that are known to run with the network of their node: a NetworkPolicy sees the node's address, and no selector finds them.
 * Sources: the manifests of Kubernetes (cluster/addons, kubeadm) and of the network plugins.
 */
const hostNetworkLabels: Readonly<Record<string, readonly string[]>> = {
  'k8s-app': [
    'node-local-dns',
    'nodelocaldns',
    'kube-proxy',
    'calico-node',
    'canal',
    'cilium',
    'flannel',
    'kube-router',
    'aws-node',
    'azure-cns',
    'gke-metadata-server',
  ],
  component: ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'etcd'],
};

/** The first label that only Pods of a node's network have: `k8s-app: node-local-dns`. `undefined` = none is known. */
export function hostNetworkLabel(labels: Readonly<Record<string, string>>): string | undefined {
  const known = (key: string) => (Object.hasOwn(hostNetworkLabels, key) ? hostNetworkLabels[key] : undefined) ?? [];
  const found = Object.entries(labels).find(([key, value]) => known(key).includes(value));
  return found && `${found[0]}: ${found[1]}`;
}
