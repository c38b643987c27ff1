import type { Manifest } from '../../src/api/index.js';
import type { Json, JsonObject } from '../../src/lib/json.js';

/** What the real provider does with an object that breaks a rule. */
export type Seen =
  /** The API server refuses it at once. */
  | { readonly how: 'refused'; readonly says: RegExp }
  /** Accepted, and then Ready=False with this reason, for good. */
  | { readonly how: 'condition'; readonly of: 'Sandbox' | 'SandboxClaim'; readonly reason: string; readonly says?: RegExp }
  /** Accepted, and the Pod of this name runs without what was asked for at these pointers. */
  | { readonly how: 'pod-without'; readonly pod: string; readonly pointers: readonly string[] }
  /** Accepted, and the sandbox of a claim runs without the policy of its template. */
  | { readonly how: 'no-policy'; readonly template: string }
  /** Accepted, and the pool's members never get ready. */
  | { readonly how: 'members'; readonly says: RegExp }
  /** A fact of a newer provider than the pinned one: only the release of the provider says so. */
  | { readonly how: 'newer'; readonly since: string }
  /** Shown by a test of its own. */
  | { readonly how: 'test' };

/** Objects written by hand of which one breaks a rule; without a namespace they go to that of the tests. */
export interface RuleCase {
  readonly rule: string;
  /** What is wrong, in a few words. */
  readonly what: string;
  readonly objects: readonly Manifest[];
  readonly seen: Seen;
}

export const casesNamespace = 'orka-rules';
export const otherNamespace = 'orka-rules-other';

const core = 'agents.x-k8s.io/v1beta1';
const extensions = 'extensions.agents.x-k8s.io/v1beta1';

function object(apiVersion: string, kind: string, name: string, spec: JsonObject, metadata: JsonObject = {}): Manifest {
  return { apiVersion, kind, metadata: { name, namespace: casesNamespace, ...metadata }, spec };
}
export const sandbox = (name: string, spec: JsonObject): Manifest => object(core, 'Sandbox', name, spec);
export const template = (name: string, spec: JsonObject, metadata: JsonObject = {}): Manifest =>
  object(extensions, 'SandboxTemplate', name, { networkPolicyManagement: 'Unmanaged', ...spec }, metadata);
export const pool = (name: string, of = name, spec: JsonObject = { replicas: 0 }): Manifest =>
  object(extensions, 'SandboxWarmPool', name, { sandboxTemplateRef: { name: of }, ...spec });
export const claim = (name: string, spec: JsonObject = {}, metadata: JsonObject = {}): Manifest =>
  object(extensions, 'SandboxClaim', name, { warmPoolRef: { name }, ...spec }, metadata);
const policy = (name: string, spec: JsonObject): Manifest =>
  object('networking.k8s.io/v1', 'NetworkPolicy', name, { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ...spec });

/** One Pod template with one container; members of `container` and `spec` are added or replaced. */
export const podTemplate = (
  image: string,
  spec: JsonObject = {},
  container: JsonObject = {},
  metadata?: JsonObject,
): JsonObject => ({
  ...(metadata === undefined ? {} : { metadata }),
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image, ...container }],
    ...spec,
  },
});

const peer: JsonObject = { podSelector: { matchLabels: { app: 'peer' } } };
const port: JsonObject = { protocol: 'TCP', port: 80 };
const egress = (to: Json, ports: Json = [port]): JsonObject => ({ egress: [{ to: [to], ports }] });
const storage = (name: string): JsonObject => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
});

