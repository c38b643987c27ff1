import { Construct } from 'constructs';
import type { RuntimePoolClassSpec } from '../../api/index.js';
import { annotationKeys, controllerRole, publisherRole, sandboxRole } from '../../domain/labels.js';
import { publisherPorts, publisherSecretName, publisherServiceName } from '../../domain/publisher.js';
import { canonicalJson } from '../../lib/canonical-json.js';
import type { Json } from '../../lib/json.js';
import { digestOf } from '../../lib/sha256.js';
import { NetworkPolicy } from '../network-policy.js';
import type { NetworkPolicyEgressRule, NetworkPolicyPeer } from '../network-policy.js';
import { Resource } from '../resource.js';
import { publicBlocks } from '../rules/addresses.js';
import { metadataRules } from '../rules/names.js';
import { schemaRules } from '../rules/schema.js';
import { addressPeers, dnsRule, managedBy, namespaceNamed, podSecurity } from './parts.js';

const publisherName = 'orka-workspaces-publisher';
const configName = 'orka-publisher-config';
const claimName = 'orka-publisher-data';

/** Size of the volume of a publisher without storage. */
export const temporaryVolume = '2Gi';

const configFolder = '/etc/orka/publisher';
const keyFolder = '/var/run/secrets/orka/publisher';

/** A server of repositories. */
export interface Forge {
  readonly host: string;
  readonly port: number;
  /** PEM certificates of its authority. @default - those of the image */
  readonly ca?: string | undefined;
  /** It has an address of a private network, and is reached only at its peer. */
  readonly private: boolean;
  readonly peer?: ForgePeer | undefined;
}

/** Where a private forge is: a range of addresses, or Pods of this cluster. */
type ForgePeer =
  | { readonly cidr: string }
  | {
      readonly namespace: string;
      readonly podLabels: Readonly<Record<string, string>>;
      /** @default - the port of the forge */
      readonly podPort?: number | undefined;
    };

type Amounts = Readonly<Record<'cpu' | 'memory' | 'ephemeral-storage', string | number>>;

/** What an installation decides about its publisher. */
export interface PublisherSettings {
  readonly namespace: string;
  readonly image: string;
  readonly resources: { readonly requests: Amounts; readonly limits: Amounts };
  /** @default - a volume that goes with the Pod */
  readonly storage?: { readonly capacity: string | number; readonly storageClassName?: string | undefined } | undefined;
  readonly forges: readonly Forge[];
  /** Bounds of the publisher by name. @default `{}` - its own */
  readonly limits: Readonly<Record<string, number>>;
}

/** Props of {@link PublisherInstall}. */
export interface PublisherInstallProps extends PublisherSettings {
  readonly namespaces: { readonly controller: string; readonly runtime: string };
  /** Where DNS and a controller with the network of its node are. */
  readonly network: Pick<RuntimePoolClassSpec['network'], 'controller' | 'dns'>;
  /** @default no PodMonitor, and no namespace may scrape */
  readonly metrics?: { readonly podMonitor: boolean; readonly scrapeFrom: readonly string[] } | undefined;
}

/**
 * The only service that runs git against forges, in its own namespace. NetworkPolicies let in the controller and downloading sandboxes, and let
 * out DNS and the forges. It has no token of the API server. Source: repository.md §3.6.
 */
export class PublisherInstall extends Construct {
  constructor(scope: Construct, id: string, props: PublisherInstallProps) {
    super(scope, id);
    const { namespace, storage } = props;
    const labels = { ...managedBy, 'app.kubernetes.io/name': publisherName };
    const podLabels = { ...labels, ...publisherRole };
    const named = (name: string) => ({ name, namespace, labels });
    const checked = (of: string, apiVersion: string, kind: string, name: string, body: object): Resource =>
      new Resource(this, of, { apiVersion, kind, metadata: named(name), ...body }, [...metadataRules, ...schemaRules]);
    new Resource(this, 'namespace', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { ...managedBy, ...podSecurity('restricted') } },
    });
    checked('service-account', 'v1', 'ServiceAccount', publisherName, { automountServiceAccountToken: false });
    const config = configOf(props);
    checked('config', 'v1', 'ConfigMap', configName, { data: { 'config.json': `${JSON.stringify(config, null, 2)}\n` } });
    if (storage) checked('data', 'v1', 'PersistentVolumeClaim', claimName, { spec: claimOf(storage) });
    checked('service', 'v1', 'Service', publisherServiceName, {
      spec: {
        type: 'ClusterIP',
        selector: podLabels,
        ports: [
          { name: 'operations', port: publisherPorts.operations, targetPort: 'operations', protocol: 'TCP' },
          { name: 'artifacts', port: publisherPorts.artifacts, targetPort: 'artifacts', protocol: 'TCP' },
        ],
      },
    });
    this.#policies(props, named);
    const annotations = {
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': String(publisherPorts.probes),
      [annotationKeys.publisherConfig]: digestOf(canonicalJson(config)),
    };
    checked('deployment', 'apps/v1', 'Deployment', publisherName, {
      spec: {
        // One Pod writes the journal and the artifacts.
        replicas: 1,
        strategy: { type: 'Recreate' },
        selector: { matchLabels: { 'app.kubernetes.io/name': publisherName } },
        template: { metadata: { labels: podLabels, annotations }, spec: publisherPod(props) },
      },
    });
    if (props.metrics?.podMonitor === true)
      checked('pod-monitor', 'monitoring.coreos.com/v1', 'PodMonitor', publisherName, {
        spec: { selector: { matchLabels: podLabels }, podMetricsEndpoints: [{ port: 'metrics', path: '/metrics' }] },
      });
  }

  /** Everything of the namespace is closed; the others open what the publisher is for. */
  #policies(props: PublisherInstallProps, named: (name: string) => object): void {
    const podSelector = { matchLabels: publisherRole };
    const policy = (id: string, directions: object, selector: object = podSelector) =>
      new NetworkPolicy(this, id, {
        metadata: named(`${publisherName}-${id}`),
        podSelector: selector,
        ...directions,
      });
    const { namespaces, network, metrics } = props;
    const scrapers = [...(metrics?.scrapeFrom ?? [])].sort().map((name) => ({ namespaceSelector: namespaceNamed(name) }));
    const controller = [
      { namespaceSelector: namespaceNamed(namespaces.controller), podSelector: { matchLabels: controllerRole } },
      ...addressPeers(network.controller),
    ];
    const sandboxes = [{ namespaceSelector: namespaceNamed(namespaces.runtime), podSelector: { matchLabels: sandboxRole } }];
    policy('deny-all', { ingress: [], egress: [] }, {});
    policy('ingress', {
      ingress: [
        { from: controller, ports: [tcp(publisherPorts.operations)] },
        { from: sandboxes, ports: [tcp(publisherPorts.artifacts)] },
        ...(scrapers.length > 0 ? [{ from: scrapers, ports: [tcp(publisherPorts.probes)] }] : []),
      ],
    });
    policy('dns-egress', { egress: [dnsRule(network.dns)] });
    policy('forge-egress', { egress: forgeEgress(props.forges) });
  }
}

