import type { Chart } from 'cdk8s';
import { SandboxClaim, SandboxTemplate, SandboxWarmPool } from 'orka-workspaces';
import type { SandboxTemplateProps } from 'orka-workspaces';
import { dnsPorts, router } from './shared.js';

const inNamespace = (name: string) => ({ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } });

/** One runtime for two teams: the first takes the provider's network as it is, the second says it all and adds a tool server. */
export function teamNetworks(chart: Chart): void {
  team(chart, 'team-a', { networkPolicy: 'ProviderDefault', allow: ['template/default-network'] });
  team(chart, 'team-b', {
    networkPolicy: {
      ingress: [{ from: [{ ...inNamespace('agent-sandbox-system'), ...router }], ports: [] }],
      egress: [
        { to: [{ ...inNamespace('kube-system'), podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } } }], ports: dnsPorts },
        { to: [inNamespace('shared-tools')], ports: [{ protocol: 'TCP', port: 8080 }] },
        {
          to: [
            { ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'] } },
            { ipBlock: { cidr: '::/0', except: ['fc00::/7', 'fe80::/10'] } },
          ],
          ports: [],
        },
      ],
    },
    allow: ['network-policy/open-rule'],
  });
}

function team(chart: Chart, namespace: string, network: Pick<SandboxTemplateProps, 'networkPolicy' | 'allow'>): void {
  const metadata = (name: string) => ({ name, namespace });
  const template = new SandboxTemplate(chart, `${namespace}-template`, {
    metadata: metadata('runtime'),
    podTemplate: { spec: { containers: [{ name: 'agent', image: 'python:3.12-slim', command: ['sleep', 'infinity'] }] } },
    ...network,
  });
  const warmPool = new SandboxWarmPool(chart, `${namespace}-pool`, { metadata: metadata('runtimes'), template, replicas: 1 });
  new SandboxClaim(chart, `${namespace}-claim`, { metadata: metadata('runtime-1'), warmPool });
}
