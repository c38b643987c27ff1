import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { allExamples } from '../../examples/provider/all.js';
import type { Manifest } from '../../src/api/index.js';
import { nameHash } from '../../src/domain/provider-pod.js';
import { apply } from '../../src/kube/apply.js';
import { get, refOf } from '../../src/kube/client.js';
import type { ObjectRef } from '../../src/kube/client.js';
import { create } from '../../src/kube/create.js';
import { pointerSteps, valueAt } from '../../src/lib/json.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { manifestsOf } from '../../src/render/app.js';
import { casesNamespace, claim, otherNamespace, podTemplate, pool, ruleCases, sandbox, template } from '../support/rule-cases.js';
import type { RuleCase, Seen } from '../support/rule-cases.js';
import { applyAll, cluster, eventually, execIn, gone, kube, manager, namespace, readyPod } from './support/cluster.js';

const image = cluster.node?.images['pause']?.ref ?? 'registry.k8s.io/pause:3.10';
const shell = cluster.node?.images['test']?.ref ?? 'busybox:stable';
const cases = ruleCases(image);
const namespaces = [casesNamespace, otherNamespace].map((name) => namespace(name));

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

const named = (apiVersion: string, kind: string, name: string): ObjectRef => ({
  apiVersion,
  kind,
  name,
  namespace: casesNamespace,
});
const podOf = (name: string): ObjectRef => named('v1', 'Pod', name);
const policyOf = (of: string): ObjectRef => named('networking.k8s.io/v1', 'NetworkPolicy', `${of}-network-policy`);

const member = (object: Manifest | undefined, pointer: string): Json | undefined =>
  object && valueAt(object, pointerSteps(pointer));
const conditions = (object: Manifest | undefined): readonly Condition[] =>
  (member(object, '/status/conditions') ?? []) as unknown as readonly Condition[];
const condition = (object: Manifest | undefined, type: string): Condition | undefined =>
  conditions(object).find((one) => one.type === type);

/** The object once its condition is there and fits. */
function withCondition(ref: ObjectRef, type: string, fits: (one: Condition) => boolean): Promise<Manifest> {
  let last: Condition | undefined;
  return eventually(`${ref.kind} ${ref.name}: ${type}`, async () => {
    const object = await get(kube, ref);
    last = condition(object, type);
    return object && last && fits(last) ? object : undefined;
  }).catch((error: unknown) => {
    throw new Error(`found ${JSON.stringify(last)}`, { cause: error });
  });
}
const ready = (ref: ObjectRef): Promise<Manifest> => withCondition(ref, 'Ready', ({ status }) => status === 'True');

const post = (manifest: Manifest): Promise<Manifest> => create(kube, manifest, { manager });

async function created({ objects }: RuleCase): Promise<void> {
  for (const manifest of objects) await post(manifest);
}
/** Titles, case and what is seen, of all cases that are seen in one way. */
const casesOf = <How extends Seen['how']>(how: How) =>
  cases.flatMap((one) =>
    one.seen.how === how ? [[one.what, one.rule, one, one.seen as Extract<Seen, { readonly how: How }>] as const] : [],
  );
const last = ({ objects }: RuleCase): Manifest => objects.at(-1)!;
const caseOf = (rule: string): RuleCase => cases.find((one) => one.rule === rule)!;

beforeAll(async () => {
  for (const { metadata } of namespaces) await gone({ apiVersion: 'v1', kind: 'Namespace', name: metadata.name }, 240);
  await applyAll(namespaces);
}, 600_000);

afterAll(async () => {
  for (const { metadata } of namespaces) {
    const ref = { apiVersion: 'v1', kind: 'Namespace', name: metadata.name };
    await kube.request({ method: 'DELETE', path: await kube.pathOf(ref) });
  }
  for (const { metadata } of namespaces) await gone({ apiVersion: 'v1', kind: 'Namespace', name: metadata.name }, 240);
}, 600_000);

