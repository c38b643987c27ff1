import type { Manifest } from '../../api/index.js';
import { compact, defaultedPodSpec, firstDifference } from '../../domain/pod-spec.js';
import { holds, isObject } from '../../lib/json.js';
import type { Json, JsonObject } from '../../lib/json.js';

/** What the API server writes into a spec that does not say it. */
const serverDefaults: Readonly<Record<string, readonly string[]>> = {
  Service: ['sessionAffinity', 'ipFamilies', 'ipFamilyPolicy', 'internalTrafficPolicy'],
  SandboxWarmPool: ['updateStrategy'],
};
/** What it does not keep of a spec, because it means the same as nothing. */
const notKept: Readonly<Record<string, Readonly<Record<string, Json>>>> = { Service: { publishNotReadyAddresses: false } };

/** The one default that the provider's CRDs have in the middle of a Pod: the protocol of a port. Source: provider.md §1.6. */
function withPortDefaults(value: Json | undefined, name = ''): Json | undefined {
  if (Array.isArray(value)) {
    const items = value as readonly Json[];
    return items.map((item) =>
      name === 'ports' && isObject(item) && item['containerPort'] !== undefined
        ? { protocol: 'TCP', ...item }
        : (withPortDefaults(item) ?? null),
    );
  }
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, withPortDefaults(inner, member)]));
}

/** How many Pods a Deployment asks for is no part of what it was rendered as. */
function deploymentDiffers(wanted: Manifest, live: Manifest): boolean {
  const labels = { metadata: { labels: wanted.metadata.labels ?? {} } };
  if (!holds(live, labels)) return true;
  const [rendered, stored] = [wanted['spec'], live['spec']].map((spec) => normalDeployment(isObject(spec) ? spec : {}));
  return firstDifference(rendered, stored) !== undefined;
}

function normalDeployment({ replicas: _replicas, template, ...rest }: JsonObject): Json {
  const { metadata, spec } = isObject(template) ? template : {};
  const podSpec = isObject(spec) ? spec : {};
  return compact({ ...rest, metadata: metadata ?? {}, pod: defaultedPodSpec(podSpec) }) ?? {};
}

/**
 * Is a stored object other than the rendered one? A server-side apply keeps what another manager added, so what is too much counts as
 * much as what is missing: `egress: [{}]` on a policy rendered without rules opens it.
 */
export function differs(wanted: Manifest, live: Manifest): boolean {
  if (wanted.kind === 'Deployment') return deploymentDiffers(wanted, live);
  const labels = { metadata: { labels: wanted.metadata.labels ?? {}, annotations: wanted.metadata.annotations ?? {} } };
  if (!holds(live, labels)) return true;
  const [rendered, stored] = [withPortDefaults(wanted['spec']), live['spec']];
  if (!isObject(rendered) || !isObject(stored)) return true;
  const allowed = serverDefaults[wanted.kind] ?? [];
  const dropped = notKept[wanted.kind] ?? {};
  const kept = (spec: JsonObject) => Object.entries(spec).filter(([name, value]) => dropped[name] !== value);
  const expected = Object.fromEntries(kept(rendered));
  const comparable = Object.fromEntries(kept(stored).filter(([name]) => name in rendered || !allowed.includes(name)));
  return !holds(comparable, expected) || !holds(expected, comparable);
}
