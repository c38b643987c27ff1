import type { V1Container, V1PodSpec, V1Volume } from '../pod-types.js';
import type { Manifest } from '../../api/index.js';
import { isDnsLabel } from '../../lib/kubernetes-names.js';
import { quantityValue } from '../../lib/quantity.js';
import type { VolumeClaimTemplate } from '../pod.js';
import { badAnnotation, badLabel, firstTwice, isPortName } from './names.js';
import { containersOf, firstContainer, firstOf, podTemplate, templateField } from './pod-parts.js';
import type { PlacedContainer } from './pod-parts.js';
import { schedulingRules } from './pod-scheduling.js';
import type { Broken, Rule } from './rule.js';

interface Blueprint {
  readonly volumeClaimTemplates?: readonly VolumeClaimTemplate[];
  readonly volumeClaimTemplatesPolicy?: string;
}
const specOf = (object: Manifest): Blueprint => object['spec'] as unknown as Blueprint;

const reserved = /^(?:(?:extensions\.)?agents\.x-k8s\.io\/|opentelemetry\.io\/trace-context$)/;

/** Fields that a server of 1.34 does not know, or knows behind a gate that is closed by default. */
function dropped(object: Manifest): { readonly field: string; readonly found: unknown } | undefined {
  const { spec } = podTemplate(object);
  const at = templateField(object);
  const ofPod = ['evictionResponders', 'hostnameOverride', 'schedulingGroup'].map((field) => ({
    field: `${at}.spec.${field}`,
    found: (spec as unknown as Readonly<Record<string, unknown>>)[field],
  }));
  const ofContainers = containersOf(object).flatMap(({ field, container }) => {
    const { lifecycle, restartPolicyRules, env } = container as NewContainer;
    return [
      { field: `${field}.lifecycle.stopSignal`, found: lifecycle?.stopSignal },
      { field: `${field}.restartPolicyRules`, found: restartPolicyRules },
      ...(env ?? []).map(({ valueFrom }, index) => ({
        field: `${field}.env[${index}].valueFrom.fileKeyRef`,
        found: valueFrom?.fileKeyRef,
      })),
    ];
  });
  const ofVolumes = (spec.volumes ?? []).flatMap((volume, index) => [
    { field: `${at}.spec.volumes[${index}].image`, found: volume.image },
    ...((volume as NewVolume).projected?.sources ?? []).map(({ podCertificate }, i) => ({
      field: `${at}.spec.volumes[${index}].projected.sources[${i}].podCertificate`,
      found: podCertificate,
    })),
  ]);
  return [...ofPod, ...ofContainers, ...ofVolumes].find(({ found }) => found !== undefined);
}

/** Fields that the types of client-node may not have yet. */
interface NewContainer {
  readonly lifecycle?: { readonly stopSignal?: string };
  readonly restartPolicyRules?: unknown;
  readonly env?: readonly { readonly valueFrom?: { readonly fileKeyRef?: unknown } }[];
}
interface NewVolume {
  readonly projected?: { readonly sources?: readonly { readonly podCertificate?: unknown }[] };
}

const words = {
  restartPolicy: ['Always', 'OnFailure', 'Never'],
  imagePullPolicy: ['Always', 'IfNotPresent', 'Never'],
  dnsPolicy: ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'],
  preemptionPolicy: ['Never', 'PreemptLowerPriority'],
  mountPropagation: ['Bidirectional', 'HostToContainer', 'None'],
  recursiveReadOnly: ['Disabled', 'Enabled', 'IfPossible'],
  accessModes: ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'],
} as const;

function badWord(of: keyof typeof words, found: string | undefined, field: string): Broken | undefined {
  return found === undefined || (words[of] as readonly string[]).includes(found)
    ? undefined
    : { field: `${field}.${of}`, found, allowed: words[of].join(', ') };
}

