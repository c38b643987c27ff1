import type { Construct, IConstruct } from 'constructs';
import type { Manifest } from '../api/index.js';
import { nameHash } from '../domain/provider-pod.js';
import { describeFinding } from '../lib/errors.js';
import type { Resource } from './resource.js';
import { claimLinks, templateLinks, warmPoolLinks } from './rules/links.js';
import type { Linked } from './rules/links.js';
import { findingOf } from './rules/rule.js';
import type { Rule } from './rules/rule.js';
import { policySuffix } from './rules/sandbox-template.js';

/** The objects of one construct tree that refer to each other by name. */
interface Neighbours {
  readonly byName: Map<string, Resource>;
  /** The first template of each namespace and hash. */
  readonly byHash: Map<string, Resource>;
}
const trees = new WeakMap<IConstruct, Neighbours>();

const key = (kind: string, namespace: string | undefined, name: string): string => `${kind}/${namespace ?? ''}/${name}`;

/** Makes an object known to the others of its tree. */
export function join(resource: Resource): void {
  const { byName, byHash } = neighboursOf(resource);
  const { namespace } = resource.metadata;
  byName.set(key(resource.kind, namespace, resource.name), resource);
  const hash = key('hash', namespace, nameHash(resource.name));
  if (resource.kind === 'SandboxTemplate' && !byHash.has(hash)) byHash.set(hash, resource);
}

function neighboursOf(resource: Resource): Neighbours {
  const { root } = resource.node;
  const found = trees.get(root) ?? { byName: new Map<string, Resource>(), byHash: new Map<string, Resource>() };
  trees.set(root, found);
  return found;
}

/**
 * Checks at synth what an object says of those that it refers to: those of the same tree, namespace and name. What is written elsewhere
 * is not known, and not asked.
 */
export function checkLinks(owner: Construct, resource: Resource, reference?: object): void {
  join(resource);
  const [rules, look] = linksOf[resource.kind as keyof typeof linksOf];
  owner.node.addValidation({
    validate: () => {
      const object = resource.manifest();
      const linked: Linked = { ...look(object, resource), object, elsewhere: elsewhere(resource, reference) };
      // cdk8s adds the construct path.
      return rules.flatMap((rule: Rule<Linked>) => findingOf('', rule, linked) ?? []).map(describeFinding);
    },
  });
}

/** The namespace of a construct that was given as a reference, if it is another one; a name alone says nothing. */
function elsewhere({ metadata: { namespace } }: Resource, reference: object | undefined): string | undefined {
  const other = (reference as { readonly resource?: Resource } | undefined)?.resource?.metadata.namespace;
  return namespace === undefined || other === namespace ? undefined : other;
}

type Look = (object: Manifest, resource: Resource) => Omit<Linked, 'object' | 'elsewhere'>;

function find(near: Resource, kind: string, name: string | undefined): Manifest | undefined {
  return name === undefined
    ? undefined
    : neighboursOf(near)
        .byName.get(key(kind, near.metadata.namespace, name))
        ?.manifest();
}

const templateOf = (pool: Manifest | undefined, near: Resource): Manifest | undefined =>
  find(
    near,
    'SandboxTemplate',
    (pool?.['spec'] as { readonly sandboxTemplateRef?: { readonly name: string } } | undefined)?.sandboxTemplateRef?.name,
  );

const linksOf: Readonly<
  Record<'SandboxClaim' | 'SandboxTemplate' | 'SandboxWarmPool', readonly [readonly Rule<Linked>[], Look]>
> = {
  SandboxClaim: [
    claimLinks,
    (claim, near) => {
      const pool = find(
        near,
        'SandboxWarmPool',
        (claim['spec'] as { readonly warmPoolRef: { readonly name: string } }).warmPoolRef.name,
      );
      return { pool, template: templateOf(pool, near), sandbox: find(near, 'Sandbox', near.name) };
    },
  ],
  SandboxWarmPool: [warmPoolLinks, (pool, near) => ({ template: templateOf(pool, near) })],
  SandboxTemplate: [
    templateLinks,
    (template, near) => {
      const first = neighboursOf(near).byHash.get(key('hash', near.metadata.namespace, nameHash(template.metadata.name)));
      return {
        policy: find(near, 'NetworkPolicy', `${template.metadata.name}${policySuffix}`),
        twin: first === undefined || first === near || first.name === near.name ? undefined : first.name,
      };
    },
  ],
};
