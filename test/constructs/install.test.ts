import { describe, expect, test } from '@jest/globals';
import { App, Chart } from 'cdk8s';
import type { Manifest } from '../../src/api/index.js';
import { ControllerInstall } from '../../src/constructs/install/controller-install.js';
import type { ControllerInstallProps } from '../../src/constructs/install/controller-install.js';
import { manifestsOf } from '../../src/render/app.js';
import { poolClass } from '../support/objects.js';

const props: ControllerInstallProps = {
  namespaces: { controller: 'orka-system', runtime: 'orka-runtimes', tasks: ['team-a', 'team-b'] },
  image: `registry.example/controller@sha256:${'c'.repeat(64)}`,
  replicas: 2,
  apiPort: 9090,
  idlePoolTtl: '20m',
  defaultProvider: 'agent-sandbox',
  gates: { agentSandbox: true, workspaceDispatch: false },
  classes: [poolClass()],
};

function installed(changed: Partial<ControllerInstallProps> = {}): readonly Manifest[] {
  const app = new App({ outdir: '/dev/null', recordConstructMetadata: false });
  const chart = new Chart(app, 'install');
  new ControllerInstall(chart, 'controller', { ...props, ...changed });
  return manifestsOf(chart);
}

const ofKind = (kind: string, objects = installed()) => objects.filter((object) => object.kind === kind);
const specOf = <T>(object: Manifest | undefined) => object?.['spec'] as unknown as T;

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** Every right of a role on one line: `group/resource names: verbs`. */
function rights(kind: string, namespace: string | undefined, objects = installed()): readonly string[] {
  const rules = objects
    .filter((object) => object.kind === kind && object.metadata.namespace === namespace)
    .flatMap((object) => object['rules'] as unknown as readonly Rule[]);
  return rules
    .flatMap(({ apiGroups: [group = ''], resources, verbs, resourceNames }) =>
      resources.map(
        (resource) =>
          `${group && `${group}/`}${resource}${resourceNames ? ` ${resourceNames.join(' ')}` : ''}: ${verbs.join(' ')}`,
      ),
    )
    .sort();
}

describe('the controller may', () => {
  test('in the cluster, see its namespaces, their pauses and cordoned nodes, and finish Tasks and pools, but make and delete none', () => {
    expect(rights('ClusterRole', undefined)).toEqual([
      'core.orka.ai/runtimepools/status: patch',
      'core.orka.ai/runtimepools: get list watch patch',
      'core.orka.ai/tasks/status: patch',
      'core.orka.ai/tasks: get list watch patch',
      'namespaces orka-runtimes team-a team-b: get list watch',
      'nodes: list watch',
    ]);
  });

  test('in its own namespace, hold the Lease, read classes and the named tokens, say what it lacks', () => {
    expect(rights('Role', 'orka-system')).toEqual([
      'coordination.k8s.io/leases orka-workspaces-controller: get update',
      'coordination.k8s.io/leases: create',
      'core.orka.ai/runtimepoolclasses/status: patch',
      'core.orka.ai/runtimepoolclasses: list watch',
      'events: create patch',
      'secrets provider-proxy: get list watch',
    ]);
  });

  test.each(['team-a', 'team-b'])(
    'in %s, where Tasks are, read Agents, make pools, snapshots and results, and delete finished Tasks',
    (namespace) => {
      expect(rights('Role', namespace)).toEqual([
        'configmaps: get create',
        'core.orka.ai/agents: get list watch',
        'core.orka.ai/runtimepools: create delete',
        'core.orka.ai/tasks: delete',
        'events: create patch',
        'secrets: get create',
      ]);
    },
  );

  test('where sandboxes are, never change a claim or a Secret, and make no Pod', () => {
    expect(rights('Role', 'orka-runtimes')).toEqual([
      'agents.x-k8s.io/sandboxes: get list watch delete',
      'apps/deployments: get list watch create update delete',
      'extensions.agents.x-k8s.io/sandboxclaims: get list watch create delete',
      'extensions.agents.x-k8s.io/sandboxtemplates: get list watch create update delete',
      'extensions.agents.x-k8s.io/sandboxwarmpools: get list watch create update delete',
      'networking.k8s.io/networkpolicies: get list watch create update delete',
      'pods: get list watch delete',
      'policy/poddisruptionbudgets: get list watch create update delete',
      'secrets: get list watch create delete',
      'services: get list watch create update delete',
    ]);
  });

  test('create Pods, for dry runs, when a class compares with them', () => {
    const objects = installed({ classes: [poolClass({ attestation: 'AdmissionAware' })] });
    expect(rights('Role', 'orka-runtimes', objects)).toContain('pods: get list watch create delete');
  });

  test('in the namespace of the publisher, make and renew the one Secret with its keys', () => {
    const objects = installed({ publisherNamespace: 'orka-publisher' });
    expect(rights('Role', 'orka-publisher', objects)).toEqual(['secrets orka-publisher-auth: get update', 'secrets: create']);
    expect(rights('Role', 'orka-publisher')).toEqual([]);
  });

  test('read no Secret of its namespace without a class that names one', () => {
    expect(rights('Role', 'orka-system', installed({ classes: [] })).join()).not.toContain('secrets');
  });
});

