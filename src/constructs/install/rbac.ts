import type { ControllerInstallProps } from './controller-install.js';
import { publisherSecretName } from '../../domain/publisher.js';

interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** One Role, or the ClusterRole, of the controller. */
export interface RoleRules {
  readonly kind: 'Role' | 'ClusterRole';
  /** Absent for the ClusterRole. */
  readonly namespace?: string;
  readonly rules: readonly PolicyRule[];
}

const leaseName = 'orka-workspaces-controller';
const read = ['get', 'list', 'watch'];
/** Made as rendered, and replaced as a whole by what was rendered; never patched. */
const rendered = [...read, 'create', 'update', 'delete'];
const writeOnce = [...read, 'create', 'delete'];
const rule = (
  group: string,
  resources: readonly string[],
  verbs: readonly string[],
  resourceNames?: readonly string[],
): PolicyRule => ({
  apiGroups: [group],
  resources,
  verbs,
  ...(resourceNames ? { resourceNames } : {}),
});

/**
 * What the controller may do, and nothing more. Claims and Secrets are written once, so there is no right to change them; no role
 * may write the spec of a class, which is what makes a review binding.
 */
export function controllerRules({
  namespaces,
  classes,
  publisherNamespace,
}: Pick<ControllerInstallProps, 'namespaces' | 'classes' | 'publisherNamespace'>): readonly RoleRules[] {
  const tokenSecrets = [...new Set(classes.map(({ providerProxy }) => providerProxy.tokenSecretRef.name))].sort();
  const comparesByDryRun = classes.some(({ attestation }) => attestation === 'AdmissionAware');
  return [
    {
      kind: 'ClusterRole',
      rules: [
        // Watched for the annotation that pauses new Tasks.
        rule('', ['namespaces'], read, [...new Set([namespaces.runtime, ...namespaces.tasks])].sort()),
        // Pools leave a node that is cordoned. Which nodes they get is not known before.
        rule('', ['nodes'], ['list', 'watch']),
        // A deleted namespace loses its Role first; Tasks and pools with our finalizer must still be finished there.
        rule('core.orka.ai', ['tasks', 'runtimepools'], [...read, 'patch']),
        rule('core.orka.ai', ['tasks/status', 'runtimepools/status'], ['patch']),
      ],
    },
    {
      kind: 'Role',
      namespace: namespaces.controller,
      rules: [
        rule('coordination.k8s.io', ['leases'], ['get', 'update'], [leaseName]),
        // A name cannot bound a creation: the object has none yet when the right is checked.
        rule('coordination.k8s.io', ['leases'], ['create']),
        rule('core.orka.ai', ['runtimepoolclasses'], ['list', 'watch']),
        rule('core.orka.ai', ['runtimepoolclasses/status'], ['patch']),
        rule('', ['events'], ['create', 'patch']),
        ...(tokenSecrets.length > 0 ? [rule('', ['secrets'], read, tokenSecrets)] : []),
      ],
    },
    ...namespaces.tasks.map((namespace) => ({
      kind: 'Role' as const,
      namespace,
      rules: [
        rule('core.orka.ai', ['agents'], read),
        // Those that are finished and have a time to live; with UID and resourceVersion.
        rule('core.orka.ai', ['tasks'], ['delete']),
        rule('core.orka.ai', ['runtimepools'], ['create', 'delete']),
        rule('', ['secrets', 'configmaps'], ['get', 'create']),
        rule('', ['events'], ['create', 'patch']),
      ],
    })),
    {
      kind: 'Role',
      namespace: namespaces.runtime,
      rules: [
        rule('', ['services'], rendered),
        rule('networking.k8s.io', ['networkpolicies'], rendered),
        rule('policy', ['poddisruptionbudgets'], rendered),
        rule('apps', ['deployments'], rendered),
        rule('extensions.agents.x-k8s.io', ['sandboxtemplates', 'sandboxwarmpools'], rendered),
        rule('extensions.agents.x-k8s.io', ['sandboxclaims'], writeOnce),
        rule('', ['secrets'], writeOnce),
        // What no claim holds any more is ended by nobody else.
        rule('agents.x-k8s.io', ['sandboxes'], [...read, 'delete']),
        rule('', ['pods'], [...read, ...(comparesByDryRun ? ['create'] : []), 'delete']),
      ],
    },
    ...(publisherNamespace !== undefined
      ? [
          {
            kind: 'Role' as const,
            namespace: publisherNamespace,
            rules: [
              rule('', ['secrets'], ['get', 'update'], [publisherSecretName]),
              // A name cannot bound a creation.
              rule('', ['secrets'], ['create']),
            ],
          },
        ]
      : []),
  ];
}