const tcp = (port: number) => ({ protocol: 'TCP' as const, port });

/** A rule for the public forges of each port, which no policy can name, and one for each private forge. */
function forgeEgress(forges: readonly Forge[]): readonly NetworkPolicyEgressRule[] {
  const ports = [...new Set(forges.filter((forge) => !forge.private).map(({ port }) => port))].sort((a, b) => a - b);
  return [
    ...ports.map((port) => ({ to: publicBlocks().map((ipBlock) => ({ ipBlock })), ports: [tcp(port)] })),
    ...forges.flatMap(({ peer, port }) => (peer ? [{ to: [forgePeer(peer)], ports: [tcp(podPortOf(peer, port))] }] : [])),
  ];
}

function forgePeer(peer: ForgePeer): NetworkPolicyPeer {
  return 'cidr' in peer
    ? { ipBlock: { cidr: peer.cidr } }
    : { namespaceSelector: namespaceNamed(peer.namespace), podSelector: { matchLabels: peer.podLabels } };
}

/** What a policy sees is the port of the Pod, not that of its Service. */
const podPortOf = (peer: ForgePeer, port: number): number => ('podPort' in peer ? (peer.podPort ?? port) : port);

/** The file that the publisher reads. Nothing in it is a credential. */
function configOf({ forges, limits }: PublisherInstallProps): Json {
  return {
    forges: forges.map(({ host, port, ca, private: isPrivate, peer }) => ({
      host,
      port,
      ...(ca === undefined ? {} : { ca }),
      private: isPrivate,
      ...(peer && 'cidr' in peer ? { cidr: peer.cidr } : {}),
    })),
    limits,
  };
}

function claimOf({ capacity, storageClassName }: NonNullable<PublisherSettings['storage']>): object {
  return {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: String(capacity) } },
    ...(storageClassName === undefined ? {} : { storageClassName }),
  };
}

function publisherPod({ image, resources, storage }: PublisherInstallProps): object {
  const probe = (path: string) => ({ httpGet: { path, port: 'metrics' } });
  return {
    serviceAccountName: publisherName,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 30,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      fsGroup: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: 'publisher',
        image,
        imagePullPolicy: 'IfNotPresent',
        args: ['publisher', `--config=${configFolder}/config.json`, `--keys=${keyFolder}`, '--data=/data', '--temp=/tmp'],
        ports: [
          { name: 'operations', containerPort: publisherPorts.operations, protocol: 'TCP' },
          { name: 'artifacts', containerPort: publisherPorts.artifacts, protocol: 'TCP' },
          { name: 'metrics', containerPort: publisherPorts.probes, protocol: 'TCP' },
        ],
        securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        resources: { requests: amounts(resources.requests), limits: amounts(resources.limits) },
        livenessProbe: { ...probe('/healthz'), periodSeconds: 10 },
        readinessProbe: { ...probe('/readyz'), periodSeconds: 5 },
        volumeMounts: [
          { name: 'config', mountPath: configFolder, readOnly: true },
          { name: 'keys', mountPath: keyFolder, readOnly: true },
          { name: 'data', mountPath: '/data' },
          { name: 'tmp', mountPath: '/tmp' },
        ],
      },
    ],
    volumes: [
      { name: 'config', configMap: { name: configName, defaultMode: 0o440 } },
      // The Pod waits for its keys: without them it could serve no request.
      { name: 'keys', secret: { secretName: publisherSecretName, defaultMode: 0o440, optional: false } },
      { name: 'data', ...(storage ? { persistentVolumeClaim: { claimName } } : { emptyDir: { sizeLimit: temporaryVolume } }) },
      { name: 'tmp', emptyDir: { sizeLimit: '2Gi' } },
    ],
  };
}

/** Quantities as text, the one spelling that no reader rewrites. */
const amounts = (of: Amounts): Record<string, string> =>
  Object.fromEntries(Object.entries(of).map(([name, amount]) => [name, String(amount)]));