test('each role is bound to the one account of the controller, where it stands', () => {
  const objects = installed();
  const bindings = [...ofKind('RoleBinding', objects), ...ofKind('ClusterRoleBinding', objects)];
  expect(bindings).toHaveLength(ofKind('Role', objects).length + ofKind('ClusterRole', objects).length);
  for (const binding of bindings)
    expect(binding).toMatchObject({
      roleRef: { name: 'orka-workspaces-controller' },
      subjects: [{ kind: 'ServiceAccount', name: 'orka-workspaces-controller', namespace: 'orka-system' }],
    });
});

test('the controller is held to the restricted standard, sandboxes to baseline with a warning', () => {
  const levels = ofKind('Namespace').map(({ metadata: { name, labels = {} } }) => [
    name,
    ...['enforce', 'warn', 'audit'].map((mode) => labels[`pod-security.kubernetes.io/${mode}`]),
  ]);
  expect(levels).toEqual([
    ['orka-system', 'restricted', 'restricted', 'restricted'],
    ['orka-runtimes', 'baseline', 'restricted', 'restricted'],
  ]);
});

interface PodSpec {
  readonly containers: readonly {
    readonly args: readonly string[];
    readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
    readonly livenessProbe: object;
    readonly readinessProbe: object;
  }[];
}
interface DeploymentSpec {
  readonly replicas: number;
  readonly template: {
    readonly metadata: { readonly labels: Readonly<Record<string, string>>; readonly annotations: object };
    readonly spec: PodSpec;
  };
}
const deployment = (changed?: Partial<ControllerInstallProps>) =>
  specOf<DeploymentSpec>(ofKind('Deployment', installed(changed))[0]);

test('the Deployment says the settings as flags', () => {
  expect(deployment().replicas).toBe(2);
  expect(deployment().template.spec.containers[0]?.args).toEqual([
    'controller',
    '--controller-namespace=orka-system',
    '--watch-namespace=team-a',
    '--watch-namespace=team-b',
    '--acp-runtime-namespace=orka-runtimes',
    '--api-port=9090',
    '--probe-port=8081',
    '--acp-idle-pool-ttl=20m',
    '--execution-workspace-default-provider=agent-sandbox',
    '--agent-sandbox-enabled=true',
    '--acp-workspace-dispatch-enabled=false',
  ]);
});

test('probes and scrapers find the port by its name, or by an annotation', () => {
  const { metadata, spec } = deployment().template;
  expect(spec.containers[0]).toMatchObject({
    ports: [
      { name: 'api', containerPort: 9090 },
      { name: 'metrics', containerPort: 8081 },
    ],
    livenessProbe: { httpGet: { path: '/healthz', port: 'metrics' } },
    readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' } },
  });
  expect(metadata.annotations).toEqual({ 'prometheus.io/scrape': 'true', 'prometheus.io/port': '8081' });
});

test('nobody reaches the controller but sandboxes its API, and its own namespace its probes', () => {
  expect(ofKind('NetworkPolicy')).toMatchObject([
    {
      metadata: { name: 'orka-workspaces-controller', namespace: 'orka-system' },
      spec: {
        podSelector: { matchLabels: { 'app.kubernetes.io/name': 'orka-workspaces-controller' } },
        policyTypes: ['Ingress'],
        ingress: [
          {
            from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'orka-runtimes' } } }],
            ports: [{ protocol: 'TCP', port: 9090 }],
          },
          { from: [{ podSelector: {} }], ports: [{ protocol: 'TCP', port: 8081 }] },
        ],
      },
    },
  ]);
});

