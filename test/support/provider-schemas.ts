import type { CompactNode } from '../../src/constructs/check-schema.js';
import { schemaKinds, schemaTypes } from '../../src/constructs/schemas.js';
import type { JsonObject } from '../../src/lib/json.js';

const expand = (node: CompactNode | string): JsonObject => {
  if (typeof node === 'string') return expand(schemaTypes[node]!);
  const { properties = {}, items, additionalProperties, ...rest } = node;
  const members = Object.entries(properties).map(([name, member]) => [name, expand(member)] as const);
  return {
    ...(rest as unknown as JsonObject),
    ...(members.length > 0 ? { properties: Object.fromEntries(members) } : {}),
    ...(items === undefined ? {} : { items: expand(items) }),
    ...(additionalProperties === undefined ? {} : { additionalProperties: expand(additionalProperties) }),
  };
};

/** The provider's kinds as the pinned release, v1.0.3, publishes them. */
export function pinnedSchemas(): Record<string, JsonObject> {
  const names = Object.keys(schemaKinds).filter((name) => name.startsWith('extensions.agents.x-k8s.io/'));
  return Object.fromEntries(
    names.map((name) => {
      const [group = '', version = '', kind = ''] = name.split('/');
      const schema = expand(schemaKinds[name as keyof typeof schemaKinds]);
      return [kind, { ...schema, 'x-kubernetes-group-version-kind': [{ group, version, kind }] }];
    }),
  );
}