/** The folder of a Pod's logs is `<namespace>_<name>_<36 characters of UID>`, which a file system lets be 255 long. */
const longestPod = 255 - 36 - 2;

/** About Sandbox and SandboxClaim, whose Pods have their names. */
export const podNameRule: Rule<Manifest> = {
  id: 'pod/name-length',
  kind: 'provider',
  because: 'the kubelet cannot make a folder for the logs of a Pod with a longer name, and the Pod stays Pending',
  source: 'provider.md §2',
  check: ({ metadata: { name, namespace = '' } }) =>
    name.length + namespace.length <= longestPod
      ? undefined
      : { field: 'metadata.name', found: name, allowed: `at most ${longestPod} characters with its namespace` },
};

/** A name that the API server takes for an environment variable: printable ASCII without `=`. */
export const isVariableName = (name: string): boolean => /^[ -<>-~]+$/.test(name);

const claimNames = (templates: readonly VolumeClaimTemplate[] | null | undefined): readonly string[] =>
  (templates ?? []).map(({ metadata }) => (metadata as { readonly name?: string } | undefined)?.name ?? '');

/** Names of volume claim templates: each becomes a volume of the Pod and a part of a claim's name. */
function badClaimTemplates(templates: readonly VolumeClaimTemplate[] | null | undefined, field: string): Broken | undefined {
  const names = claimNames(templates);
  const bad = names.findIndex((name) => !isDnsLabel(name));
  if (bad >= 0)
    return { field: `${field}[${bad}].metadata.name`, found: names[bad], allowed: 'a DNS label of at most 63 characters' };
  const twice = firstTwice(names);
  return twice === undefined ? undefined : { field, found: twice, allowed: 'each name once' };
}

/** About all kinds that have volume claim templates. */
export const claimNamesRule: Rule<Manifest> = {
  id: 'volume-claims/names',
  kind: 'provider',
  because: 'the API accepts any name; the Sandbox then stays ReconcilerError, a claim VolumeClaimTemplatesError',
  source: 'provider.md §5.4',
  check: (object) => badClaimTemplates(specOf(object).volumeClaimTemplates, 'spec.volumeClaimTemplates'),
};

export const claimSpecRule: Rule<Manifest> = {
  id: 'volume-claims/spec',
  kind: 'provider',
  because: 'the API accepts any claim; the volume is refused later, and the Sandbox stays ReconcilerError',
  source: 'provider.md §5.4',
  check: (object) => {
    for (const [index, { metadata, spec }] of (specOf(object).volumeClaimTemplates ?? []).entries()) {
      const field = `spec.volumeClaimTemplates[${index}]`;
      const modes = spec.accessModes ?? [];
      const broken =
        (modes.length === 0
          ? { field: `${field}.spec.accessModes`, found: spec.accessModes, allowed: 'at least one' }
          : undefined) ??
        modes.map((mode) => badWord('accessModes', mode, `${field}.spec`)).find((one) => one !== undefined) ??
        (spec.resources?.requests?.['storage'] === undefined
          ? { field: `${field}.spec.resources.requests.storage`, found: undefined, allowed: 'a size' }
          : undefined) ??
        badLabel(metadata.labels, `${field}.metadata.labels`);
      if (broken) return broken;
    }
    return undefined;
  },
};

/**
 * Rules about the Pods of a Sandbox or SandboxTemplate. Their API accepts nearly anything; the Pod is refused later, or differs.
 */