describe('the API server refuses at once', () => {
  test.each(casesOf('refused'))('%s (%s)', async (_, _rule, one, { says }) => {
    await expect(post(last(one))).rejects.toThrow(says);
  });
});

describe('the API server accepts, and the object stays not ready, with', () => {
  test.each(casesOf('condition'))('%s (%s)', async (_, _rule, one, { reason, says = /./ }) => {
    await created(one);
    const wanted = (found: Condition) => found.status === 'False' && found.reason === reason && says.test(found.message);
    await withCondition(refOf(last(one)), 'Ready', wanted);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(condition(await get(kube, refOf(last(one))), 'Ready')).toMatchObject({ status: 'False', reason });
  });
});

describe('the API server accepts, and the Pod runs without it,', () => {
  test.each(casesOf('pod-without'))('%s (%s)', async (_, _rule, one, { pointers, ...seen }) => {
    await created(one);
    const pod = await readyPod(podOf(seen.pod));
    const stored = member(await get(kube, refOf(last(one))), '/spec/podTemplate');
    for (const pointer of pointers) {
      expect(valueAt(stored!, pointerSteps(pointer))).toBeDefined();
      expect(valueAt(pod, pointerSteps(pointer))).toBeUndefined();
    }
  });
});

describe('the API server accepts, and the sandbox runs without the policy that was asked for, with', () => {
  test.each(casesOf('no-policy'))('%s (%s)', async (_, _rule, one) => {
    await created(one);
    await ready(refOf(last(one)));
    const uid = (await get(kube, refOf(one.objects.find(({ kind }) => kind === 'SandboxTemplate')!)))?.metadata.uid;
    expect(uid).toBeDefined();
    const policies = (await kube.request({
      method: 'GET',
      path: `/apis/networking.k8s.io/v1/namespaces/${casesNamespace}/networkpolicies`,
    })) as unknown as { readonly items: readonly Manifest[] };
    expect(policies.items.filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid))).toEqual([]);
  });

  test('the control run, a policy that is right, writes it', async () => {
    for (const one of [
      template('control', { podTemplate: podTemplate(image), networkPolicyManagement: 'Managed', networkPolicy: {} }),
      pool('control'),
      claim('control'),
    ])
      await post(one);
    await ready(refOf(claim('control')));
    const policy = await eventually('the policy', () => get(kube, policyOf('control')));
    expect(member(policy, '/spec/policyTypes')).toEqual(['Ingress', 'Egress']);
  });
});

test('such a sandbox can be reached by any Pod, the control run cannot (network-policy/ports)', async () => {
  // Ready before it listens, it would be taken for closed.
  const readinessProbe = { tcpSocket: { port: 8080 }, periodSeconds: 1 };
  const listening = (name: string, networkPolicy: JsonObject): readonly Manifest[] => [
    template(name, {
      podTemplate: podTemplate(shell, {}, { command: ['httpd', '-f', '-p', '8080', '-h', '/tmp'], readinessProbe }),
      networkPolicyManagement: 'Managed',
      networkPolicy,
    }),
    pool(name),
    claim(name),
  ];
  const port = (number: number): JsonObject => ({ egress: [{ ports: [{ protocol: 'TCP', port: number }] }] });
  const peer = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'bystander', namespace: casesNamespace },
    spec: podTemplate(shell, {}, { command: ['sleep', '3600'] })['spec'],
  } as Manifest;
  for (const manifest of [peer, ...listening('closed', port(80)), ...listening('open', port(0))]) await post(manifest);
  await readyPod(refOf(peer));
  const reach = async (name: string): Promise<string> => {
    const address = (await readyPod(podOf(name))).status.podIP ?? '';
    const script = `nc -w 2 ${address} 8080 </dev/null >/dev/null 2>&1 && echo open || echo closed`;
    return (await execIn(refOf(peer), ['sh', '-c', script])).trim();
  };
  for (const name of ['closed', 'open'])
    await eventually(`the policy of ${name} is enforced`, async () => ((await reach(name)) === name ? true : undefined));
});

