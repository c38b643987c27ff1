import { Construct } from 'constructs';
import { crd, kinds } from '../../api/index.js';
import type { RuntimePoolClassSpec } from '../../api/index.js';
import { annotationKeys, controllerRole, publisherRole } from '../../domain/labels.js';
import { publisherPorts } from '../../domain/publisher.js';
import { argumentsOf, settingsOf } from '../../domain/settings.js';
import type { InstallationSettings } from '../../domain/settings.js';
import { NetworkPolicy } from '../network-policy.js';
import type { NetworkPolicyEgressRule } from '../network-policy.js';
import { Resource } from '../resource.js';
import { controlPort } from '../supervisor-pod.js';
import { ControllerMetrics, probePort, scrapers } from './controller-metrics.js';
import { dnsRule, managedBy, namespaceNamed, podSecurity } from './parts.js';
import { controllerRules } from './rbac.js';

const controllerName = 'orka-workspaces-controller';
export const apiServiceName = 'orka-api';

/** The four CRDs of this group. The label tells our installation from the reference's. */
export class CustomResourceDefinitions extends Construct {
  constructor(scope: Construct, id: string) {
    super(scope, id);
    for (const kind of kinds) {
      const { metadata, ...rest } = crd(kind);
      new Resource(this, kind.plural, {
        ...rest,
        metadata: { name: metadata.name, annotations: { ...metadata.annotations }, labels: { ...metadata.labels, ...managedBy } },
      });
    }
  }
}

/** Where the Kubernetes API is served; API servers run with the network of their nodes, where no selector finds them. */
export interface ApiServer {
  /** Ranges: `10.0.0.1/32`, `fd00::1/128`; also that of its Service where the network plugin compares before translation. */
  readonly addresses: readonly string[];
  /** TCP. */
  readonly ports: readonly number[];
}

/** Props of {@link ControllerInstall}. */
export interface ControllerInstallProps extends InstallationSettings {
  readonly image: string;
  readonly replicas: number;
  /** Limits the egress of the controller to these addresses and the sandboxes. @default - they are open */
  readonly apiServer?: ApiServer | undefined;
  /** Where DNS is; a controller whose egress is limited needs it to find the publisher. */
  readonly dns?: RuntimePoolClassSpec['network']['dns'] | undefined;
  /** Lets no new Task begin; those that run go on. @default false */
  readonly paused?: boolean | undefined;
  readonly classes: readonly Omit<RuntimePoolClassSpec, 'approvedDigests'>[];
  /** @default no PodMonitor, and no other namespace may scrape */
  readonly metrics?: ControllerMetricsProps | undefined;
}

/** How the metrics of the controller are scraped. */
interface ControllerMetricsProps {
  /** Renders a PodMonitor (monitoring.coreos.com/v1), whose CRD the cluster must have. */
  readonly podMonitor: boolean;
  /** Namespaces whose Pods may connect to the port of metrics and probes, besides that of the controller. */
  readonly scrapeFrom: readonly string[];
}