export const podRules: readonly Rule<Manifest>[] = [
  {
    id: 'pod/containers',
    kind: 'provider',
    because: 'the API accepts an empty list and no Pod is ever created',
    source: 'provider.md §1.2',
    check: (object) =>
      podTemplate(object).spec.containers.length > 0
        ? undefined
        : { field: `${templateField(object)}.spec.containers`, found: [], allowed: 'at least one container' },
  },
  {
    id: 'pod/container-names',
    kind: 'provider',
    because: 'the API accepts other names and one name for an init container and a container; the Pod is refused later',
    source: 'provider.md §1.7',
    check: (object) => {
      const names = containersOf(object).map(({ container }) => container.name);
      const bad = names.find((name) => !isDnsLabel(name)) ?? firstTwice(names);
      return bad === undefined
        ? undefined
        : { field: `${templateField(object)}.spec.containers`, found: bad, allowed: 'one name for each container, a DNS label' };
    },
  },
  {
    id: 'pod/image',
    kind: 'provider',
    because: 'the API accepts a container without an image; the Pod is refused later',
    source: 'provider.md §1.7',
    check: (object) =>
      firstContainer(object, ({ field, container: { image } }) =>
        image === undefined || image.trim() === '' || image !== image.trim()
          ? { field: `${field}.image`, found: image, allowed: 'an image' }
          : undefined,
      ),
  },
  {
    id: 'pod/env-names',
    kind: 'provider',
    because: 'the API refuses a variable that stands twice, and the Pod one whose name is none',
    source: 'provider.md §1.2',
    check: (object) =>
      firstContainer(object, ({ field, container: { env } }) => {
        const names = (env ?? []).map(({ name }) => name);
        const bad = names.find((name) => !isVariableName(name)) ?? firstTwice(names);
        return bad === undefined
          ? undefined
          : { field: `${field}.env`, found: bad, allowed: 'one entry for each variable, printable ASCII without "="' };
      }),
  },
  {
    id: 'pod/ports',
    kind: 'provider',
    because: 'the API accepts any name and number; the Pod is refused later',
    source: 'provider.md §1.7',
    check: (object) =>
      firstContainer(object, ({ field, container: { ports } }) => {
        const names = (ports ?? []).flatMap(({ name }) => name ?? []);
        const bad = names.find((name) => !isPortName(name)) ?? firstTwice(names);
        if (bad !== undefined)
          return {
            field: `${field}.ports`,
            found: bad,
            allowed: 'each name once: at most 15 lower-case letters, digits and "-", a letter among them',
          };
        const number = (ports ?? []).find(({ containerPort }) => !(containerPort >= 1 && containerPort <= 65535));
        return number && { field: `${field}.ports`, found: number.containerPort, allowed: '1 to 65535' };
      }),
  },
  {
    id: 'pod/words',
    kind: 'provider',
    because: 'the API accepts any word for a policy; the Pod is refused later',
    source: 'provider.md §1.7',
    check: (object) => {
      const { spec } = podTemplate(object);
      if (spec.dnsPolicy === 'None' && (spec.dnsConfig?.nameservers ?? []).length === 0)
        return {
          field: `${templateField(object)}.spec.dnsConfig`,
          found: spec.dnsConfig,
          allowed: 'at least one name server beside dnsPolicy None',
        };
      return (
        badWord('restartPolicy', spec.restartPolicy, `${templateField(object)}.spec`) ??
        badWord('dnsPolicy', spec.dnsPolicy, `${templateField(object)}.spec`) ??
        badWord('preemptionPolicy', spec.preemptionPolicy, `${templateField(object)}.spec`) ??
        firstContainer(object, ({ field, container }) => badWord('imagePullPolicy', container.imagePullPolicy, field))
      );
    },
  },
  {
    id: 'pod/volumes',
    kind: 'provider',
    because: 'a volume without a source becomes an empty folder without a word, and one with two is refused with the Pod',
    source: 'provider.md §1.7',
    check: (object) => {
      const { volumes = [] } = podTemplate(object).spec;
      const field = `${templateField(object)}.spec.volumes`;
      const twice = firstTwice(volumes.map(({ name }) => name));
      if (twice !== undefined) return { field, found: twice, allowed: 'each name once' };
      return firstOf(volumes, (volume, index) => {
        const sources = Object.keys(volume).filter((name) => name !== 'name');
        if (sources.length !== 1) return { field: `${field}[${index}]`, found: sources, allowed: 'one source' };
        return isDnsLabel(volume.name)
          ? undefined
          : { field: `${field}[${index}].name`, found: volume.name, allowed: 'a DNS label of at most 63 characters' };
      });
    },
  },
  {
    id: 'pod/volume-mounts',
    kind: 'provider',
    because: 'a volume that nobody defines is found missing only when the Pod is created',
    source: 'provider.md §1.7',
    check: (object) => {
      const { volumeClaimTemplates, volumeClaimTemplatesPolicy = 'Disallowed' } = specOf(object);
      if (volumeClaimTemplatesPolicy !== 'Disallowed') return undefined;
      const own = claimNames(volumeClaimTemplates);
      const names = new Set([...(podTemplate(object).spec.volumes ?? []).map(({ name }) => name), ...own]);
      return firstContainer(object, ({ field, container: { volumeMounts } }) => {
        const bad = volumeMounts?.find(({ name }) => !names.has(name));
        return (
          bad && { field: `${field}.volumeMounts`, found: bad.name, allowed: `one of ${[...names].join(', ') || 'no volumes'}` }
        );
      });
    },
  },
  {
    id: 'pod/mount-options',
    kind: 'provider',
    because: 'the API accepts any word, path and combination; the Pod is refused later',
    source: 'provider.md §1.7',
    check: (object) => firstContainer(object, badMounts),
  },
  {
    id: 'pod/probe-numbers',
    kind: 'provider',
    because: 'the API accepts any number; the Pod is refused later',
    source: 'provider.md §1.7',
    check: (object) =>
      firstContainer(object, ({ field, container }) =>
        firstOf(['startupProbe', 'readinessProbe', 'livenessProbe'] as const, (probe) => {
          const name = probeNumbers.find((one) => (container[probe]?.[one] ?? 0) < 0);
          return name && { field: `${field}.${probe}.${name}`, found: container[probe]?.[name], allowed: 'a number from 0' };
        }),
      ),
  },
  {
    id: 'pod/resources',
    kind: 'provider',
    because: 'the Pod is refused when it is created',
    source: 'provider.md §1.7',
    check: (object) =>
      firstContainer(object, ({ field, container: { resources } }) => {
        const { requests = {}, limits = {} } = resources ?? {};
        const amount = (text: unknown) =>
          typeof text === 'string' || typeof text === 'number' ? quantityValue(text) : undefined;
        const bad = Object.keys(requests).find((name) => {
          const [request, limit] = [amount(requests[name]), amount(limits[name])];
          return request !== undefined && limit !== undefined && request > limit;
        });
        return bad === undefined
          ? undefined
          : {
              field: `${field}.resources.requests.${bad}`,
              found: requests[bad],
              allowed: `at most the limit, ${String(limits[bad])}`,
            };
      }),
  },
  {
    id: 'pod/labels',
    kind: 'provider',
    because: 'labels of a template are checked only when the Pod is created: the claim then stays ReconcilerError',
    source: 'provider.md §1.7',
    check: (object) => badLabel(podTemplate(object).metadata?.labels, `${templateField(object)}.metadata.labels`),
  },
  {
    id: 'pod/annotations',
    kind: 'provider',
    because: 'keys of annotations are checked only when the Pod is created: the claim then stays ReconcilerError',
    source: 'provider.md §1.7',
    check: (object) => badAnnotation(podTemplate(object).metadata?.annotations, `${templateField(object)}.metadata.annotations`),
  },
  {
    id: 'pod/reserved-keys',
    kind: 'provider',
    because: 'the provider drops its own keys from the Pod without a word',
    source: 'provider.md §3.1',
    unless: 'only readers of the Sandbox want the key, where it stays',
    check: (object) => {
      const { labels, annotations } = podTemplate(object).metadata ?? {};
      const key = [...Object.keys(labels ?? {}), ...Object.keys(annotations ?? {})].find((name) => reserved.test(name));
      return key === undefined
        ? undefined
        : {
            field: `${templateField(object)}.metadata`,
            found: key,
            allowed: 'keys outside agents.x-k8s.io and extensions.agents.x-k8s.io',
          };
    },
  },
  {
    id: 'pod/dropped-fields',
    kind: 'provider',
    because:
      "the provider's API knows the field and the API server does not: the Pod comes without it, and mostly nobody says so",
    source: 'provider.md §0 item 14',
    unless: 'the API server is newer than 1.34, or its feature gate is open',
    check: (object) => {
      const lost = dropped(object);
      return lost && { ...lost, allowed: 'nothing, before the API server knows the field' };
    },
  },
  ...schedulingRules,
  claimNamesRule,
  claimSpecRule,
];

