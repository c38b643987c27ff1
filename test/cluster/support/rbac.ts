/** Rules of RBAC as lists of single rights: what roles grant, what requests used, who may do something. */
import type { Manifest } from '../../../src/api/index.js';
import type { ApiTarget } from './audit.js';

/** A rule, as roles have it and as a SelfSubjectRulesReview answers it. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

export interface Subject {
  readonly kind: string;
  readonly name: string;
  /** Of a ServiceAccount. */
  readonly namespace?: string;
}

/** A ServiceAccount. */
export interface Account {
  readonly namespace: string;
  readonly name: string;
}

type Binding = Manifest & {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly Subject[];
};

/** One thing that may be done. `*` stands for itself. */
export interface Right {
  readonly verb: string;
  /** With group and subresource, as in `core.orka.ai/tasks/status`, or a path. */
  readonly resource: string;
  /** The one object that it is for. Absent: all. */
  readonly name?: string;
}

/** A right where it is granted: a namespace, or `''` for the whole cluster. */
export interface Grant extends Right {
  readonly namespace: string;
}

/** Every single right of some rules. */
export function rightsOf(rules: readonly PolicyRule[]): readonly Right[] {
  return rules.flatMap(({ verbs, apiGroups = [], resources = [], resourceNames, nonResourceURLs = [] }) => {
    const named = apiGroups.flatMap((group) => resources.map((resource) => (group === '' ? resource : `${group}/${resource}`)));
    const names = resourceNames?.length ? resourceNames.map((name) => ({ name })) : [{}];
    return [...named, ...nonResourceURLs].flatMap((resource) =>
      verbs.flatMap((verb) => names.map((name): Right => ({ verb, resource, ...name }))),
    );
  });
}

/** As in `patch core.orka.ai/tasks/status`, or `get secrets provider-proxy`. */
function rightText({ verb, resource, name }: Right): string {
  return [verb, resource, ...(name === undefined ? [] : [name])].join(' ');
}

/** As in `team-a: get secrets`. */
export function grantText(grant: Grant): string {
  return `${grant.namespace === '' ? 'everywhere' : grant.namespace}: ${rightText(grant)}`;
}

/** Sorted, each once: two sets of rights are equal when their texts are. */
export function rightTexts(rights: readonly Right[]): readonly string[] {
  return [...new Set(rights.map(rightText))].sort();
}

const isBinding = (object: Manifest): object is Binding => ['RoleBinding', 'ClusterRoleBinding'].includes(object.kind);

/** The rules that a binding hands out. A role that is not there grants nothing. */
function rulesOf(binding: Binding, objects: readonly Manifest[]): readonly PolicyRule[] {
  const { kind, name } = binding.roleRef;
  const namespace = kind === 'Role' ? binding.metadata.namespace : undefined;
  const role = objects.find(
    (one) => one.kind === kind && one.metadata.name === name && (kind === 'ClusterRole' || one.metadata.namespace === namespace),
  );
  return (role?.['rules'] ?? []) as unknown as readonly PolicyRule[];
}

/** What objects grant to a ServiceAccount by its own name, each right where it holds. */
export function grantsTo(objects: readonly Manifest[], account: Account): readonly Grant[] {
  return objects
    .filter(isBinding)
    .filter(({ subjects = [] }) =>
      subjects.some(
        ({ kind, name, namespace }) => kind === 'ServiceAccount' && name === account.name && namespace === account.namespace,
      ),
    )
    .flatMap((binding) =>
      rightsOf(rulesOf(binding, objects)).map((right) => ({ ...right, namespace: binding.metadata.namespace ?? '' })),
    );
}

/** Whether a request is one that a grant allows. */
export function covers(grant: Grant, target: ApiTarget): boolean {
  return (
    grant.verb === target.verb &&
    grant.resource === target.resource &&
    (grant.namespace === '' || grant.namespace === target.namespace) &&
    (grant.name === undefined || grant.name === target.name)
  );
}

/** Who may do one of these things with a resource, and how. */
export interface Holder {
  readonly subject: Subject;
  /** As in `ClusterRole cluster-admin`. */
  readonly role: string;
  readonly verbs: readonly string[];
}

/**
 * The subjects of all bindings whose role allows at least one of `verbs`, be it for single names only. What another authorizer than RBAC
 * grants is not in it.
 */
export function holdersOf(
  objects: readonly Manifest[],
  {
    group,
    resource,
    namespace,
    verbs,
  }: { readonly group: string; readonly resource: string; readonly namespace: string; readonly verbs: readonly string[] },
): readonly Holder[] {
  const within = (all: readonly string[] = [], one: string) => all.includes(one) || all.includes('*');
  return objects.filter(isBinding).flatMap((binding) => {
    if (binding.kind === 'RoleBinding' && binding.metadata.namespace !== namespace) return [];
    const rules = rulesOf(binding, objects).filter(
      ({ apiGroups, resources }) => within(apiGroups, group) && within(resources, resource),
    );
    const held = verbs.filter((verb) => rules.some((rule) => within(rule.verbs, verb)));
    const role = `${binding.roleRef.kind} ${binding.roleRef.name}`;
    return held.length === 0 ? [] : (binding.subjects ?? []).map((subject) => ({ subject, role, verbs: held }));
  });
}

/** Whether a binding for this subject is one for an account: by its name, or by a group that it is in. */
export function includes(subject: Subject, account: Account): boolean {
  switch (subject.kind) {
    case 'ServiceAccount':
      return subject.name === account.name && subject.namespace === account.namespace;
    case 'User':
      return subject.name === usernameOf(account);
    default:
      return groupsOf(account).includes(subject.name);
  }
}

/** As the API server sees it. */
export function usernameOf({ namespace, name }: Account): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/** That every account of its namespace is in. */
export function groupsOf({ namespace }: Account): readonly string[] {
  return ['system:authenticated', 'system:serviceaccounts', `system:serviceaccounts:${namespace}`];
}

/** As in `ServiceAccount kube-system/generic-garbage-collector`. */
export function subjectText({ kind, name, namespace }: Subject): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}