test('the API server accepts all objects of the examples, unknown fields refused', async () => {
  const objects = manifestsOf(allExamples());
  expect(objects.length).toBeGreaterThan(30);
  for (const manifest of objects) {
    const { namespace: _namespace, ...metadata } = manifest.metadata;
    await create(kube, { ...manifest, metadata: { ...metadata, namespace: casesNamespace } }, { manager, dryRun: true });
  }
});

describe('the API server accepts, and no member of the pool gets ready, with', () => {
  test.each(casesOf('members'))('%s (%s)', async (_, _rule, one, { says }) => {
    await created(one);
    await eventually('a member that says why', async () => {
      const path = `/apis/agents.x-k8s.io/v1beta1/namespaces/${casesNamespace}/sandboxes`;
      const { items } = (await kube.request({ method: 'GET', path })) as unknown as { readonly items: readonly Manifest[] };
      const members = items.filter(({ metadata }) => metadata.name.startsWith(last(one).metadata.name));
      const said = members.map((found) => condition(found, 'Ready'));
      return said.find((found) => found?.reason === 'ReconcilerError' && says.test(found.message));
    });
  });
});

test('networkPolicy: null is dropped, and the policy opens the internet (template/null-network-policy)', async () => {
  const one = caseOf('template/null-network-policy');
  await created(one);
  expect(member(await get(kube, refOf(last(one))), '/spec/networkPolicy')).toBeUndefined();
  const policy = await eventually('the policy', () => get(kube, policyOf(last(one).metadata.name)));
  expect(member(policy, '/spec/egress/0/to/0/ipBlock/cidr')).toBe('0.0.0.0/0');
});

test('policies of two templates whose names have one hash select the same Pods (template/name-hash)', async () => {
  const one = caseOf('template/name-hash');
  await created(one);
  const names = one.objects.map(({ metadata }) => metadata.name);
  const selectors = await Promise.all(
    names.map(async (name) =>
      member(await eventually('a policy', () => get(kube, policyOf(name))), '/spec/podSelector/matchLabels'),
    ),
  );
  expect(selectors).toEqual(names.map((name) => ({ 'agents.x-k8s.io/sandbox-template-ref-hash': nameHash(name) })));
  expect(selectors[0]).toEqual(selectors[1]);
});

test('a Pod that is deleted from outside expires a claim that leaves it no time, and no other (claim/ttl)', async () => {
  const one = caseOf('claim/ttl');
  const patient = claim('patient', {
    warmPoolRef: { name: last(one).metadata.name },
    lifecycle: { ttlSecondsAfterFinished: 30 },
  });
  await created(one);
  await post(patient);
  const remove = async (ref: ObjectRef): Promise<Manifest> => {
    await ready(ref);
    const pod = podOf(ref.name);
    const before = await get(kube, pod);
    await kube.request({ method: 'DELETE', path: await kube.pathOf(pod), body: { apiVersion: 'v1', kind: 'DeleteOptions' } });
    return before!;
  };
  await remove(refOf(last(one)));
  await withCondition(refOf(last(one)), 'Ready', ({ reason }) => reason === 'ClaimExpired');
  const before = await remove(refOf(patient));
  await eventually('another Pod', async () => {
    const pod = await get(kube, podOf('patient'));
    return pod && pod.metadata.uid !== before.metadata.uid ? pod : undefined;
  });
  await readyPod(podOf('patient'));
  await ready(refOf(patient));
});

