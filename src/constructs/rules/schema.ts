import type { Manifest } from '../../api/index.js';
import type { Violation } from '../../api/validate.js';
import { isObject } from '../../lib/json.js';
import { checkSchema, isSchemaKind } from '../check-schema.js';
import type { Broken, Rule } from './rule.js';

const first = ([violation]: readonly Violation[]): Broken | undefined =>
  violation && { field: violation.field, found: violation.found, allowed: violation.allowed };

/** An object has the types and members of its kind. These rules run first: other rules rely on the types. */
export const schemaRules: readonly Rule<Manifest>[] = [
  {
    id: 'object/pod-schema',
    kind: 'provider',
    because: 'the provider accepts the template, and the API server refuses its Pods',
    source: 'OpenAPI schema of a Pod template',
    check: ({ kind, ...object }) => {
      const spec = object['spec'];
      if (kind !== 'SandboxTemplate' || !isObject(spec)) return undefined;
      const template = { apiVersion: 'v1', kind: 'PodTemplate', template: spec['podTemplate'] };
      const broken = first(checkSchema('v1/PodTemplate', template));
      const within = (text = '') => text.replaceAll(/\btemplate(?=[.[]| has )/g, 'spec.podTemplate');
      return broken && { ...broken, field: within(broken.field), allowed: within(broken.allowed) };
    },
  },
  {
    id: 'object/schema',
    kind: 'provider',
    because: 'the API server refuses it',
    source: 'OpenAPI schema of the kind',
    check: (object) => {
      const kind = `${object.apiVersion}/${object.kind}`;
      return isSchemaKind(kind) ? first(checkSchema(kind, object)) : undefined;
    },
  },
];
