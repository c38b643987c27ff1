import type { Manifest } from '../../api/index.js';
import type { Violation } from '../../api/validate.js';
import { isObject } from '../../lib/json.js';
import { remembered } from '../../lib/remember.js';
import { checkSchema, isSchemaKind } from '../check-schema.js';
import type { Broken, Rule } from './rule.js';

const brokenBy = (violation: Violation | undefined): Broken | undefined =>
  violation && { field: violation.field, found: violation.found, allowed: violation.allowed };

const violationsOf = remembered((object: Manifest): readonly Violation[] => {
  const kind = `${object.apiVersion}/${object.kind}`;
  return isSchemaKind(kind) ? checkSchema(kind, object) : [];
});

const podViolationsOf = remembered(({ kind, ...object }: Manifest): readonly Violation[] => {
  const spec = object['spec'];
  if (!(kind === 'SandboxTemplate' || kind === 'Sandbox') || !isObject(spec) || spec['podTemplate'] === undefined) return [];
  const template = { apiVersion: 'v1', kind: 'PodTemplate', template: spec['podTemplate'] };
  const within = (text: string) => text.replaceAll(/\btemplate(?=[.[]| has )/g, 'spec.podTemplate');
  return checkSchema('v1/PodTemplate', template).map((one) => ({
    ...one,
    field: within(one.field),
    allowed: within(one.allowed),
  }));
});

const podSchema = {
  id: 'object/pod-schema',
  kind: 'provider',
  because: 'the provider accepts the template, and the API server refuses its Pods',
  source: 'OpenAPI schema of a Pod template',
} as const;
const schema = {
  id: 'object/schema',
  kind: 'provider',
  because: 'the API server refuses it',
  source: 'OpenAPI schema of the kind',
} as const;

/** A patched object has the types and members of its kind. These rules run first: other rules rely on the types. */
export const schemaRules: readonly Rule<Manifest>[] = [
  { ...podSchema, check: (object) => brokenBy(podViolationsOf(object)[0]) },
  { ...schema, check: (object) => brokenBy(violationsOf(object)[0]) },
];

/** `first` runs before the rules that rely on types, `last` after those that can give a better reason. */
interface ObjectRules {
  readonly first: readonly Rule<Manifest>[];
  readonly last: readonly Rule<Manifest>[];
}

/**
 * An object of a construct or a manifest has the types and members of its kind. `null` counts as nothing, since the API server drops it; what that
 * opens has rules of its own. Fields of the provider's Pod that Kubernetes does not know are left to `pod/dropped-fields`.
 *
 * @param fields - paths of unknown fields, and of fields with unknown words, that are rendered unchecked
 */
export function objectRules(fields: readonly string[]): ObjectRules {
  const isNamed = ({ field }: Violation) => fields.some((one) => one === field || one === field.replaceAll(/\[\d+\]/g, '[*]'));
  const isUnknown = ({ rule }: Violation) => rule === 'unknown-field';
  const isType = (violation: Violation) => ['type', 'required'].includes(violation.rule) && !isDropped(violation);
  const counts = (violation: Violation) =>
    !isUnknown(violation) && !isDropped(violation) && !(violation.rule === 'enum' && isNamed(violation));
  const unknownField: Rule<Manifest> = {
    id: 'object/unknown-field',
    kind: 'provider',
    because: 'a provider without the field drops it or refuses the object',
    source: 'OpenAPI schema of the kind',
    check: (object) => {
      const unknown = violationsOf(object).find((one) => isUnknown(one) && !isNamed(one));
      if (!unknown) return undefined;
      const { field, found, allowed } = unknown;
      return {
        field,
        found,
        allowed: `${allowed}; a field that a newer provider has is let through by allow: ['field:${field}']`,
      };
    },
  };
  return {
    first: [unknownField, { ...schema, check: (object) => brokenBy(violationsOf(object).find(isType)) }],
    last: [
      { ...schema, check: (object) => brokenBy(violationsOf(object).find(counts)) },
      { ...podSchema, check: (object) => brokenBy(podViolationsOf(object).find(counts)) },
    ],
  };
}

/** `null` as a member, not as an item of a list. */
function isDropped({ rule, found, field }: Violation): boolean {
  return rule === 'type' && found === null && !field.endsWith(']');
}
