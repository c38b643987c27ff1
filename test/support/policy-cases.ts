import type { Manifest } from '../../src/api/index.js';
import type { JsonObject } from '../../src/lib/json.js';
import type { SwitchableRule } from '../../src/constructs/rules/switch.js';
import { claim, podTemplate, sandbox, template } from './rule-cases.js';

/** Objects that break a rule of policy, and nothing else. */
export interface PolicyCase {
  readonly rule: SwitchableRule;
  /** What is wrong, in a few words. */
  readonly what: string;
  readonly object: Manifest;
}

const image = 'registry.example/agent:1';
const box = (spec: JsonObject, container: JsonObject = {}): Manifest =>
  sandbox('box', { podTemplate: podTemplate(image, spec, container) });
const managed = (spec: JsonObject): Manifest =>
  template('box', { podTemplate: podTemplate(image), networkPolicyManagement: 'Managed', networkPolicy: {}, ...spec });
const egress = (rule: JsonObject): Manifest => managed({ networkPolicy: { egress: [rule] } });
const peer = { podSelector: { matchLabels: { app: 'peer' } } };
const port = { protocol: 'TCP', port: 80 };

/** One case or more for each rule of policy. */
export const policyCases: readonly PolicyCase[] = [
  {
    rule: 'claim/name',
    what: 'a claim whose name no Service can have',
    object: claim('1.box', { warmPoolRef: { name: 'box' } }),
  },
  {
    rule: 'claim/short-ttl',
    what: 'less than 30 seconds between the end of the Pod and that of the claim',
    object: claim('box', { lifecycle: { ttlSecondsAfterFinished: 29 } }),
  },
  { rule: 'network-policy/open-rule', what: 'a rule without peers', object: egress({ ports: [port] }) },
  { rule: 'network-policy/open-rule', what: 'a rule without ports', object: egress({ to: [peer] }) },
  { rule: 'network-policy/open-rule', what: 'a peer that selects nothing', object: egress({ to: [{}], ports: [port] }) },
  { rule: 'network-policy/protocol', what: 'a port without a protocol', object: egress({ to: [peer], ports: [{ port: 80 }] }) },
  {
    rule: 'network-policy/ranges',
    what: 'a range with bits of a host',
    object: egress({ to: [{ ipBlock: { cidr: '10.1.2.3/8' } }], ports: [port] }),
  },
  {
    rule: 'network-policy/ranges',
    what: 'an exception in another spelling of IPv6',
    object: egress({ to: [{ ipBlock: { cidr: 'fc00::/7', except: ['FD00:0::/8'] } }], ports: [port] }),
  },
  {
    rule: 'network-policy/ranges',
    what: 'IPv4 written as IPv6',
    object: egress({ to: [{ ipBlock: { cidr: '::ffff:10.0.0.0/104' } }], ports: [port] }),
  },
  {
    rule: 'network-policy/types',
    what: 'a NetworkPolicy without policyTypes',
    object: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'box' },
      spec: { podSelector: {}, egress: [] },
    },
  },
  {
    rule: 'pod/capabilities',
    what: 'a capability beyond those of the runtime',
    object: box({}, { securityContext: { capabilities: { add: ['SYS_ADMIN'] } } }),
  },
  { rule: 'pod/host-namespaces', what: 'the network, processes or IPC of the node', object: box({ hostPID: true }) },
  { rule: 'pod/host-path', what: 'a folder of the node', object: box({ volumes: [{ name: 'a', hostPath: { path: '/' } }] }) },
  { rule: 'pod/host-ports', what: 'a port of the node', object: box({}, { ports: [{ containerPort: 80, hostPort: 80 }] }) },
  { rule: 'pod/privileged', what: 'a privileged container', object: box({}, { securityContext: { privileged: true } }) },
  {
    rule: 'pod/privileged',
    what: 'a process of a Windows node',
    object: box({ securityContext: { windowsOptions: { hostProcess: true } } }),
  },
  {
    rule: 'pod/service-account-token',
    what: 'a token of the ServiceAccount, also by saying nothing in a Sandbox',
    object: sandbox('box', { podTemplate: { spec: { containers: [{ name: 'main', image }] } } }),
  },
  {
    rule: 'pod/service-account-token',
    what: 'a projected token',
    object: box({ volumes: [{ name: 'a', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }] }),
  },
  {
    rule: 'pod/unconfined',
    what: 'no seccomp or AppArmor profile',
    object: box({}, { securityContext: { seccompProfile: { type: 'Unconfined' } } }),
  },
  { rule: 'pod/unconfined', what: 'an unmasked /proc', object: box({}, { securityContext: { procMount: 'Unmasked' } }) },
  {
    rule: 'pod/unconfined',
    what: 'an unsafe sysctl',
    object: box({ securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } }),
  },
  {
    rule: 'template/default-network',
    what: 'no rules of its own, so that the provider writes its own',
    object: template('box', { podTemplate: podTemplate(image), networkPolicyManagement: 'Managed' }),
  },
  {
    rule: 'template/overrides',
    what: 'claims that may replace variables or volumes of the template',
    object: managed({ envVarsInjectionPolicy: 'Overrides' }),
  },
  { rule: 'template/unmanaged-network', what: 'no managed policy', object: template('box', { podTemplate: podTemplate(image) }) },
];