/** Namespaces, least-privilege RBAC, Service, ingress policy and Deployment of the controller. Namespaces of Tasks belong to users. */
export class ControllerInstall extends Construct {
  constructor(scope: Construct, id: string, props: ControllerInstallProps) {
    super(scope, id);
    const { namespaces } = props;
    const labels = { ...managedBy, 'app.kubernetes.io/name': controllerName };
    const podLabels = { ...labels, ...controllerRole };
    const podSelector = { matchLabels: { 'app.kubernetes.io/name': controllerName } };
    new Resource(this, 'controller-namespace', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespaces.controller, labels: { ...managedBy, ...podSecurity('restricted') } },
    });
    new Resource(this, 'runtime-namespace', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name: namespaces.runtime,
        labels: {
          ...managedBy,
          'app.kubernetes.io/component': 'acp-runtime',
          'orka.ai/runtime-namespace': 'true',
          ...podSecurity('baseline'),
        },
        // Not a flag of the Deployment: a change of that replaces the controller, which ends running prompts.
        ...(props.paused ? { annotations: { [annotationKeys.paused]: 'true' } } : {}),
      },
    });
    const metadata = { name: controllerName, namespace: namespaces.controller, labels };
    new Resource(this, 'service-account', {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata,
      automountServiceAccountToken: false,
    });
    const subjects = [{ kind: 'ServiceAccount', name: controllerName, namespace: namespaces.controller }];
    for (const { kind, namespace, rules } of controllerRules(props)) {
      const at = namespace ?? 'cluster';
      const own = { name: controllerName, labels, ...(namespace === undefined ? {} : { namespace }) };
      new Resource(this, `role-${at}`, { apiVersion: 'rbac.authorization.k8s.io/v1', kind, metadata: own, rules });
      new Resource(this, `binding-${at}`, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: `${kind}Binding`,
        metadata: own,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: controllerName },
        subjects,
      });
    }
    new Resource(this, 'api', {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: apiServiceName, namespace: namespaces.controller, labels },
      spec: {
        type: 'ClusterIP',
        selector: podLabels,
        ports: [{ name: 'api', port: props.apiPort, targetPort: 'api', protocol: 'TCP' }],
      },
    });
    new ControllerMetrics(this, 'metrics', props, { labels, podLabels });
    new NetworkPolicy(this, 'ingress', {
      metadata,
      podSelector,
      ingress: [
        { from: [{ namespaceSelector: namespaceNamed(namespaces.runtime) }], ports: [{ protocol: 'TCP', port: props.apiPort }] },
        { from: scrapers(props), ports: [{ protocol: 'TCP', port: probePort }] },
      ],
    });
    // A policy cannot name an API server in a way that holds on every cluster.
    if (props.apiServer)
      new NetworkPolicy(this, 'egress', {
        metadata: { ...metadata, name: `${controllerName}-egress` },
        podSelector,
        egress: [...egressOf(props.apiServer, namespaces.runtime), ...toPublisher(props)],
      });
    new Resource(this, 'deployment', {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas: props.replicas,
        // The new Pod stands by until the old one gives the Lease back; only its holder works.
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        selector: podSelector,
        template: { metadata: { labels: podLabels, annotations: scraped }, spec: controllerPod(props) },
      },
    });
  }
}

/** What scrapers that look at annotations look for; the others find the port by its name. The path is theirs by default. */
const scraped = { 'prometheus.io/scrape': 'true', 'prometheus.io/port': String(probePort) };

const egressOf = ({ addresses, ports }: ApiServer, runtimeNamespace: string): readonly NetworkPolicyEgressRule[] => [
  { to: addresses.map((cidr) => ({ ipBlock: { cidr } })), ports: ports.map((port) => ({ protocol: 'TCP', port })) },
  { to: [{ namespaceSelector: namespaceNamed(runtimeNamespace) }], ports: [{ protocol: 'TCP', port: controlPort }] },
];

function toPublisher({ publisherNamespace, dns }: ControllerInstallProps): readonly NetworkPolicyEgressRule[] {
  if (publisherNamespace === undefined) return [];
  const to = [{ namespaceSelector: namespaceNamed(publisherNamespace), podSelector: { matchLabels: publisherRole } }];
  return [
    { to, ports: [{ protocol: 'TCP', port: publisherPorts.operations }] },
    // It is found by the name of its Service.
    ...(dns ? [dnsRule(dns)] : []),
  ];
}

function controllerPod(props: ControllerInstallProps) {
  return {
    serviceAccountName: controllerName,
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 30,
    securityContext: { runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'controller',
        image: props.image,
        imagePullPolicy: 'IfNotPresent',
        args: ['controller', ...argumentsOf(settingsOf(props))],
        ports: [
          { name: 'api', containerPort: props.apiPort, protocol: 'TCP' },
          { name: 'metrics', containerPort: probePort, protocol: 'TCP' },
        ],
        securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { cpu: '1', memory: '512Mi' } },
        livenessProbe: { httpGet: { path: '/healthz', port: 'metrics' }, periodSeconds: 10 },
        readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' }, periodSeconds: 5 },
      },
    ],
  };
}
