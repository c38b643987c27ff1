import type { V1Container } from '../pod-types.js';
import type { Manifest } from '../../api/index.js';
import type { PodTemplate, VolumeClaimTemplate } from '../pod.js';
import { isServiceName } from './names.js';
import { policySuffix } from './sandbox-template.js';
import type { ClaimSpec } from './sandbox-claim.js';
import type { Broken, Rule } from './rule.js';

/** An object with the objects of the same construct tree that it refers to, as far as they are there. */
export interface Linked {
  readonly object: Manifest;
  readonly pool?: Manifest | undefined;
  readonly template?: Manifest | undefined;
  /** What stands where the provider would make the Sandbox of a claim. */
  readonly sandbox?: Manifest | undefined;
  /** What stands where the provider would write the policy of a template. */
  readonly policy?: Manifest | undefined;
  /** Another template whose sandboxes the policy of this one selects as well. */
  readonly twin?: string | undefined;
  /** The namespace of the object that was given as reference; `undefined` = the same, or not known. */
  readonly elsewhere?: string | undefined;
}

interface TemplateSpec {
  readonly podTemplate: PodTemplate;
  readonly volumeClaimTemplates?: readonly VolumeClaimTemplate[];
  readonly service?: boolean;
  readonly networkPolicyManagement?: string;
  readonly envVarsInjectionPolicy?: string;
  readonly volumeClaimTemplatesPolicy?: string;
}
const templateSpec = (template: Manifest): TemplateSpec => template['spec'] as unknown as TemplateSpec;
const claimSpec = (claim: Manifest): ClaimSpec => claim['spec'] as unknown as ClaimSpec;

/** A rule that asks only when the template is known. */
const withTemplate =
  (check: (object: Manifest, template: TemplateSpec, pool: Manifest | undefined) => Broken | undefined) =>
  ({ object, template, pool }: Linked): Broken | undefined =>
    template && check(object, templateSpec(template), pool);

/** Rules of a claim beside its pool and template. */
export const claimLinks: readonly Rule<Linked>[] = [
  {
    id: 'claim/pool-namespace',
    kind: 'provider',
    because: 'a pool of another namespace is not found: the claim stays WarmPoolNotFound',
    source: 'provider.md §1.5',
    check: ({ object, elsewhere }) =>
      elsewhere === undefined
        ? undefined
        : { field: 'metadata.namespace', found: object.metadata.namespace, allowed: `the namespace of the pool, ${elsewhere}` },
  },
  {
    id: 'claim/name-taken',
    kind: 'provider',
    because:
      'the Sandbox of a claim that starts cold has its name; one that is there is not taken over: ReconcilerError for ever',
    source: 'provider.md §4.3',
    check: ({ object, sandbox }) =>
      sandbox === undefined
        ? undefined
        : { field: 'metadata.name', found: object.metadata.name, allowed: 'a name that no Sandbox of the namespace has' },
  },
  {
    id: 'claim/service-name',
    kind: 'provider',
    because:
      'the Service gets the name of the claim; with one that no Service can have the claim stays ReconcilerError for ever, InvalidConfiguration since v1.0.4',
    source: 'provider.md §2, agent-sandbox v1.0.4',
    check: withTemplate(({ metadata: { name } }, { service }) =>
      service !== true || isServiceName(name)
        ? undefined
        : { field: 'metadata.name', found: name, allowed: 'a DNS-1035 label of at most 63 characters' },
    ),
  },
  {
    id: 'claim/env-policy',
    kind: 'provider',
    because: 'the claim is refused: EnvVarsInjectionRejected or ReconcilerError, and stays so',
    source: 'provider.md §5.4',
    check: withTemplate((claim, { envVarsInjectionPolicy: policy = 'Disallowed', podTemplate: { spec } }) => {
      const env = claimSpec(claim).env ?? [];
      if (env.length > 0 && policy === 'Disallowed')
        return { field: 'spec.env', found: env.map(({ name }) => name), allowed: 'nothing: the template says Disallowed' };
      const all = [...(spec.initContainers ?? []), ...spec.containers];
      const given = new Set<string>();
      for (const [index, { name, containerName = '' }] of env.entries()) {
        const target = containerName === '' ? spec.containers[0] : all.find((container) => container.name === containerName);
        const broken = target === undefined ? undefined : badVariable(`spec.env[${index}]`, policy, target, name, given);
        if (target === undefined)
          return {
            field: `spec.env[${index}].containerName`,
            found: containerName,
            allowed: all.map((container) => container.name).join(', '),
          };
        if (broken) return broken;
      }
      return undefined;
    }),
  },
  {
    id: 'claim/volume-policy',
    kind: 'provider',
    because: 'the claim is refused: VolumeClaimTemplatesError, and stays so',
    source: 'provider.md §5.4',
    check: withTemplate((claim, { volumeClaimTemplatesPolicy: policy = 'Disallowed', volumeClaimTemplates: own = [] }) => {
      const names = (claimSpec(claim).volumeClaimTemplates ?? []).map(({ metadata: { name } }) => name);
      const field = 'spec.volumeClaimTemplates';
      if (names.length > 0 && policy === 'Disallowed')
        return { field, found: names, allowed: 'nothing: the template says Disallowed' };
      const taken = policy === 'Allowed' ? names.find((name) => own.some(({ metadata }) => metadata.name === name)) : undefined;
      return taken === undefined
        ? undefined
        : { field, found: taken, allowed: 'names that the template does not have: it says Allowed, not Overrides' };
    }),
  },
  {
    id: 'claim/pod-metadata',
    kind: 'provider',
    because: 'a claim may repeat a label or annotation of the template, not change it: metadata override conflict',
    source: 'provider.md §5.3',
    check: withTemplate((claim, { podTemplate: { metadata } }) => {
      for (const part of ['labels', 'annotations'] as const) {
        const own = metadata?.[part] ?? {};
        const changed = Object.entries(claimSpec(claim).additionalPodMetadata?.[part] ?? {}).find(
          ([key, value]) => own[key] !== undefined && own[key] !== value,
        );
        if (changed)
          return {
            field: `spec.additionalPodMetadata.${part}[${changed[0]}]`,
            found: changed[1],
            allowed: `nothing, or the template's ${own[changed[0]] ?? ''}`,
          };
      }
      return undefined;
    }),
  },
  {
    id: 'claim/ttl-restart-policy',
    kind: 'provider',
    because: 'a Pod that is always restarted never finishes, so the claim never expires',
    source: 'provider.md §5.5',
    check: withTemplate((claim, { podTemplate: { spec } }) => {
      const ttl = claimSpec(claim).lifecycle?.ttlSecondsAfterFinished;
      return ttl === undefined || (spec.restartPolicy !== undefined && spec.restartPolicy !== 'Always')
        ? undefined
        : {
            field: 'spec.lifecycle.ttlSecondsAfterFinished',
            found: ttl,
            allowed: 'a template with restartPolicy Never or OnFailure, or shutdownTime',
          };
    }),
  },
];

