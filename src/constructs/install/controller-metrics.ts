import { Construct } from 'constructs';
import { defaultOf } from '../../domain/settings.js';
import type { NetworkPolicyPeer } from '../network-policy.js';
import { Resource } from '../resource.js';
import type { ControllerInstallProps } from './controller-install.js';

/** Metrics and probes; the API has another port. */
export const probePort = defaultOf('probePort');
/** Name of the port of metrics and probes, in the Pod and in the Service. */
const portName = 'metrics';
const serviceName = 'orka-workspaces-metrics';

type Labels = Readonly<Record<string, string>>;

/** The Service by which the metrics of the controller are found, and a PodMonitor for those who have the Prometheus operator. */
export class ControllerMetrics extends Construct {
  constructor(
    scope: Construct,
    id: string,
    { namespaces, metrics }: Pick<ControllerInstallProps, 'namespaces' | 'metrics'>,
    { labels, podLabels }: { readonly labels: Labels; readonly podLabels: Labels },
  ) {
    super(scope, id);
    const metadata = { name: serviceName, namespace: namespaces.controller, labels };
    new Resource(this, 'service', {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: {
        type: 'ClusterIP',
        // Each replica is scraped by itself, a standby and one that is not ready too.
        clusterIP: 'None',
        publishNotReadyAddresses: true,
        selector: podLabels,
        ports: [{ name: portName, port: probePort, targetPort: portName, protocol: 'TCP' }],
      },
    });
    if (metrics?.podMonitor !== true) return;
    new Resource(this, 'pod-monitor', {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'PodMonitor',
      metadata,
      spec: { selector: { matchLabels: podLabels }, podMetricsEndpoints: [{ port: portName, path: '/metrics' }] },
    });
  }
}

/** Pods that may connect to the port of metrics and probes. The kubelet is no Pod and needs no rule. */
export function scrapers({ metrics }: Pick<ControllerInstallProps, 'metrics'>): readonly NetworkPolicyPeer[] {
  const others = [...(metrics?.scrapeFrom ?? [])].sort();
  return [
    { podSelector: {} },
    ...others.map((name) => ({ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } })),
  ];
}
