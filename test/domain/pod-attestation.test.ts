import { describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { applyPatch } from '../../src/constructs/patch.js';
import type { PatchOperation } from '../../src/constructs/patch.js';
import { attest, attestRendered, differsFromAccepted } from '../../src/domain/attestation.js';
import type { Materialization } from '../../src/domain/attestation.js';
import { admittedDigest, attestAdmitted } from '../../src/domain/pod-attestation.js';
import { expectedPod } from '../../src/domain/provider-pod.js';
import { describeFinding } from '../../src/lib/errors.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { claim, materialized, template } from '../support/pool-observation.js';

const { sandbox } = materialized(template, claim, { sandbox: 'sandbox-uid', pod: 'pod-uid' });
const expected = expectedPod(sandbox);

type Mutation = readonly PatchOperation[];
const add = (path: string, value: Json): PatchOperation => ({ op: 'add', path, value });
const patched = (pod: Manifest, mutation: Mutation): Manifest => applyPatch('Pod', pod, mutation);

/** The Pod as it is stored some time after its creation, changed by `mutation`. */
const stored = (mutation: Mutation = []): Manifest => {
  const pod = patched(expected, mutation);
  return {
    ...pod,
    metadata: { ...pod.metadata, uid: 'pod-uid', resourceVersion: '12' },
    spec: { ...(pod['spec'] as JsonObject), nodeName: 'node1' },
  };
};
/** What a dry run of the expected Pod answers where admission does `mutation`. */
const answered = (mutation: Mutation = [], name = 'dry-run-0123456789ab'): Manifest =>
  patched({ ...expected, metadata: { ...expected.metadata, name } }, mutation);
const chain = (pod: Manifest): Materialization => ({ template, claim, sandbox, pod });

/** As the controller of an admission-aware class compares. */
const aware = (pod: Manifest, answer: Manifest) => attestRendered(chain(pod)) ?? attestAdmitted(pod, answer);

const sidecar: JsonObject = { name: 'proxy', image: 'example.com/proxy:1', env: [{ name: 'LEVEL', value: 'info' }] };
const runtime = '/spec/containers/0';
type Outcome = 'accepted' | 10 | 11 | 12;
const rows: readonly (readonly [what: string, mutation: Mutation, strict: Outcome, byAdmission: Outcome, byHand: Outcome])[] = [
  ['nothing', [], 'accepted', 'accepted', 'accepted'],
  ['a sidecar', [add('/spec/containers/-', sidecar)], 12, 'accepted', 12],
  ['a sidecar before the supervisor', [add('/spec/containers/0', sidecar)], 12, 'accepted', 12],
  ['an init container', [add('/spec/initContainers', [sidecar])], 12, 'accepted', 12],
  [
    'a volume that the supervisor mounts',
    [add('/spec/volumes/-', { name: 'ca', emptyDir: {} }), add(`${runtime}/volumeMounts/-`, { name: 'ca', mountPath: '/ca' })],
    12,
    'accepted',
    12,
  ],
  ['a variable', [add(`${runtime}/env/-`, { name: 'HTTP_PROXY', value: 'http://proxy' })], 12, 'accepted', 12],
  ['a variable before all others', [add(`${runtime}/env/0`, { name: 'A', value: 'b' })], 12, 'accepted', 12],
  ['an annotation', [add('/metadata/annotations/sidecar.example.com~1status', 'injected')], 11, 'accepted', 11],
  ['a label', [add('/metadata/labels/example.com~1team', 'a')], 10, 'accepted', 10],
  ['a toleration', [add('/spec/tolerations', [{ key: 'spot', operator: 'Exists' }])], 12, 'accepted', 12],
  [
    'a profile beside that of seccomp',
    [add('/spec/securityContext/appArmorProfile', { type: 'RuntimeDefault' })],
    12,
    'accepted',
    12,
  ],
  ['a limit that was not rendered', [add(`${runtime}/resources/limits/example.com~1fpga`, '0')], 12, 'accepted', 12],
  [
    'limits of a LimitRange, and its note',
    [
      add(`${runtime}/resources/limits/example.com~1fpga`, '0'),
      add('/metadata/annotations/kubernetes.io~1limit-ranger', 'LimitRanger plugin set: …'),
    ],
    11,
    'accepted',
    11,
  ],
  ['pull secrets of the ServiceAccount', [add('/spec/imagePullSecrets', [{ name: 'registry' }])], 'accepted', 'accepted', 12],
  ['a priority class', [add('/spec/priorityClassName', 'low'), add('/spec/priority', -1)], 'accepted', 'accepted', 12],
  ['another image', [{ op: 'replace', path: `${runtime}/image`, value: 'example.com/other:1' }], 12, 12, 12],
  ['arguments', [add(`${runtime}/args`, ['--debug'])], 12, 12, 12],
  ['a command', [add(`${runtime}/command`, ['/bin/sh'])], 12, 12, 12],
  ['another value of a rendered variable', [{ op: 'replace', path: `${runtime}/env/0/value`, value: ':9' }], 12, 12, 12],
  ['a second variable of a rendered name', [add(`${runtime}/env/-`, { name: 'ORKA_ACP_MODEL', value: 'x' })], 12, 12, 12],
  ['a missing mount', [{ op: 'remove', path: `${runtime}/volumeMounts/0` }], 12, 12, 12],
  ['a missing container', [{ op: 'replace', path: '/spec/containers', value: [sidecar] }], 12, 12, 12],
  ['a capability', [add(`${runtime}/securityContext/capabilities/add/-`, 'NET_RAW')], 12, 12, 12],
  [
    'another seccomp profile',
    [{ op: 'replace', path: '/spec/securityContext/seccompProfile/type', value: 'Unconfined' }],
    12,
    12,
    12,
  ],
  ['a smaller limit', [{ op: 'replace', path: `${runtime}/resources/limits/memory`, value: '1Mi' }], 12, 12, 12],
  [
    'the same limit in another spelling',
    [{ op: 'replace', path: `${runtime}/resources/limits/cpu`, value: '2000m' }],
    'accepted',
    'accepted',
    'accepted',
  ],
  ['a token of a ServiceAccount', [{ op: 'replace', path: '/spec/automountServiceAccountToken', value: true }], 12, 12, 12],
  ['an ephemeral container', [add('/spec/ephemeralContainers', [sidecar])], 12, 12, 12],
  ['a missing label', [{ op: 'remove', path: '/metadata/labels/orka.ai~1network-role' }], 10, 10, 10],
  ['another pool in a label', [{ op: 'replace', path: '/metadata/labels/orka.ai~1runtime-pool-uid', value: 'x' }], 10, 10, 10],
  ["another label of the provider's", [add('/metadata/labels/agents.x-k8s.io~1created-by', 'controller')], 10, 10, 10],
  ['another label of ours', [add('/metadata/labels/orka.ai~1runtime-pool-auth', 'true')], 10, 10, 10],
  [
    'another profile in an annotation',
    [{ op: 'replace', path: '/metadata/annotations/orka.ai~1runtime-profile-digest', value: 'x' }],
    11,
    11,
    11,
  ],
  ["another annotation of the provider's", [add('/metadata/annotations/agents.x-k8s.io~1x', 'y')], 11, 11, 11],
];

describe.each(rows.map(([what, mutation, strict, byAdmission, byHand]) => ({ what, mutation, strict, byAdmission, byHand })))(
  'a Pod with $what',
  ({ mutation, strict, byAdmission, byHand }) => {
    const outcome = (mismatch: { readonly check: number } | undefined) => mismatch?.check ?? 'accepted';

    test(`is ${strict} where it is compared strictly`, () => {
      expect(outcome(attest(chain(stored(mutation))))).toBe(strict);
    });
    test(`is ${byAdmission} where admission is taken into account and made it so`, () => {
      expect(outcome(aware(stored(mutation), answered(mutation)))).toBe(byAdmission);
    });
    test(`is ${byHand} where admission is taken into account and did not make it so`, () => {
      expect(outcome(aware(stored(mutation), answered()))).toBe(byHand);
    });
  },
);

test('a Pod without what admission would add now is not what admission makes of it', () => {
  expect(aware(stored(), answered([add('/spec/containers/-', sidecar)]))?.finding).toMatchObject({
    field: 'spec.containers',
    found: ['runtime'],
    allowed: '["runtime","proxy"], which is what admission makes of the rendered Pod now',
  });
});

describe('a Sandbox that is not as rendered is refused whatever admission does', () => {
  test.each([
    ['its template', 4, '/spec/podTemplate/spec/containers/0/image'],
    ['its owner', 1, '/metadata/ownerReferences/0/uid'],
  ])('%s', (_what, check, path) => {
    const changed = applyPatch<Manifest>('Sandbox', sandbox, [{ op: 'replace', path, value: 'another' }]);
    expect(attestRendered({ template, claim, sandbox: changed, pod: stored() })?.check).toBe(check);
  });

  test('so is the Pod of another Sandbox', () => {
    const foreign = patched(stored(), [{ op: 'replace', path: '/metadata/ownerReferences/0/uid', value: 'another' }]);
    expect(attestRendered(chain(foreign))?.check).toBe(9);
  });
});

describe('what differs between two creations of the same Pod is equal', () => {
  const token = (name: string): Mutation => [
    add('/spec/volumes/-', { name, projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }),
    add('/spec/containers/-', { ...sidecar, volumeMounts: [{ name, mountPath: '/var/run/secrets' }] }),
  ];
  const equal = (live: Mutation, answer: Mutation): boolean => aware(stored(live), answered(answer)) === undefined;

  test("the random end that the server gives the volume of a ServiceAccount's token", () => {
    expect(equal(token('kube-api-access-b4z9x'), token('kube-api-access-w2c7q'))).toBe(true);
  });

  test('no other random end', () => {
    expect(equal(token('vault-b4z9x'), token('vault-w2c7q'))).toBe(false);
    expect(equal(token('kube-api-access-aeiou'), token('kube-api-access-w2c7q'))).toBe(false);
  });

  test('the node, and gates that are open', () => {
    expect(equal([], [add('/spec/schedulingGates', [{ name: 'example.com/quota' }])])).toBe(true);
  });

  test('the name of the Pod, wherever admission wrote it', () => {
    const noting = (name: string): Mutation => [
      add('/metadata/annotations/example.com~1pod', `runtimes/${name}`),
      add(`${runtime}/env/-`, { name: 'HOST', value: name }),
    ];
    const name = 'dry-run-0123456789ab';
    expect(aware(stored(noting(expected.metadata.name)), answered(noting(name), name))).toBeUndefined();
    expect(aware(stored(noting('another')), answered(noting(name), name))?.check).toBe(11);
  });
});

test('what admission does otherwise each time is a difference that says what', () => {
  const at = (time: string): Mutation => [add('/metadata/annotations/example.com~1injected-at', time)];
  const mismatch = aware(stored(at('10:00')), answered(at('10:01')));
  expect(mismatch && describeFinding(mismatch.finding)).toBe(
    `Pod orka-runtimes/${expected.metadata.name}: metadata.annotations[example.com/injected-at]: found "10:00", allowed: 10:01, which is what admission makes of the rendered Pod now`,
  );
});

test('the value of a variable that admission wrote is not told', () => {
  const token = (value: string): Mutation => [add(`${runtime}/env/-`, { name: 'TOKEN', value })];
  const mismatch = aware(stored(token('secret-1')), answered(token('secret-2')));
  expect(mismatch && describeFinding(mismatch.finding)).not.toMatch(/secret-[12]/);
});

describe('once accepted', () => {
  const injected: Mutation = [add('/spec/containers/-', sidecar)];
  const accepted = admittedDigest(stored(injected));

  test('a Pod is the same until something of it changes', () => {
    const later = { ...stored(injected), status: { phase: 'Running' } };
    expect(differsFromAccepted(chain(later), accepted)).toBe(false);
    expect(differsFromAccepted(chain(stored([...injected, add('/metadata/labels/a', 'b')])), accepted)).toBe(true);
  });

  test('a Sandbox that changes makes the chain another', () => {
    const changed = applyPatch<Manifest>('Sandbox', sandbox, [add('/spec/podTemplate/metadata/labels/a', 'b')]);
    expect(differsFromAccepted({ template, claim, sandbox: changed, pod: stored(injected) }, accepted)).toBe(true);
  });

  test('without admission a Pod is compared with what was rendered', () => {
    expect([differsFromAccepted(chain(stored()), undefined), differsFromAccepted(chain(stored(injected)), undefined)]).toEqual([
      false,
      true,
    ]);
  });
});

test('the expected Pod lists what the provider copied from the template, in order and without what is its own', () => {
  const { annotations = {} } = expected.metadata;
  const labels = Object.keys(expected.metadata.labels ?? {}).filter((key) => !key.startsWith('agents.x-k8s.io/'));
  expect(annotations['agents.x-k8s.io/propagated-labels']).toBe(labels.sort().join(','));
  expect(annotations['agents.x-k8s.io/propagated-annotations']?.split(',')).toEqual(
    Object.keys(annotations)
      .filter((key) => !key.startsWith('agents.x-k8s.io/'))
      .sort(),
  );
});

describe('the labels that a node gives to its Pods', () => {
  const zoned = stored([add('/metadata/labels/topology.kubernetes.io~1zone', 'a')]);

  test('are no difference, neither by themselves nor beside what admission makes', () => {
    expect([attest(chain(zoned)), aware(zoned, answered())]).toEqual([undefined, undefined]);
  });
});
