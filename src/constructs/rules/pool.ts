import type { V1Container, V1PodSpec, V1Volume } from '../pod-types.js';
import type { Manifest } from '../../api/index.js';
import { isPinnedImage, pinnedImageForm } from '../../lib/image-reference.js';
import { isDnsSubdomain } from '../../lib/kubernetes-names.js';
import { quantityValue } from '../../lib/quantity.js';
import type { PodTemplate } from '../pod.js';
import { badLabel, firstTwice } from './names.js';
import { templateField } from './pod-parts.js';
import type { Broken, Rule } from './rule.js';

interface WorkloadSpec {
  readonly podTemplate?: PodTemplate;
  readonly template?: PodTemplate;
  readonly networkPolicyManagement?: string;
  readonly envVarsInjectionPolicy?: string;
  readonly volumeClaimTemplatesPolicy?: string;
  readonly volumeClaimTemplates?: object;
}
const workload = (object: Manifest): WorkloadSpec => object['spec'] as unknown as WorkloadSpec;
const templateOf = (object: Manifest): PodTemplate | undefined => workload(object).podTemplate ?? workload(object).template;
const podSpec = (object: Manifest): V1PodSpec => templateOf(object)?.spec ?? { containers: [] };

/** The place of a field of a Pod template or its spec in an object. */
const placed = (object: Manifest, field: string): string =>
  `${templateField(object)}.${/^(?:spec|metadata)\b/.test(field) ? field : `spec.${field}`}`;

/** A rule about the Pod of a pool, wherever its template stands; `check` names fields from the Pod's spec. */
function podRule(
  id: string,
  because: string,
  check: (spec: V1PodSpec, runtime: V1Container | undefined, object: Manifest) => Broken | undefined,
): Rule<Manifest> {
  return {
    id: `pool/${id}`,
    kind: 'policy',
    because,
    source: 'workload.md §3.4',
    check: (object) => {
      const broken = check(podSpec(object), podSpec(object).containers[0], object);
      return broken && { ...broken, field: placed(object, broken.field ?? '') };
    },
  };
}

const added = ['CHOWN', 'KILL', 'SETGID', 'SETUID'];

/** The environment of the contract, workspace and plain. Source: workload.md §3.4. */
const ownVariables = new Set(
  [
    ...[
      'LISTEN_ADDRESS',
      'POD_UID',
      'POD_NAME',
      'POD_NAMESPACE',
      'CONTROLLER_EPOCH',
      'RUNTIME_POOL_UID',
      'RUNTIME_POOL_GENERATION',
    ],
    ...['RUNTIME_PROFILE_DIGEST', 'PROFILE_DIGEST_SCHEMA_VERSION', 'ACP_PROFILE', 'ADAPTER_DIGESTS_JSON', 'PROVIDER'],
    ...[
      'PROVIDER_PROXY_BASE_URL',
      'MODEL',
      'MODEL_CONTEXT_LIMIT',
      'MODEL_OUTPUT_LIMIT',
      'WORKSPACE_INTENT',
      'AGENT_CONFIGURATION_DIGEST',
    ],
    ...[
      'TOOL_POLICY_DIGEST',
      'APPROVAL_POLICY_DIGEST',
      'MCP_CONFIGURATION_DIGEST',
      'PROXY_CREDENTIAL_ROLE',
      'PROXY_CREDENTIAL_SCOPE',
    ],
    ...['RESOURCE_CLASS', 'CONTROLLER_TOKEN_FILE', 'CAPABILITY_SECRET_FILE', 'PROVIDER_TOKEN_FILE', 'PROVIDER_TOKEN_GENERATION'],
    ...['ARTIFACT_API_URL', 'WORKSPACE_MAX_ARTIFACT_BYTES', 'MCP_BROKER_URL', 'TRUST_NAMESPACE', 'SESSION_BASE_DIR'],
    ...['CREDENTIAL_BOOTSTRAP_NONCE', 'CREDENTIAL_BOOTSTRAP_PUBLIC_KEY'],
  ].map((name) => `ORKA_ACP_${name}`),
);

/** Variables with which Node or the dynamic loader runs, opens or trusts something else than it would: the supervisor is root. */
const loaderVariable = /^(?:LD_|GLIBC_|GCONV_|OPENSSL_|NODE_(?!ENV$|EXTRA_CA_CERTS$))/;

/** Domains whose annotations change what runs beside or around a Pod. */
const activeAnnotations = /(^|\.)(kubernetes\.io|k8s\.io|cncf\.io|istio\.io|linkerd\.io)\//;
const harmlessAnnotations = ['cluster-autoscaler.kubernetes.io/safe-to-evict'];

/** Folders of the system and of the supervisor: what is mounted there would replace the program that guards a session. */
const imageFolders = ['/bin', '/dev', '/etc', '/lib', '/lib64', '/opt', '/proc', '/root', '/sbin', '/sys', '/usr'];

/** Numbers of a probe for which the API server writes its default in the place of 0. */
const defaultedNumbers = ['failureThreshold', 'periodSeconds', 'successThreshold', 'timeoutSeconds'] as const;