describe('metrics', () => {
  const probeRule = (objects: readonly Manifest[]) =>
    specOf<{ ingress: readonly { from: readonly object[] }[] }>(ofKind('NetworkPolicy', objects)[0]).ingress[1]?.from;

  test('may be scraped from the namespaces that are named, and from no others', () => {
    const objects = installed({ metrics: { podMonitor: false, scrapeFrom: ['monitoring', 'backup'] } });
    const named = (name: string) => ({ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } });
    expect(probeRule(objects)).toEqual([{ podSelector: {} }, named('backup'), named('monitoring')]);
  });

  test('have a headless Service, so that each replica is scraped by itself', () => {
    expect(ofKind('Service').find(({ metadata }) => metadata.name === 'orka-workspaces-metrics')).toMatchObject({
      metadata: { namespace: 'orka-system' },
      spec: {
        clusterIP: 'None',
        publishNotReadyAddresses: true,
        ports: [{ name: 'metrics', port: 8081, targetPort: 'metrics', protocol: 'TCP' }],
      },
    });
  });

  test('have a PodMonitor only when it is asked for', () => {
    expect(ofKind('PodMonitor')).toEqual([]);
    const objects = installed({ metrics: { podMonitor: true, scrapeFrom: [] } });
    expect(ofKind('PodMonitor', objects)).toMatchObject([
      {
        apiVersion: 'monitoring.coreos.com/v1',
        metadata: { namespace: 'orka-system' },
        spec: {
          selector: { matchLabels: { 'app.kubernetes.io/name': 'orka-workspaces-controller' } },
          podMetricsEndpoints: [{ port: 'metrics', path: '/metrics' }],
        },
      },
    ]);
    expect(objects.filter(({ kind }) => kind !== 'PodMonitor')).toEqual(installed());
  });
});

test('the policy, the Services and the Deployment mean the same Pods', () => {
  const { labels } = deployment().template.metadata;
  const selectors = [
    specOf<{ podSelector: { matchLabels: object } }>(ofKind('NetworkPolicy')[0]).podSelector.matchLabels,
    ...ofKind('Service').map((service) => specOf<{ selector: object }>(service).selector),
    specOf<{ selector: { matchLabels: object } }>(ofKind('Deployment')[0]).selector.matchLabels,
  ];
  for (const selector of selectors) expect(labels).toMatchObject(selector);
});

describe('paused for the whole platform', () => {
  describe('the ways out of the controller', () => {
    test('are open as long as nobody names the API server', () => {
      expect(JSON.stringify(ofKind('NetworkPolicy'))).not.toContain('Egress');
    });

    test('are closed but for the API server and the sandboxes where it is named', () => {
      const apiServer = { addresses: ['10.0.0.1/32', 'fd00::1/128'], ports: [6443] };
      expect(ofKind('NetworkPolicy', installed({ apiServer }))[1]).toMatchObject({
        metadata: { name: 'orka-workspaces-controller-egress', namespace: 'orka-system' },
        spec: {
          podSelector: { matchLabels: { 'app.kubernetes.io/name': 'orka-workspaces-controller' } },
          policyTypes: ['Egress'],
          egress: [
            {
              to: [{ ipBlock: { cidr: '10.0.0.1/32' } }, { ipBlock: { cidr: 'fd00::1/128' } }],
              ports: [{ protocol: 'TCP', port: 6443 }],
            },
            {
              to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'orka-runtimes' } } }],
              ports: [{ protocol: 'TCP', port: 8080 }],
            },
          ],
        },
      });
    });

    test('lead to the publisher too, and to the DNS that finds it, where there is one', () => {
      const apiServer = { addresses: ['10.0.0.1/32'], ports: [6443] };
      const [, policy] = ofKind(
        'NetworkPolicy',
        installed({ apiServer, publisherNamespace: 'orka-publisher', dns: poolClass().network.dns }),
      );
      const { egress } = specOf<{ egress: readonly object[] }>(policy);
      expect(egress.slice(2)).toEqual([
        {
          to: [
            {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'orka-publisher' } },
              podSelector: { matchLabels: { 'orka.ai/network-role': 'workspace-publisher' } },
            },
          ],
          ports: [{ protocol: 'TCP', port: 8443 }],
        },
        {
          to: [
            {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
              podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
            },
          ],
          ports: [
            { protocol: 'UDP', port: 53 },
            { protocol: 'TCP', port: 53 },
          ],
        },
      ]);
    });
  });

  test('is an annotation of the runtime namespace, and nothing else changes', () => {
    const annotation = (objects: readonly Manifest[]) =>
      objects.flatMap(({ kind, metadata }) =>
        kind === 'Namespace' && metadata.annotations ? [`${metadata.name} ${JSON.stringify(metadata.annotations)}`] : [],
      );
    expect(annotation(installed())).toEqual([]);
    expect(annotation(installed({ paused: true }))).toEqual(['orka-runtimes {"orka.ai/paused":"true"}']);
    const others = (objects: readonly Manifest[]) => objects.filter(({ metadata }) => metadata.name !== 'orka-runtimes');
    expect(others(installed({ paused: true }))).toEqual(others(installed({ paused: false })));
  });
});
