/** Kinds of Kubernetes' own that live outside namespaces; a chart's namespace must not reach them. */
const kinds = new Set([
  'APIService',
  'CSIDriver',
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'IngressClass',
  'MutatingWebhookConfiguration',
  'Namespace',
  'Node',
  'PersistentVolume',
  'PriorityClass',
  'RuntimeClass',
  'StorageClass',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'ValidatingWebhookConfiguration',
]);

export function isClusterScoped(kind: string): boolean {
  return kinds.has(kind);
}