const probeNumbers = ['failureThreshold', 'initialDelaySeconds', 'periodSeconds', 'successThreshold', 'timeoutSeconds'] as const;

/** A path below its volume. */
const isDescending = (path: string): boolean => !path.startsWith('/') && !path.split('/').includes('..');

/** Rules of the API server for the mounts of a container. */
function badMounts({ field, container }: PlacedContainer): Broken | undefined {
  const mounts = container.volumeMounts ?? [];
  const twice = firstTwice(mounts.map(({ mountPath }) => mountPath));
  if (twice !== undefined) return { field: `${field}.volumeMounts`, found: twice, allowed: 'each mountPath once' };
  return firstOf(mounts, (mount, index) => {
    const at = `${field}.volumeMounts[${index}]`;
    const { mountPath, mountPropagation, readOnly, recursiveReadOnly = 'Disabled', subPath = '', subPathExpr = '' } = mount;
    if (mountPath === '') return { field: `${at}.mountPath`, found: mountPath, allowed: 'a path' };
    const word = badWord('mountPropagation', mountPropagation, at) ?? badWord('recursiveReadOnly', recursiveReadOnly, at);
    if (word) return word;
    if (mountPropagation === 'Bidirectional' && container.securityContext?.privileged !== true)
      return { field: `${at}.mountPropagation`, found: mountPropagation, allowed: 'None or HostToContainer, unless privileged' };
    if (recursiveReadOnly !== 'Disabled' && !(readOnly === true && (mountPropagation ?? 'None') === 'None'))
      return {
        field: `${at}.recursiveReadOnly`,
        found: recursiveReadOnly,
        allowed: 'Disabled, unless readOnly and not propagated',
      };
    if (subPath !== '' && subPathExpr !== '')
      return { field: `${at}.subPathExpr`, found: subPathExpr, allowed: 'subPath or subPathExpr' };
    const bad = [subPath, subPathExpr].find((path) => !isDescending(path));
    return bad === undefined ? undefined : { field: `${at}.subPath`, found: bad, allowed: 'a relative path without ".."' };
  });
}

