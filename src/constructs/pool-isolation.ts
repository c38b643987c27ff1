import { Construct } from 'constructs';
import type { RuntimePoolClassSpec } from '../api/index.js';
import type { Facts } from '../domain/facts.js';
import { commonLabels, controllerRole, labelKeys } from '../domain/labels.js';
import { NetworkPolicy } from './network-policy.js';
import type { NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicyProps } from './network-policy.js';
import type { PatchTarget } from './class-patches.js';
import { Resource } from './resource.js';
import { blocksOf } from './rules/addresses.js';
import type { Addresses } from './rules/addresses.js';
import { poolNetworkRules } from './rules/pool-network.js';
import type { OpenAddresses } from './rules/pool-network.js';
import { controlPort } from './supervisor-pod.js';

/** Props of {@link PoolIsolation}. */
export interface PoolIsolationProps {
  readonly poolClass: RuntimePoolClassSpec;
  readonly facts: Facts;
}

/**
 * What stands around a pool before anything of it runs: its Service, NetworkPolicies that close everything but four
 * paths, or five where the class has artifacts, and a disruption budget. Source: workload.md §3.6.
 */
export class PoolIsolation extends Construct {
  /** In the order in which they are applied. */
  readonly resources: readonly Resource[];

  constructor(scope: Construct, id: string, { poolClass, facts }: PoolIsolationProps) {
    super(scope, id);
    const { network, providerProxy } = poolClass;
    const metadata = (name: string) => ({ name, namespace: network.runtimeNamespace, labels: { ...commonLabels(facts) } });
    const podSelector = { matchLabels: { [labelKeys.poolKey]: facts.poolKey } };
    const tcp = (port: number) => ({ protocol: 'TCP' as const, port });
    const policy = (
      name: string,
      suffix: string,
      open: OpenAddresses,
      directions: Pick<NetworkPolicyProps, 'ingress' | 'egress'>,
    ) =>
      new NetworkPolicy(this, suffix, { metadata: metadata(name), podSelector, ...directions, rules: poolNetworkRules(open) })
        .resource;
    const egress = (name: string, suffix: string, to: Peer, ports: readonly OpenPort[]) =>
      policy(name, suffix, openTo(to, ports), { egress: [{ to: peersOf(to), ports }] });
    const ingress = (name: string, suffix: string, from: Peer, ports: readonly OpenPort[]) =>
      policy(name, suffix, openTo(from, ports), { ingress: [{ from: peersOf(from), ports }] });
    const controller = { podLabels: controllerRole, ...network.controller };

    const service = new Resource(this, 'service', {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: metadata(facts.baseName),
      spec: {
        type: 'ClusterIP',
        clusterIP: 'None',
        clusterIPs: ['None'],
        publishNotReadyAddresses: false,
        selector: podSelector.matchLabels,
        ports: [{ name: 'control', port: controlPort, targetPort: 'control', protocol: 'TCP' }],
      },
    });
    this.resources = [
      service,
      new NetworkPolicy(this, 'deny-all', { metadata: metadata(facts.denyAllName), podSelector, ingress: [], egress: [] })
        .resource,
      ingress(facts.controlInName, 'control-in', controller, [tcp(controlPort)]),
      egress(facts.dnsEgressName, 'dns-egress', network.dns, [{ protocol: 'UDP', port: 53 }, tcp(53)]),
      egress(facts.providerProxyEgressName, 'provider-proxy-egress', providerProxy, [tcp(providerProxy.podPort)]),
      egress(facts.controllerEgressName, 'controller-egress', controller, [tcp(network.controller.apiPort)]),
      ...(network.artifacts
        ? [egress(facts.artifactEgressName, 'artifact-egress', network.artifacts, [tcp(network.artifacts.port)])]
        : []),
      ...(poolClass.disruptionBudget
        ? [
            new Resource(this, 'pdb', {
              apiVersion: 'policy/v1',
              kind: 'PodDisruptionBudget',
              metadata: metadata(facts.pdbName),
              // maxUnavailable needs the scale subresource of what owns the Pod, and a Sandbox has none.
              spec: { minAvailable: 1, selector: podSelector },
            }),
          ]
        : []),
    ];
  }
}

/** Pods of a namespace, and addresses of what runs with the network of its node, where no selector finds it. */
interface Peer extends Addresses {
  readonly namespace: string;
  /** Empty = no Pods. */
  readonly podLabels: Readonly<Record<string, string>>;
}

type OpenPort = NetworkPolicyPort & { readonly port: number };

const openTo = (peer: Peer, ports: readonly OpenPort[]): OpenAddresses => ({
  blocks: blocksOf(peer),
  ports: ports.map(({ port }) => port),
});

function peersOf({ namespace, podLabels, ...addresses }: Peer): readonly NetworkPolicyPeer[] {
  const pods = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    podSelector: { matchLabels: podLabels },
  };
  return [...(Object.keys(podLabels).length > 0 ? [pods] : []), ...blocksOf(addresses).map((ipBlock) => ({ ipBlock }))];
}

/** The isolation's objects as patches name them; NetworkPolicies by suffix. */
export function isolationTargets(isolation: PoolIsolation): readonly PatchTarget[] {
  return isolation.resources.map((resource) => ({
    kind: resource.kind,
    ...(resource.kind === 'NetworkPolicy' ? { suffix: resource.node.scope?.node.id ?? '' } : {}),
    resource,
  }));
}
