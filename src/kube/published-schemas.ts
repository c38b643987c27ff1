import { isObject, valueAt } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { rootOf } from './client.js';
import type { CallOptions, KubeClient, ObjectKind } from './client.js';
import { KubeError } from './errors.js';

/** Schemas of a group and version as the API server publishes them, to every account. None when the server publishes none. */
export async function publishedSchemas(
  client: KubeClient,
  apiVersion: string,
  options: CallOptions = {},
): Promise<readonly JsonObject[]> {
  try {
    const document = await client.request({ method: 'GET', path: `/openapi/v3${rootOf(apiVersion)}`, ...options });
    const schemas = valueAt(document, ['components', 'schemas']);
    return isObject(schemas) ? Object.values(schemas).filter(isObject) : [];
  } catch (error) {
    if (error instanceof KubeError && error.status === 404) return [];
    throw error;
  }
}

/** The schema of a kind among those of its group. */
export function schemaOf(schemas: readonly JsonObject[], { apiVersion, kind }: ObjectKind): JsonObject | undefined {
  const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  const isSame = (name: Json) =>
    isObject(name) && name['group'] === group && name['version'] === version && name['kind'] === kind;
  return schemas.find((schema) => {
    const names = schema['x-kubernetes-group-version-kind'];
    return Array.isArray(names) && (names as readonly Json[]).some(isSame);
  });
}
