// The objects that the cluster itself consists of: rights of the components, and DNS.

import { dnsServiceIp } from './settings.js';

/** @typedef {{ apiVersion: string, kind: string, metadata: { name: string } } & Record<string, unknown>} KubeObject */

const rbac = 'rbac.authorization.k8s.io';

/**
 * @param {string} name
 * @param {string} role
 * @param {object} subject
 * @returns {KubeObject}
 */
const binding = (name, role, subject) => ({
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
  subjects: [subject],
});

/** @param {string} name */
const user = (name) => ({ kind: 'User', apiGroup: rbac, name });

/**
 * @param {string} name
 * @param {Readonly<Record<string, readonly string[]>>} resources resources by API group
 * @returns {KubeObject}
 */
const reader = (name, resources) => ({
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRole',
  metadata: { name },
  rules: Object.entries(resources).map(([group, names]) => ({
    apiGroups: [group],
    resources: names,
    verbs: ['get', 'list', 'watch'],
  })),
});

/** What the components need beyond the roles that the API server makes itself. */
export const componentRights = [
  binding('orka:kubelet-client', 'system:kubelet-api-admin', user('kube-apiserver-kubelet-client')),
  reader('orka:kube-router', {
    '': ['namespaces', 'pods', 'services', 'nodes', 'endpoints'],
    'networking.k8s.io': ['networkpolicies'],
    'discovery.k8s.io': ['endpointslices'],
  }),
  binding('orka:kube-router', 'orka:kube-router', user('orka:kube-router')),
];

// Names outside the cluster do not exist for its pods: a test must not depend on, or talk to, somebody else's DNS.
const corefile = `cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {
    errors
    health :8080
    ready :8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        ttl 5
    }
    loop
    loadbalance
}
.:53 {
    errors
    template ANY ANY {
        rcode NXDOMAIN
    }
}
`;

const dnsLabels = { 'k8s-app': 'kube-dns' };
const inSystem = (/** @type {string} */ name) => ({ name, namespace: 'kube-system', labels: dnsLabels });

/** @param {string} image @returns {object} */
const dnsPod = (image) => ({
  serviceAccountName: 'coredns',
  dnsPolicy: 'Default',
  priorityClassName: 'system-cluster-critical',
  // One replica: nobody else answers while a deleted pod shuts down.
  terminationGracePeriodSeconds: 1,
  containers: [
    {
      name: 'coredns',
      image,
      args: ['-conf', '/etc/coredns/Corefile'],
      ports: [
        { name: 'dns', containerPort: 53, protocol: 'UDP' },
        { name: 'dns-tcp', containerPort: 53, protocol: 'TCP' },
      ],
      readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
      livenessProbe: { httpGet: { path: '/health', port: 8080 }, initialDelaySeconds: 30 },
      securityContext: {
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
        readOnlyRootFilesystem: true,
      },
      volumeMounts: [{ name: 'config', mountPath: '/etc/coredns', readOnly: true }],
    },
  ],
  volumes: [{ name: 'config', configMap: { name: 'coredns' } }],
});

/**
 * @param {string} image
 * @returns {readonly KubeObject[]}
 */
export const dns = (image) => [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: inSystem('coredns') },
  reader('orka:coredns', { '': ['endpoints', 'services', 'pods', 'namespaces'], 'discovery.k8s.io': ['endpointslices'] }),
  binding('orka:coredns', 'orka:coredns', { kind: 'ServiceAccount', name: 'coredns', namespace: 'kube-system' }),
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: inSystem('coredns'), data: { Corefile: corefile } },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: inSystem('coredns'),
    spec: {
      replicas: 1,
      selector: { matchLabels: dnsLabels },
      template: { metadata: { labels: dnsLabels }, spec: dnsPod(image) },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: inSystem('kube-dns'),
    spec: {
      clusterIP: dnsServiceIp,
      selector: dnsLabels,
      ports: [
        { name: 'dns', port: 53, protocol: 'UDP', targetPort: 'dns' },
        { name: 'dns-tcp', port: 53, protocol: 'TCP', targetPort: 'dns-tcp' },
      ],
    },
  },
];