test('a claim never ends whose Pod always starts again (claim/ttl-restart-policy)', async () => {
  const spec = (restartPolicy: string): JsonObject => podTemplate(shell, { restartPolicy }, { command: ['true'] });
  const lifecycle = { lifecycle: { ttlSecondsAfterFinished: 600 } };
  for (const restartPolicy of ['Always', 'Never']) {
    const name = `ends-${restartPolicy.toLowerCase()}`;
    for (const manifest of [template(name, { podTemplate: spec(restartPolicy) }), pool(name), claim(name, lifecycle)])
      await post(manifest);
  }
  await withCondition(refOf(claim('ends-never')), 'Finished', ({ status }) => status === 'True');
  await eventually('a second start', async () => {
    const count = member(await get(kube, podOf('ends-always')), '/status/containerStatuses/0/restartCount');
    return typeof count === 'number' && count > 0 ? count : undefined;
  });
  expect(condition(await get(kube, refOf(claim('ends-always'))), 'Finished')).toBeUndefined();
});

/** A claim that was applied and then bound to a member of a pool. */
async function adopted(one: RuleCase): Promise<Manifest> {
  for (const manifest of one.objects.slice(0, -1))
    await post(
      manifest.kind === 'SandboxWarmPool'
        ? { ...manifest, spec: { ...(manifest['spec'] as JsonObject), replicas: 1 } }
        : manifest,
    );
  const poolRef = refOf(one.objects.at(-2)!);
  await eventually('a ready member', async () => member(await get(kube, poolRef), '/status/readyReplicas'));
  await apply(kube, last(one), { manager });
  const bound = await ready(refOf(last(one)));
  expect(member(bound, '/metadata/annotations/agents.x-k8s.io~1sandbox-name')).toBeDefined();
  return bound;
}

/** What the server says when a manifest is applied again. */
const again = (manifest: Manifest): Promise<string> =>
  kube
    .pathOf(refOf(manifest))
    .then((path) =>
      kube.request({
        method: 'PATCH',
        path,
        query: { fieldManager: manager, fieldValidation: 'Strict' },
        contentType: 'application/apply-patch+yaml',
        body: manifest,
      }),
    )
    .then(
      () => 'applied',
      (error: unknown) => String(error),
    );

test('adoption rewrites a time that is spelled otherwise, and applying again conflicts (claim/shutdown-time)', async () => {
  const one = caseOf('claim/shutdown-time');
  const bound = await adopted(one);
  expect(member(bound, '/spec/lifecycle/shutdownTime')).toBe('2099-01-01T02:00:00Z');
  expect(await again(last(one))).toMatch(/conflict.*shutdownTime/s);
});

test('adoption removes an empty map (claim/no-empty-collections)', async () => {
  const one = caseOf('claim/no-empty-collections');
  const bound = await adopted(one);
  expect(member(last(one), '/spec/additionalPodMetadata/annotations')).toEqual({});
  expect(member(bound, '/spec/additionalPodMetadata/annotations')).toBeUndefined();
  expect(bound.metadata.generation).toBe(2);
});

test('a volume without a source is an empty folder (pod/volumes)', async () => {
  const one = cases.find(({ rule, seen }) => rule === 'pod/volumes' && seen.how === 'test')!;
  await created(one);
  expect(member(await readyPod(podOf(last(one).metadata.name)), '/spec/volumes')).toEqual([{ name: 'a', emptyDir: {} }]);
});

test('a name that is one character too long keeps the Pod pending, one that is not does not (pod/name-length)', async () => {
  const one = caseOf('pod/name-length');
  const { name } = last(one).metadata;
  await created(one);
  const shorter = sandbox(name.slice(1), last(one)['spec'] as JsonObject);
  await post(shorter);
  await ready(refOf(shorter));
  const isPending = ({ reason, message }: Condition) =>
    reason === 'DependenciesNotReady' && message === 'Pod exists with phase: Pending';
  await withCondition(refOf(last(one)), 'Ready', isPending);
});

test('a binding that somebody else wrote is removed, and the claim starts cold (claim/bound)', async () => {
  const one = caseOf('claim/bound');
  await created(one);
  const bound = await ready(refOf(last(one)));
  expect(member(bound, '/metadata/annotations/agents.x-k8s.io~1sandbox-name')).toBeUndefined();
  expect(member(bound, '/status/sandbox/name')).toBe(bound.metadata.name);
});