const harmlessCapabilities = new Set(
  'AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT'.split(' '),
);
const harmlessSysctls =
  /^(?:kernel\.shm_rmid_forced|net\.ipv4\.(?:ip_local_port_range|ip_unprivileged_port_start|tcp_syncookies|ping_group_range|ip_local_reserved_ports|tcp_keepalive_(?:time|intvl|probes)|tcp_fin_timeout|tcp_rmem|tcp_wmem))$/;

const baseline = 'Pod Security Standards, Baseline';

function podPolicy(id: string, because: string, source: string, check: Rule<Manifest>['check']): Rule<Manifest> {
  return { id: `pod/${id}`, kind: 'policy', because, source, check };
}

const tokenSource = (volume: V1Volume): boolean =>
  volume.projected?.sources?.some((source) => source.serviceAccountToken) === true;

/** What lets a sandbox reach its node or the API server. Each can be allowed by its id. */
export const podPolicies: readonly Rule<Manifest>[] = [
  podPolicy(
    'service-account-token',
    'a sandbox that can talk to the API server can do what its ServiceAccount may',
    'provider.md §12',
    (object) => {
      const { automountServiceAccountToken, volumes } = podTemplate(object).spec;
      // The provider closes it for what templates make, and only there.
      const open = object.kind === 'Sandbox' ? automountServiceAccountToken !== false : automountServiceAccountToken === true;
      if (open)
        return {
          field: `${templateField(object)}.spec.automountServiceAccountToken`,
          found: automountServiceAccountToken,
          allowed: 'false',
        };
      const projected = volumes?.find(tokenSource);
      return (
        projected && { field: `${templateField(object)}.spec.volumes`, found: projected.name, allowed: 'no projected token' }
      );
    },
  ),
  podPolicy('host-namespaces', 'namespaces of the node undo the isolation', baseline, (object) => {
    const { spec } = podTemplate(object);
    const shared = (['hostNetwork', 'hostPID', 'hostIPC'] as const).find((name) => spec[name] === true);
    return shared && { field: `${templateField(object)}.spec.${shared}`, found: true, allowed: 'false' };
  }),
  podPolicy('host-path', 'a folder of the node is open to what runs in the sandbox', baseline, (object) => {
    const volume = podTemplate(object).spec.volumes?.find(({ hostPath }) => hostPath);
    return (
      volume && {
        field: `${templateField(object)}.spec.volumes`,
        found: volume.name,
        allowed: 'volumes that are not folders of the node',
      }
    );
  }),
  podPolicy('host-ports', 'a port of the node is reached past every NetworkPolicy', baseline, (object) =>
    firstContainer(object, ({ field, container: { ports } }) => {
      const open = ports?.find(({ hostPort = 0 }) => hostPort !== 0);
      return open && { field: `${field}.ports`, found: open, allowed: 'no hostPort' };
    }),
  ),
  podPolicy('privileged', 'a privileged container is root on the node', baseline, (object) =>
    firstContainer(object, ({ field, container: { securityContext } }) => {
      const pod = podTemplate(object).spec.securityContext;
      const isHostProcess = (securityContext?.windowsOptions ?? pod?.windowsOptions)?.hostProcess === true;
      return securityContext?.privileged === true || isHostProcess
        ? { field: `${field}.securityContext`, found: isHostProcess ? 'hostProcess' : 'privileged', allowed: 'neither' }
        : undefined;
    }),
  ),
  podPolicy('capabilities', 'more than the runtime gives by itself is a way to the node', baseline, (object) =>
    firstContainer(object, ({ field, container: { securityContext } }) => {
      const more = securityContext?.capabilities?.add?.find((name) => !harmlessCapabilities.has(name));
      return more === undefined
        ? undefined
        : {
            field: `${field}.securityContext.capabilities.add`,
            found: more,
            allowed: [...harmlessCapabilities].join(', '),
          };
    }),
  ),
  podPolicy('unconfined', 'the filters of the container runtime are the least', baseline, (object) => {
    const { securityContext } = podTemplate(object).spec;
    const sysctl = securityContext?.sysctls?.find(({ name }) => !harmlessSysctls.test(name));
    if (sysctl)
      return { field: `${templateField(object)}.spec.securityContext.sysctls`, found: sysctl.name, allowed: 'safe sysctls' };
    const isOpen = (context: V1PodSpec['securityContext'] | V1Container['securityContext']): boolean =>
      context?.seccompProfile?.type === 'Unconfined' || context?.appArmorProfile?.type === 'Unconfined';
    if (isOpen(securityContext))
      return { field: `${templateField(object)}.spec.securityContext`, found: 'Unconfined', allowed: 'RuntimeDefault' };
    return firstContainer(object, ({ field, container }) =>
      isOpen(container.securityContext) || container.securityContext?.procMount === 'Unmasked'
        ? { field: `${field}.securityContext`, found: container.securityContext, allowed: 'RuntimeDefault and procMount Default' }
        : undefined,
    );
  }),
];