/** `given` = variables of containers that earlier entries of the claim set. */
function badVariable(at: string, policy: string, target: V1Container, name: string, given: Set<string>): Broken | undefined {
  const key = `${target.name}/${name}`;
  if (policy === 'Allowed') {
    if ((target.envFrom ?? []).length > 0)
      return { field: at, found: name, allowed: `nothing for ${target.name}: it has envFrom, and the template says Allowed` };
    if (given.has(key) || target.env?.some((variable) => variable.name === name) === true)
      return { field: at, found: name, allowed: `a name that ${target.name} does not have: the template says Allowed` };
  }
  given.add(key);
  return undefined;
}

/** Rules of a pool beside its template. */
export const warmPoolLinks: readonly Rule<Linked>[] = [
  {
    id: 'warm-pool/template-namespace',
    kind: 'provider',
    because: 'a template of another namespace is not found: claims of the pool stay TemplateNotFound',
    source: 'provider.md §1.4',
    check: ({ object, elsewhere }) =>
      elsewhere === undefined
        ? undefined
        : {
            field: 'metadata.namespace',
            found: object.metadata.namespace,
            allowed: `the namespace of the template, ${elsewhere}`,
          },
  },
  {
    id: 'warm-pool/service-name',
    kind: 'provider',
    because: 'members and their Services are named after the pool; with a name that no Service can have none becomes ready',
    source: 'provider.md §2',
    check: withTemplate(({ metadata: { name }, ...pool }, { service }) =>
      service !== true || (pool['spec'] as { readonly replicas?: number }).replicas === 0 || /^[a-z][-a-z0-9]*$/.test(name)
        ? undefined
        : { field: 'metadata.name', found: name, allowed: 'a lower-case letter, then letters, digits and "-"' },
    ),
  },
];

/** Rules of a template beside the other objects of its namespace. */
export const templateLinks: readonly Rule<Linked>[] = [
  {
    id: 'template/policy-taken',
    kind: 'provider',
    because: 'the provider leaves a policy alone that is not its own, and writes none for the template',
    source: 'provider.md §7',
    check: ({ object, policy }) =>
      policy === undefined || templateSpec(object).networkPolicyManagement === 'Unmanaged'
        ? undefined
        : {
            field: 'metadata.name',
            found: object.metadata.name,
            allowed: `another name: the NetworkPolicy ${object.metadata.name}${policySuffix} is one of yours`,
          },
  },
  {
    id: 'template/name-hash',
    kind: 'provider',
    because: 'policies select by a 32-bit hash of the name: those of both templates apply to the sandboxes of both',
    source: 'provider.md §7',
    check: ({ object, twin }) =>
      twin === undefined
        ? undefined
        : { field: 'metadata.name', found: object.metadata.name, allowed: `a name with another hash than that of ${twin}` },
  },
];