/** What keeps a session inside its sandbox. The constructs render it so, and no patch of a class may undo it. */
export const poolRules: readonly Rule<Manifest>[] = [
  {
    id: 'pool/template-policies',
    kind: 'policy',
    because: 'nothing but the reviewed template may decide what runs in a sandbox, and our own NetworkPolicies isolate it',
    source: 'workload.md §3.5',
    check: (object) => {
      if (object.kind !== 'SandboxTemplate') return undefined;
      const { networkPolicyManagement, envVarsInjectionPolicy, volumeClaimTemplatesPolicy, volumeClaimTemplates } =
        workload(object);
      const found = { networkPolicyManagement, envVarsInjectionPolicy, volumeClaimTemplatesPolicy, volumeClaimTemplates };
      const closed =
        envVarsInjectionPolicy === 'Disallowed' &&
        volumeClaimTemplatesPolicy === 'Disallowed' &&
        volumeClaimTemplates === undefined;
      return networkPolicyManagement === 'Unmanaged' && closed
        ? undefined
        : { field: 'spec', found, allowed: 'Unmanaged, Disallowed, Disallowed and no volume claims' };
    },
  },
  podRule('one-container', 'a second container would share the network and the process table of the supervisor', (spec) => {
    const { containers, initContainers = [], ephemeralContainers = [] } = spec;
    return containers.length === 1 && initContainers.length === 0 && ephemeralContainers.length === 0
      ? undefined
      : {
          field: 'containers',
          found: [...containers, ...initContainers, ...ephemeralContainers].map(({ name }) => name),
          allowed: 'the one container runtime',
        };
  }),
  podRule('pinned-image', 'a tag can move after review', (_spec, runtime) =>
    isPinnedImage(runtime?.image ?? '')
      ? undefined
      : { field: 'containers[0].image', found: runtime?.image, allowed: `an image pinned by digest: ${pinnedImageForm}` },
  ),
  podRule(
    'no-token',
    'a sandbox has no business with the API server',
    ({ automountServiceAccountToken, serviceAccountName, serviceAccount }) =>
      automountServiceAccountToken === false && serviceAccountName === undefined && serviceAccount === undefined
        ? undefined
        : {
            field: 'automountServiceAccountToken',
            found: { automountServiceAccountToken, serviceAccountName, serviceAccount },
            allowed: 'false, and no service account',
          },
  ),
  podRule(
    'no-host',
    'host namespaces undo the isolation',
    ({ hostNetwork, hostPID, hostIPC, shareProcessNamespace, hostAliases }) => {
      const found = { hostNetwork, hostPID, hostIPC, shareProcessNamespace, hostAliases };
      return Object.values(found).some((value) => value !== undefined)
        ? { field: 'spec', found, allowed: 'none of the host namespaces, and no host aliases' }
        : undefined;
    },
  ),
  podRule('seccomp', 'the default profile is the least', ({ securityContext }, runtime) => {
    const found = [securityContext?.seccompProfile?.type, runtime?.securityContext?.seccompProfile?.type];
    return found.every((type) => type === 'RuntimeDefault')
      ? undefined
      : { field: 'securityContext.seccompProfile', found, allowed: 'RuntimeDefault' };
  }),
  podRule('capabilities', 'the supervisor needs these four and nothing else', (_spec, runtime) => {
    const { capabilities, allowPrivilegeEscalation, privileged, readOnlyRootFilesystem } = runtime?.securityContext ?? {};
    const least = capabilities?.drop?.join() === 'ALL' && (capabilities.add ?? []).every((name) => added.includes(name));
    return least && allowPrivilegeEscalation === false && privileged === false && readOnlyRootFilesystem === true
      ? undefined
      : {
          field: 'containers[0].securityContext',
          found: runtime?.securityContext,
          allowed: `drop ALL, add at most ${added.join(', ')}, no escalation, read-only root`,
        };
  }),
  podRule(
    'volumes',
    'a volume from the node, a Secret or a claim would bring something into the sandbox that was not reviewed',
    (spec, _runtime, object) => {
      const { volumes = [] } = spec;
      const secrets = object.kind === 'Deployment' ? ['pool-auth', 'provider-capability'] : [];
      const isSecret = (volume: V1Volume) => Object.keys(volume).sort().join() === 'name,secret' && secrets.includes(volume.name);
      const bad = volumes.find((volume) => !isScratch(volume) && !isSecret(volume));
      if (bad)
        return {
          field: 'volumes',
          found: bad,
          allowed: 'emptyDir with a positive sizeLimit, on disk or in Memory, and nothing beside it',
        };
      const twice = firstTwice(volumes.map(({ name }) => name));
      return twice === undefined ? undefined : { field: 'volumes', found: twice, allowed: 'each name once' };
    },
  ),
  podRule('mounts', 'what is mounted over our folders would take their place', (_spec, runtime) => {
    const paths = (runtime?.volumeMounts ?? []).map(({ mountPath }) => mountPath);
    const nested = (path: string) => paths.some((other) => path.startsWith(`${other}/`));
    const isPlain = (path: string) => /^(\/[\w.-]+)+$/.test(path) && !/\/\.{1,2}(\/|$)/.test(path);
    const isOfImage = (path: string) => imageFolders.some((folder) => path === folder || path.startsWith(`${folder}/`));
    const bad = firstTwice(paths) ?? paths.find((path) => !isPlain(path) || isOfImage(path) || nested(path));
    const allowed = `plain absolute paths outside ${imageFolders.join(', ')}, each once, none below another`;
    return bad === undefined ? undefined : { field: 'containers[0].volumeMounts', found: bad, allowed };
  }),
  podRule(
    'env',
    'a value from elsewhere would be a credential in a provider-visible object, and our own variables are the contract',
    (_spec, runtime) => {
      if (runtime?.envFrom !== undefined) return { field: 'containers[0].envFrom', found: runtime.envFrom, allowed: 'nothing' };
      const variables = runtime?.env ?? [];
      const bad = variables.find(({ name, value, valueFrom, ...rest }) => {
        const own = ownVariables.has(name);
        const fromPod = valueFrom !== undefined && Object.keys(valueFrom).join() === 'fieldRef' && value === undefined;
        return (
          Object.keys(rest).length > 0 || (valueFrom !== undefined && !(own && fromPod)) || (name.startsWith('ORKA_') && !own)
        );
      });
      if (bad)
        return { field: 'containers[0].env', found: bad, allowed: 'a name that does not begin with ORKA_, and a plain value' };
      const loads = variables.find(({ name }) => loaderVariable.test(name));
      if (loads)
        return {
          field: 'containers[0].env',
          found: loads.name,
          allowed: 'no variable with which the supervisor runs other code',
        };
      const twice = firstTwice(variables.map(({ name }) => name));
      return twice === undefined ? undefined : { field: 'containers[0].env', found: twice, allowed: 'each name once' };
    },
  ),
  podRule('pull-secrets', 'a Secret of any other name cannot exist', ({ imagePullSecrets = [] }) => {
    const bad = imagePullSecrets.find(({ name = '' }) => !isDnsSubdomain(name));
    return bad && { field: 'imagePullSecrets', found: bad, allowed: 'names of Secrets' };
  }),
  podRule('limits', 'a session without limits can starve the node', (_spec, runtime) => {
    const { limits = {}, requests = {} } = runtime?.resources ?? {};
    const amount = (text: unknown) => (typeof text === 'string' ? quantityValue(text) : undefined) ?? 0n;
    const fits = (name: string) => amount(requests[name]) > 0n && amount(requests[name]) <= amount(limits[name]);
    const bad = ['cpu', 'memory', 'ephemeral-storage'].find((name) => !fits(name));
    return bad === undefined
      ? undefined
      : {
          field: `containers[0].resources.limits.${bad}`,
          found: { limit: limits[bad], request: requests[bad] },
          allowed: 'a positive request, and a limit that is not below it',
        };
  }),
  podRule('defaulted', 'the API server replaces these values, and the Pod would never equal its template', (spec, runtime) => {
    if (spec.schedulerName === '') return { field: 'schedulerName', found: '', allowed: 'the name of a scheduler' };
    const grace = spec.terminationGracePeriodSeconds ?? 0;
    if (grace < 0 || grace > 86_400)
      return { field: 'terminationGracePeriodSeconds', found: grace, allowed: 'a number of seconds from 0 to 86400' };
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'] as const)
      for (const name of defaultedNumbers)
        if (runtime?.[probe]?.[name] === 0)
          return { field: `containers[0].${probe}.${name}`, found: 0, allowed: 'a number from 1' };
    return undefined;
  }),
  podRule('annotations', 'annotations of these domains change what runs beside or around the Pod', (_spec, _runtime, object) => {
    const names = Object.keys(templateOf(object)?.metadata?.annotations ?? {});
    const bad = names.find((name) => activeAnnotations.test(name) && !harmlessAnnotations.includes(name));
    return bad === undefined
      ? undefined
      : {
          field: 'metadata.annotations',
          found: bad,
          allowed: 'annotations that neither Kubernetes, a network nor a mesh reads',
        };
  }),
  {
    id: 'pool/pod-labels',
    kind: 'provider',
    because: 'labels of a template are checked only when the Pod is created',
    source: 'provider.md §1.7',
    check: (object) => badLabel(templateOf(object)?.metadata?.labels, `${templateField(object)}.metadata.labels`),
  },
];

/** An emptyDir with a size, and nothing beside it. */
function isScratch(volume: V1Volume): boolean {
  const { sizeLimit, medium = '', ...rest } = volume.emptyDir ?? {};
  const alone = Object.keys(volume).sort().join() === 'emptyDir,name' && Object.keys(rest).length === 0;
  return alone && ['', 'Memory'].includes(medium) && typeof sizeLimit === 'string' && (quantityValue(sizeLimit) ?? 0n) > 0n;
}