/** One case or more for each rule of the provider. `image` is one that ends by itself only when it is told to. */
export function ruleCases(image: string): readonly RuleCase[] {
  const pod = (spec: JsonObject = {}, container: JsonObject = {}, metadata?: JsonObject) =>
    podTemplate(image, spec, container, metadata);
  const box = (name: string, spec: JsonObject = {}, container: JsonObject = {}, metadata?: JsonObject) =>
    sandbox(name, { podTemplate: pod(spec, container, metadata) });
  const notReady = (says: RegExp): Seen => ({ how: 'condition', of: 'Sandbox', reason: 'ReconcilerError', says });
  const claimed = (name: string, of: JsonObject, from: JsonObject): readonly Manifest[] => [
    template(name, { podTemplate: pod(), ...of }),
    pool(name),
    claim(name, from),
  ];
  const claimSays = (reason: string, says?: RegExp): Seen => ({
    how: 'condition',
    of: 'SandboxClaim',
    reason,
    ...(says ? { says } : {}),
  });
  const managed = (name: string, networkPolicy: JsonObject): readonly Manifest[] =>
    claimed(name, { networkPolicyManagement: 'Managed', networkPolicy }, {});
  const unwritten = (rule: string, what: string, name: string, networkPolicy: JsonObject): RuleCase => ({
    rule,
    what,
    objects: managed(name, networkPolicy),
    seen: { how: 'no-policy', template: name },
  });
  const scratch: JsonObject = { volumes: [{ name: 'a', emptyDir: {} }] };
  const longName = `long-${'n'.repeat(235)}`;

  return [
    {
      rule: 'object/schema',
      what: 'a text where true or false belongs',
      objects: [box('schema', {}, { securityContext: { privileged: 'true' } })],
      seen: { how: 'refused', says: /securityContext\.privileged: Invalid value: "string"/ },
    },
    {
      rule: 'object/pod-schema',
      what: 'a word that the API of a Pod does not have',
      objects: [box('pod-schema', {}, { terminationMessagePolicy: 'Nowhere' })],
      seen: notReady(/terminationMessagePolicy: Unsupported value/),
    },
    {
      rule: 'object/unknown-field',
      what: 'a field that the API does not know',
      objects: [box('unknown-field', { hostNetwrk: true })],
      seen: { how: 'refused', says: /unknown field \\?"spec\.podTemplate\.spec\.hostNetwrk/ },
    },
    {
      rule: 'warm-pool/readiness-grace',
      what: 'less than 30 seconds for a member to become ready',
      objects: [pool('grace', 'grace', { replicas: 0, readinessGracePeriodSeconds: 29 })],
      seen: { how: 'newer', since: 'v1.0.12' },
    },
    {
      rule: 'metadata/name',
      what: 'a name with upper case',
      objects: [box('Not-A-Name')],
      seen: { how: 'refused', says: /metadata\.name: Invalid value/ },
    },
    {
      rule: 'metadata/namespace',
      what: 'a namespace with upper case',
      objects: [{ ...box('namespace'), metadata: { name: 'namespace', namespace: 'Not-A-Namespace' } }],
      seen: { how: 'refused', says: /not found/ },
    },
    {
      rule: 'metadata/labels',
      what: 'a label with a space',
      objects: [{ ...box('labels'), metadata: { name: 'labels', namespace: casesNamespace, labels: { a: 'not valid' } } }],
      seen: { how: 'refused', says: /metadata\.labels: Invalid value/ },
    },
    {
      rule: 'metadata/annotations',
      what: 'an annotation key with a space',
      objects: [
        { ...box('annotations'), metadata: { name: 'annotations', namespace: casesNamespace, annotations: { 'a b': 'c' } } },
      ],
      seen: { how: 'refused', says: /metadata\.annotations: Invalid value/ },
    },

    {
      rule: 'pod/containers',
      what: 'no container',
      objects: [box('containers', { containers: [] })],
      seen: notReady(/spec\.containers: Required value/),
    },
    {
      rule: 'pod/container-names',
      what: 'an init container and a container of one name',
      objects: [box('container-names', { initContainers: [{ name: 'main', image }] })],
      seen: notReady(/Duplicate value: \\?"main/),
    },
    {
      rule: 'pod/container-names',
      what: 'a container name with upper case',
      objects: [box('container-name', {}, { name: 'Main' })],
      seen: notReady(/containers\[0\]\.name: Invalid value/),
    },
    {
      rule: 'pod/image',
      what: 'a container without an image',
      objects: [box('image', { containers: [{ name: 'main' }] })],
      seen: notReady(/containers\[0\]\.image: Required value/),
    },
    {
      rule: 'pod/env-names',
      what: 'a variable twice',
      objects: [
        box(
          'env-twice',
          {},
          {
            env: [
              { name: 'A', value: '1' },
              { name: 'A', value: '2' },
            ],
          },
        ),
      ],
      seen: { how: 'refused', says: /Duplicate value/ },
    },
    {
      rule: 'pod/env-names',
      what: 'a variable with an equals sign in its name',
      objects: [box('env-name', {}, { env: [{ name: 'A=B', value: '1' }] })],
      seen: notReady(/env\[0\]\.name: Invalid value/),
    },
    {
      rule: 'pod/volume-mounts',
      what: 'a mount of a volume that is not there',
      objects: [box('mounts', {}, { volumeMounts: [{ name: 'nowhere', mountPath: '/data' }] })],
      seen: notReady(/volumeMounts\[0\]\.name: Not found/),
    },
    {
      rule: 'pod/resources',
      what: 'a request above its limit',
      objects: [box('resources', {}, { resources: { requests: { memory: '1Gi' }, limits: { memory: '512Mi' } } })],
      seen: notReady(/must be less than or equal to memory limit/),
    },
    {
      rule: 'pod/labels',
      what: 'a label of the Pod with a space',
      objects: [box('pod-labels', {}, {}, { labels: { a: 'not valid' } })],
      seen: notReady(/metadata\.labels: Invalid value/),
    },
    {
      rule: 'pod/annotations',
      what: 'an annotation of the Pod whose key has a space',
      objects: [box('pod-annotations', {}, {}, { annotations: { 'a b': 'c' } })],
      seen: notReady(/metadata\.annotations: Invalid value/),
    },
    {
      rule: 'pod/reserved-keys',
      what: "a label of the provider's domain",
      objects: [box('reserved-label', {}, {}, { labels: { 'agents.x-k8s.io/team': 'a' } })],
      seen: { how: 'pod-without', pod: 'reserved-label', pointers: ['/metadata/labels/agents.x-k8s.io~1team'] },
    },
    {
      rule: 'pod/reserved-keys',
      what: "annotations of the provider's domains",
      objects: [
        box(
          'reserved-annotation',
          {},
          {},
          {
            annotations: { 'extensions.agents.x-k8s.io/a': 'b', 'opentelemetry.io/trace-context': '{}' },
          },
        ),
      ],
      seen: {
        how: 'pod-without',
        pod: 'reserved-annotation',
        pointers: [
          '/metadata/annotations/extensions.agents.x-k8s.io~1a',
          '/metadata/annotations/opentelemetry.io~1trace-context',
        ],
      },
    },
    {
      rule: 'pod/ports',
      what: 'a port name of more than 15 characters',
      objects: [box('port-name', {}, { ports: [{ name: 'a-name-of-16-let', containerPort: 80 }] })],
      seen: notReady(/ports\[0\]\.name: Invalid value/),
    },
    {
      rule: 'pod/ports',
      what: 'port 0, of a container',
      objects: [box('port-number', {}, { ports: [{ containerPort: 0 }] })],
      seen: notReady(/ports\[0\]\.containerPort: Required value/),
    },
    {
      rule: 'pod/words',
      what: 'a restartPolicy that is none',
      objects: [box('word-restart', { restartPolicy: 'Sometimes' })],
      seen: notReady(/spec\.restartPolicy: Unsupported value/),
    },
    {
      rule: 'pod/words',
      what: 'an imagePullPolicy that is none',
      objects: [box('word-pull', {}, { imagePullPolicy: 'Sometimes' })],
      seen: notReady(/imagePullPolicy: Unsupported value/),
    },
    {
      rule: 'pod/words',
      what: 'dnsPolicy None without name servers',
      objects: [box('word-dns', { dnsPolicy: 'None' })],
      seen: notReady(/spec\.dnsConfig: Required value/),
    },
    {
      rule: 'pod/volumes',
      what: 'a volume whose name has upper case',
      objects: [box('volume-name', { volumes: [{ name: 'Bad_Name', emptyDir: {} }] })],
      seen: notReady(/volumes\[0\]\.name: Invalid value/),
    },
    {
      rule: 'pod/mount-options',
      what: 'mounts that reach the node, of a container that is not privileged',
      objects: [
        box('propagation', scratch, { volumeMounts: [{ name: 'a', mountPath: '/a', mountPropagation: 'Bidirectional' }] }),
      ],
      seen: notReady(/Bidirectional mount propagation/),
    },
    {
      rule: 'pod/mount-options',
      what: 'a path out of its volume',
      objects: [box('sub-path', scratch, { volumeMounts: [{ name: 'a', mountPath: '/a', subPath: '../b' }] })],
      seen: notReady(/must not contain/),
    },
    {
      rule: 'pod/probe-numbers',
      what: 'a period below 0',
      objects: [box('probe', {}, { livenessProbe: { exec: { command: ['true'] }, periodSeconds: -1 } })],
      seen: notReady(/periodSeconds: Invalid value/),
    },
    {
      rule: 'pod/node-selector',
      what: 'a label of nodes with a space',
      objects: [box('node-selector', { nodeSelector: { a: 'b c' } })],
      seen: notReady(/nodeSelector: Invalid value/),
    },
    {
      rule: 'pod/priority-class',
      what: 'a priority class whose name has upper case',
      objects: [box('priority-class', { priorityClassName: 'Not_A_Name' })],
      seen: notReady(/Not_A_Name/),
    },
    {
      rule: 'pod/words',
      what: 'a preemptionPolicy that is none',
      objects: [box('preemption', { preemptionPolicy: 'Sometimes' })],
      seen: notReady(/Sometimes/),
    },
    {
      rule: 'pod/tolerations',
      what: 'a toleration without a key that does not tolerate all',
      objects: [box('tolerations', { tolerations: [{ operator: 'Equal' }] })],
      seen: notReady(/operator must be Exists/),
    },
    {
      rule: 'pod/tolerations',
      what: 'seconds of a toleration that evicts nobody',
      objects: [box('toleration-seconds', { tolerations: [{ operator: 'Exists', tolerationSeconds: 5 }] })],
      seen: notReady(/effect must be 'NoExecute'/),
    },
    {
      rule: 'pod/node-affinity',
      what: 'an operator of a node affinity that is none',
      objects: [
        box('node-affinity', {
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Near' }] }],
              },
            },
          },
        }),
      ],
      seen: notReady(/not a valid selector operator/),
    },
    {
      rule: 'pod/pod-affinity',
      what: 'a weight of 0',
      objects: [
        box('pod-affinity', {
          affinity: {
            podAffinity: {
              preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 0, podAffinityTerm: { topologyKey: 'a' } }],
            },
          },
        }),
      ],
      seen: notReady(/must be in the range 1-100/),
    },
    {
      rule: 'pod/topology-spread',
      what: 'a skew of 0',
      objects: [
        box('spread', {
          topologySpreadConstraints: [{ maxSkew: 0, topologyKey: 'a', whenUnsatisfiable: 'DoNotSchedule' }],
        }),
      ],
      seen: notReady(/must be greater than zero/),
    },
    {
      rule: 'pod/volumes',
      what: 'a volume with two sources',
      objects: [box('volume-two', { volumes: [{ name: 'a', emptyDir: {}, hostPath: { path: '/tmp' } }] })],
      seen: notReady(/may not specify more than 1 volume type/),
    },
    {
      rule: 'pod/volumes',
      what: 'a volume without a source',
      objects: [box('volume-none', { volumes: [{ name: 'a' }] })],
      seen: { how: 'test' },
    },
    {
      rule: 'pod/name-length',
      what: 'a name of 208 characters in a namespace of 10',
      objects: [box('p'.repeat(208))],
      seen: { how: 'test' },
    },
    {
      rule: 'pod/dropped-fields',
      what: 'stopSignal',
      objects: [box('dropped-signal', { os: { name: 'linux' } }, { lifecycle: { stopSignal: 'SIGUSR1' } })],
      seen: { how: 'pod-without', pod: 'dropped-signal', pointers: ['/spec/containers/0/lifecycle'] },
    },
    {
      rule: 'pod/dropped-fields',
      what: 'restartPolicyRules',
      objects: [
        box(
          'dropped-rules',
          {},
          {
            restartPolicy: 'Always',
            restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }],
          },
        ),
      ],
      seen: { how: 'pod-without', pod: 'dropped-rules', pointers: ['/spec/containers/0/restartPolicyRules'] },
    },
    {
      rule: 'pod/dropped-fields',
      what: 'a volume that is an image, with its mount',
      objects: [
        box(
          'dropped-image',
          { volumes: [{ name: 'a', image: { reference: image } }] },
          { volumeMounts: [{ name: 'a', mountPath: '/a' }] },
        ),
      ],
      seen: { how: 'pod-without', pod: 'dropped-image', pointers: ['/spec/volumes', '/spec/containers/0/volumeMounts'] },
    },
    {
      rule: 'pod/dropped-fields',
      what: 'a projected certificate',
      objects: [
        box('dropped-certificate', {
          volumes: [
            { name: 'a', projected: { sources: [{ podCertificate: { signerName: 'example.com/a', keyType: 'ED25519' } }] } },
          ],
        }),
      ],
      seen: { how: 'pod-without', pod: 'dropped-certificate', pointers: ['/spec/volumes/0/projected/sources/0/podCertificate'] },
    },
    {
      rule: 'pod/dropped-fields',
      what: 'a variable from a file, which is then a variable from nowhere',
      objects: [
        box(
          'dropped-file',
          { volumes: [{ name: 'a', emptyDir: {} }] },
          { env: [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'a', path: 'a', key: 'A' } } }] },
        ),
      ],
      seen: notReady(/valueFrom: Invalid value/),
    },
    ...Object.entries<Json>({
      hostnameOverride: 'other',
      schedulingGroup: { podGroupName: 'group' },
      evictionResponders: [{ name: 'example.com/a', priority: 1 }],
    }).map(([field, value]): RuleCase => {
      const name = `dropped-${field.toLowerCase()}`;
      const seen: Seen = { how: 'pod-without', pod: name, pointers: [`/spec/${field}`] };
      return { rule: 'pod/dropped-fields', what: field, objects: [box(name, { [field]: value })], seen };
    }),
    {
      rule: 'volume-claims/names',
      what: 'a volume claim template without a name, of a Sandbox',
      objects: [sandbox('claim-unnamed', { podTemplate: pod(), volumeClaimTemplates: [{ spec: storage('x')['spec'] }] })],
      seen: notReady(/./),
    },
    {
      rule: 'volume-claims/names',
      what: 'a volume claim template whose name is no volume name',
      objects: [sandbox('claim-dots', { podTemplate: pod(), volumeClaimTemplates: [storage('a.b')] })],
      seen: notReady(/volumes\[0\]\.name: Invalid value/),
    },
    {
      rule: 'volume-claims/names',
      what: 'a name twice, in a claim',
      objects: claimed(
        'claim-twice',
        { volumeClaimTemplatesPolicy: 'Allowed' },
        { volumeClaimTemplates: [storage('a'), storage('a')] },
      ),
      seen: claimSays('VolumeClaimTemplatesError', /duplicate name/),
    },
    ...[
      ['no access mode', { accessModes: [] }, /spec\.accessModes: Required value/] as const,
      ['an access mode that is none', { accessModes: ['RWO'] }, /spec\.accessModes: Unsupported value/] as const,
      ['no size', { resources: {} }, /spec\.resources\[storage\]: Required value/] as const,
    ].map(([what, spec, says], index): RuleCase => ({
      rule: 'volume-claims/spec',
      what: `a volume claim template with ${what}`,
      objects: [
        sandbox(`claim-spec-${index}`, {
          podTemplate: pod(),
          volumeClaimTemplates: [{ ...storage('a'), spec: { ...(storage('a')['spec'] as JsonObject), ...spec } }],
        }),
      ],
      seen: notReady(says),
    })),

    {
      rule: 'sandbox/claim-name',
      what: 'a Sandbox of 200 characters with a volume of 60',
      objects: [sandbox('s'.repeat(200), { podTemplate: pod(), volumeClaimTemplates: [storage('v'.repeat(60))] })],
      seen: notReady(/PersistentVolumeClaim .* is invalid: metadata\.name/),
    },
    {
      rule: 'sandbox/service-name',
      what: 'a Sandbox with a Service whose name begins with a digit',
      objects: [sandbox('1-service', { podTemplate: pod(), service: true })],
      seen: notReady(/Service \\?"1-service\\?" is invalid/),
    },

    {
      rule: 'sandbox/service-name',
      what: 'a Sandbox of 64 characters with a Service',
      objects: [sandbox('t'.repeat(64), { podTemplate: pod(), service: true })],
      seen: notReady(/no more than 63 characters/),
    },
    {
      rule: 'template/name',
      what: 'a template of 240 characters',
      objects: [
        template(longName, { podTemplate: pod(), networkPolicyManagement: 'Managed', networkPolicy: {} }),
        pool('long', longName),
        claim('long'),
      ],
      seen: { how: 'no-policy', template: longName },
    },
    {
      rule: 'template/null-network-policy',
      what: 'networkPolicy: null',
      objects: [template('null-policy', { podTemplate: pod(), networkPolicyManagement: 'Managed', networkPolicy: null })],
      seen: { how: 'test' },
    },
    {
      rule: 'template/unmanaged-policy',
      what: 'rules that nobody makes a policy from',
      objects: claimed('unmanaged', { networkPolicy: {} }, {}),
      seen: { how: 'no-policy', template: 'unmanaged' },
    },
    {
      rule: 'template/policy-taken',
      what: 'a policy of the name that the provider would use',
      objects: [policy('taken-network-policy', { podSelector: { matchLabels: { app: 'other' } } }), ...managed('taken', {})],
      seen: { how: 'no-policy', template: 'taken' },
    },
    {
      rule: 'template/name-hash',
      what: 'two templates whose names have one hash',
      objects: ['code-search-read', 'template-21qp'].map((name) =>
        template(name, { podTemplate: pod(), networkPolicyManagement: 'Managed', networkPolicy: {} }),
      ),
      seen: { how: 'test' },
    },
    unwritten('network-policy/ports', 'port 0, in a template', 'port-zero', egress(peer, [{ protocol: 'TCP', port: 0 }])),
    unwritten(
      'network-policy/ports',
      'an endPort below its port, in a template',
      'port-range',
      egress(peer, [{ protocol: 'TCP', port: 80, endPort: 79 }]),
    ),
    unwritten(
      'network-policy/ports',
      'a protocol that is none, in a template',
      'protocol',
      egress(peer, [{ protocol: 'ICMP', port: 1 }]),
    ),
    {
      rule: 'network-policy/ports',
      what: 'port 0',
      objects: [policy('port-zero', egress(peer, [{ protocol: 'TCP', port: 0 }]))],
      seen: { how: 'refused', says: /port: Invalid value/ },
    },
    unwritten(
      'network-policy/peers',
      'a range that is none, in a template',
      'no-range',
      egress({ ipBlock: { cidr: '10.0.0.0' } }),
    ),
    unwritten(
      'network-policy/peers',
      'an exception outside of its range, in a template',
      'outside',
      egress({ ipBlock: { cidr: '10.0.0.0/8', except: ['11.0.0.0/8'] } }),
    ),
    unwritten(
      'network-policy/peers',
      'an exception of another family, in a template',
      'other-family',
      egress({ ipBlock: { cidr: '::/0', except: ['10.0.0.0/8'] } }),
    ),
    unwritten(
      'network-policy/peers',
      'a peer with a range and a selector, in a template',
      'both',
      egress({ ...peer, ipBlock: { cidr: '10.0.0.0/8' } }),
    ),
    unwritten(
      'network-policy/peers',
      'a selector that asks for no value, in a template',
      'selector',
      egress({ podSelector: { matchExpressions: [{ key: 'app', operator: 'In' }] } }),
    ),
    {
      rule: 'network-policy/peers',
      what: 'a range that is none',
      objects: [policy('no-range', egress({ ipBlock: { cidr: '10.0.0.0' } }))],
      seen: { how: 'refused', says: /cidr: Invalid value/ },
    },

    {
      rule: 'warm-pool/replicas',
      what: 'less than none',
      objects: [pool('replicas', 'replicas', { replicas: -1 })],
      seen: { how: 'refused', says: /spec\.replicas: Invalid value/ },
    },
    {
      rule: 'warm-pool/template',
      what: 'a pool of no template',
      objects: [pool('templateless', ''), claim('templateless')],
      seen: claimSays('TemplateNotFound'),
    },
    {
      rule: 'warm-pool/template-namespace',
      what: 'a template of another namespace',
      objects: [
        template('far-template', { podTemplate: pod() }, { namespace: otherNamespace }),
        pool('far-template'),
        claim('far-template'),
      ],
      seen: claimSays('TemplateNotFound'),
    },
    {
      rule: 'warm-pool/service-name',
      what: 'members with Services, of a pool whose name begins with a digit',
      objects: [template('1-members', { podTemplate: pod(), service: true }), pool('1-members', '1-members', { replicas: 1 })],
      seen: { how: 'members', says: /Service .* is invalid/ },
    },

    {
      rule: 'claim/warm-pool',
      what: 'a claim of no pool',
      objects: [claim('poolless', { warmPoolRef: { name: '' } })],
      seen: claimSays('WarmPoolNotFound'),
    },
    {
      rule: 'claim/pool-namespace',
      what: 'a pool of another namespace',
      objects: [
        template('far-pool', { podTemplate: pod() }, { namespace: otherNamespace }),
        { ...pool('far-pool'), metadata: { name: 'far-pool', namespace: otherNamespace } },
        claim('far-pool'),
      ],
      seen: claimSays('WarmPoolNotFound'),
    },
    {
      rule: 'claim/name-taken',
      what: 'a claim beside a Sandbox of its name',
      objects: [box('taken-name'), ...claimed('taken-name', {}, {})],
      seen: claimSays('ReconcilerError', /is not controlled by claim/),
    },
    {
      rule: 'claim/service-name',
      what: 'a claim whose name begins with a digit, of a template with a Service',
      objects: [template('1-claim', { podTemplate: pod(), service: true }), pool('1-claim'), claim('1-claim')],
      seen: claimSays('ReconcilerError', /Service \\?"1-claim\\?" is invalid/),
    },
    {
      rule: 'claim/ttl',
      what: 'no time between the end of the Pod and that of the claim',
      objects: claimed('ttl', { podTemplate: pod({ restartPolicy: 'Never' }) }, { lifecycle: { ttlSecondsAfterFinished: 0 } }),
      seen: { how: 'test' },
    },
    {
      rule: 'claim/ttl-restart-policy',
      what: 'a claim that ends with its Pod, whose containers are always started again',
      objects: claimed(
        'ttl-always',
        { podTemplate: pod({}, { command: ['true'] }) },
        { lifecycle: { ttlSecondsAfterFinished: 30 } },
      ),
      seen: { how: 'test' },
    },
    {
      rule: 'claim/shutdown-time',
      what: 'a time with a fraction and an offset',
      objects: claimed('shutdown-time', {}, { lifecycle: { shutdownTime: '2099-01-01T05:00:00.5+03:00' } }),
      seen: { how: 'test' },
    },
    {
      rule: 'claim/no-empty-collections',
      what: 'an empty map',
      objects: claimed('empties', {}, { additionalPodMetadata: { annotations: {} } }),
      seen: { how: 'test' },
    },
    {
      rule: 'claim/bound',
      what: 'a binding that somebody else wrote',
      objects: [
        ...claimed('written', {}, {}).slice(0, 2),
        claim('written', {}, { annotations: { 'agents.x-k8s.io/sandbox-name': 'elsewhere' } }),
      ],
      seen: { how: 'test' },
    },
    {
      rule: 'claim/env-names',
      what: 'a variable twice',
      objects: claimed(
        'claim-env-twice',
        { envVarsInjectionPolicy: 'Allowed' },
        {
          env: [
            { name: 'A', value: '1' },
            { name: 'A', value: '2' },
          ],
        },
      ),
      seen: claimSays('ReconcilerError', /environment variable override is not allowed/),
    },
    {
      rule: 'claim/env-names',
      what: 'a variable with an equals sign in its name',
      objects: claimed('claim-env-name', { envVarsInjectionPolicy: 'Allowed' }, { env: [{ name: 'A=B', value: '1' }] }),
      seen: claimSays('ReconcilerError', /env\[0\]\.name: Invalid value/),
    },
    {
      rule: 'claim/pod-labels',
      what: 'a label of a domain that claims may not use',
      objects: claimed('claim-labels', {}, { additionalPodMetadata: { labels: { 'example.com/team': 'a' } } }),
      seen: claimSays('InvalidMetadata', /not in the allowlist/),
    },
    {
      rule: 'claim/pod-labels',
      what: 'a label without a domain',
      objects: claimed('claim-label', {}, { additionalPodMetadata: { labels: { app: 'sandbox-router' } } }),
      seen: claimSays('InvalidMetadata'),
    },
    {
      rule: 'claim/pod-annotations',
      what: 'an annotation of Kubernetes',
      objects: claimed('claim-annotations', {}, { additionalPodMetadata: { annotations: { 'a.kubernetes.io/b': 'c' } } }),
      seen: claimSays('InvalidMetadata', /restricted system domain/),
    },
    {
      rule: 'claim/env-policy',
      what: 'variables where the template says nothing, which is Disallowed',
      objects: claimed('env-disallowed', {}, { env: [{ name: 'A', value: '1' }] }),
      seen: claimSays('EnvVarsInjectionRejected'),
    },
    {
      rule: 'claim/env-policy',
      what: 'a variable of the template where it says Allowed',
      objects: claimed(
        'env-allowed',
        { podTemplate: pod({}, { env: [{ name: 'A', value: '1' }] }), envVarsInjectionPolicy: 'Allowed' },
        { env: [{ name: 'A', value: '2' }] },
      ),
      seen: claimSays('ReconcilerError', /override is not allowed/),
    },
    {
      rule: 'claim/env-policy',
      what: 'one container by its name and by default',
      objects: claimed(
        'env-default',
        { envVarsInjectionPolicy: 'Allowed' },
        {
          env: [
            { name: 'A', value: '1' },
            { name: 'A', value: '2', containerName: 'main' },
          ],
        },
      ),
      seen: claimSays('ReconcilerError', /override is not allowed/),
    },
    {
      rule: 'claim/env-policy',
      what: 'a container that is not there',
      objects: claimed(
        'env-container',
        { envVarsInjectionPolicy: 'Allowed' },
        { env: [{ name: 'A', value: '1', containerName: 'other' }] },
      ),
      seen: claimSays('ReconcilerError', /target container .* not found/),
    },
    {
      rule: 'claim/env-policy',
      what: 'a container with envFrom where the template says Allowed',
      objects: claimed(
        'env-from',
        {
          podTemplate: pod({}, { envFrom: [{ configMapRef: { name: 'settings', optional: true } }] }),
          envVarsInjectionPolicy: 'Allowed',
        },
        { env: [{ name: 'A', value: '1' }] },
      ),
      seen: claimSays('EnvVarsInjectionRejected', /EnvFrom/),
    },
    {
      rule: 'claim/volume-policy',
      what: 'volumes where the template says nothing, which is Disallowed',
      objects: claimed('volumes-disallowed', {}, { volumeClaimTemplates: [storage('data')] }),
      seen: claimSays('VolumeClaimTemplatesError'),
    },
    {
      rule: 'claim/volume-policy',
      what: 'a volume of the template where it says Allowed',
      objects: claimed(
        'volumes-allowed',
        { volumeClaimTemplates: [storage('data')], volumeClaimTemplatesPolicy: 'Allowed' },
        { volumeClaimTemplates: [storage('data')] },
      ),
      seen: claimSays('VolumeClaimTemplatesError', /cannot override/),
    },
    {
      rule: 'claim/pod-metadata',
      what: 'a label that the template has with another value',
      objects: claimed(
        'metadata',
        { podTemplate: pod({}, {}, { labels: { 'sandbox.users.io/team': 'a' } }) },
        { additionalPodMetadata: { labels: { 'sandbox.users.io/team': 'b' } } },
      ),
      seen: claimSays('ReconcilerError', /metadata override conflict/),
    },
  ];
}
