import type { V1Container, V1PodSpec } from '@kubernetes/client-node';
import type { Manifest } from '../../api/index.js';
import type { PodTemplate } from '../pod.js';
import { badLabel } from './names.js';
import type { Broken, Rule } from './rule.js';

interface WorkloadSpec {
  readonly podTemplate?: PodTemplate;
  readonly template?: PodTemplate;
  readonly networkPolicyManagement?: string;
  readonly envVarsInjectionPolicy?: string;
  readonly volumeClaimTemplatesPolicy?: string;
}
const workload = (object: Manifest): WorkloadSpec => object['spec'] as unknown as WorkloadSpec;
const podSpec = (object: Manifest): V1PodSpec =>
  (workload(object).podTemplate ?? workload(object).template)?.spec ?? { containers: [] };

/** A rule about the Pod of a pool, wherever its template stands. */
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
    check: (object) => check(podSpec(object), podSpec(object).containers[0], object),
  };
}

const added = ['CHOWN', 'KILL', 'SETGID', 'SETUID'];

/** What keeps a session inside its sandbox. The constructs render it so, and no patch of a class may undo it. */
export const poolRules: readonly Rule<Manifest>[] = [
  {
    id: 'pool/template-policies',
    kind: 'policy',
    because: 'nothing but the reviewed template may decide what runs in a sandbox, and our own NetworkPolicies isolate it',
    source: 'workload.md §3.5',
    check: (object) => {
      if (object.kind !== 'SandboxTemplate') return undefined;
      const { networkPolicyManagement, envVarsInjectionPolicy, volumeClaimTemplatesPolicy } = workload(object);
      const found = { networkPolicyManagement, envVarsInjectionPolicy, volumeClaimTemplatesPolicy };
      return networkPolicyManagement === 'Unmanaged' &&
        envVarsInjectionPolicy === 'Disallowed' &&
        volumeClaimTemplatesPolicy === 'Disallowed'
        ? undefined
        : { field: 'spec', found, allowed: 'Unmanaged, Disallowed and Disallowed' };
    },
  },
  podRule(
    'one-container',
    'a second container would share the network and the process table of the supervisor',
    ({ containers, initContainers = [], ephemeralContainers = [] }) =>
      containers.length === 1 && initContainers.length === 0 && ephemeralContainers.length === 0
        ? undefined
        : {
            field: 'containers',
            found: [...containers, ...initContainers, ...ephemeralContainers].map(({ name }) => name),
            allowed: 'the one container runtime',
          },
  ),
  podRule('pinned-image', 'a tag can move after review', (_spec, runtime) =>
    /^[^\s@]+@sha256:[a-f0-9]{64}$/.test(runtime?.image ?? '')
      ? undefined
      : { field: 'containers[0].image', found: runtime?.image, allowed: 'an image pinned by digest' },
  ),
  podRule('no-token', 'a sandbox has no business with the API server', ({ automountServiceAccountToken, serviceAccountName }) =>
    automountServiceAccountToken === false && serviceAccountName === undefined
      ? undefined
      : {
          field: 'automountServiceAccountToken',
          found: { automountServiceAccountToken, serviceAccountName },
          allowed: 'false, and no service account',
        },
  ),
  podRule('no-host', 'host namespaces undo the isolation', ({ hostNetwork, hostPID, hostIPC, shareProcessNamespace }) => {
    const found = { hostNetwork, hostPID, hostIPC, shareProcessNamespace };
    return Object.values(found).some((value) => value !== undefined)
      ? { field: 'spec', found, allowed: 'none of the host namespaces' }
      : undefined;
  }),
  podRule('seccomp', 'the default profile is the least', ({ securityContext }, runtime) => {
    const found = [securityContext?.seccompProfile?.type, runtime?.securityContext?.seccompProfile?.type];
    return found.every((type) => type === 'RuntimeDefault')
      ? undefined
      : { field: 'securityContext.seccompProfile', found, allowed: 'RuntimeDefault' };
  }),
  podRule('capabilities', 'the supervisor needs these four and nothing else', (_spec, runtime) => {
    const { capabilities, allowPrivilegeEscalation, privileged, readOnlyRootFilesystem } = runtime?.securityContext ?? {};
    const add = [...(capabilities?.add ?? [])].sort();
    return capabilities?.drop?.includes('ALL') &&
      add.every((name) => added.includes(name)) &&
      allowPrivilegeEscalation === false &&
      privileged === false &&
      readOnlyRootFilesystem === true
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
    ({ volumes = [] }, _runtime, object) => {
      const secrets = object.kind === 'Deployment' ? ['pool-auth', 'provider-capability'] : [];
      const bad = volumes.find(
        ({ name, emptyDir, secret }) => !(emptyDir?.sizeLimit !== undefined || (secret && secrets.includes(name))),
      );
      return bad ? { field: 'volumes', found: bad, allowed: 'emptyDir with a sizeLimit' } : undefined;
    },
  ),
  podRule('env', 'a value from a Secret would be a credential in a provider-visible object', (_spec, runtime) => {
    if ((runtime?.envFrom ?? []).length > 0)
      return { field: 'containers[0].envFrom', found: runtime?.envFrom, allowed: 'nothing' };
    const bad = (runtime?.env ?? []).find(({ valueFrom }) => valueFrom && !valueFrom.fieldRef);
    return bad ? { field: 'containers[0].env', found: bad, allowed: 'plain values and fields of the Pod' } : undefined;
  }),
  podRule('limits', 'a session without limits can starve the node', (_spec, runtime) => {
    const limits = Object.keys(runtime?.resources?.limits ?? {});
    return ['cpu', 'memory', 'ephemeral-storage'].every((name) => limits.includes(name))
      ? undefined
      : {
          field: 'containers[0].resources.limits',
          found: runtime?.resources?.limits,
          allowed: 'cpu, memory and ephemeral-storage',
        };
  }),
  {
    id: 'pool/pod-labels',
    kind: 'provider',
    because: 'labels of a template are checked only when the Pod is created',
    source: 'provider.md §1.7',
    check: (object) =>
      badLabel((workload(object).podTemplate ?? workload(object).template)?.metadata?.labels, 'template.metadata.labels'),
  },
];
