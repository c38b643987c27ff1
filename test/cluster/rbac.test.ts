/** What the controller may do on a real cluster: what was reviewed, nothing that it does not need, and nobody of ours may write a class. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Manifest, Task } from '../../src/api/index.js';
import { watchedKinds } from '../../src/controller/world.js';
import type { JsonObject } from '../../src/lib/json.js';
import { readInfo } from './info.js';
import { requestsOf } from './support/audit.js';
import type { ApiRequest } from './support/audit.js';
import { cluster, kube, kubectl, platform } from './support/cluster.js';
import { explained } from './support/evidence.js';
import { synthesize, uninstall } from './support/installation.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import {
  covers,
  grantText,
  grantsTo,
  groupsOf,
  holdersOf,
  includes,
  rightTexts,
  rightsOf,
  subjectText,
  usernameOf,
} from './support/rbac.js';
import type { Account, Grant, PolicyRule } from './support/rbac.js';
import { wholeLife } from './support/whole-life.js';

const { controller, runtime } = platform.namespaces;
const [tasks = ''] = platform.namespaces.tasks;
const account: Account = { namespace: controller, name: 'orka-workspaces-controller' };
const token = platform.classes[0]?.spec.providerProxy.tokenSecretRef.name ?? '';

let product: Installed;
let grants: readonly Grant[] = [];
let since = 0;

beforeAll(async () => {
  if (cluster.node) {
    // The Lease and the status of a class are only created once: what is left of an earlier run would hide that they are.
    const earlier = await synthesize();
    await uninstall(kubectl, earlier).finally(earlier.forget);
  }
  since = Date.now();
  product = await installed({ gates: true });
  grants = grantsTo(product.manifests, account);
}, 1_200_000);
afterAll(() => product.remove(), 600_000);

const list = async (resources: string): Promise<readonly Manifest[]> =>
  (JSON.parse(await kubectl(['get', resources, '-A', '-o', 'json'])) as { readonly items: readonly Manifest[] }).items;

/** What the server says that an account may do in a namespace. */
async function rulesIn(namespace: string, of: Account): Promise<readonly PolicyRule[]> {
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } };
  const { status } = JSON.parse(
    await kubectl(['create', `--as=${usernameOf(of)}`, '--validate=false', '-f', '-', '-o', 'json'], JSON.stringify(review)),
  ) as { readonly status: { readonly resourceRules: readonly PolicyRule[]; readonly nonResourceRules: readonly PolicyRule[] } };
  return [...status.resourceRules, ...status.nonResourceRules];
}

/** What an account may do in each namespace, without what every account of its namespace may do. */
async function ownRights(of: Account): Promise<Readonly<Record<string, readonly string[]>>> {
  const anybody = { ...of, name: 'orka-test-nobody' };
  const namespaces = (await list('namespaces')).map(({ metadata }) => metadata.name);
  const found = await Promise.all(
    namespaces.map(async (namespace) => {
      const [own, common] = await Promise.all(
        [of, anybody].map(async (one) => rightTexts(rightsOf(await rulesIn(namespace, one)))),
      );
      return [namespace, own?.filter((right) => !common?.includes(right)) ?? []] as const;
    }),
  );
  return Object.fromEntries(found);
}

/** Asks the server whether an account may do something: verb, resource as `resource.group/subresource`, namespace (`''`: all), name. */
async function may(of: Account, [verb, target, namespace, name = '']: Question): Promise<boolean> {
  const [whole = '', subresource = ''] = target.split('/');
  const [resource = '', ...group] = whole.split('.');
  const body: JsonObject = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user: usernameOf(of),
      groups: groupsOf(of),
      resourceAttributes: { verb, group: group.join('.'), resource, subresource, namespace, name },
    },
  };
  const answer = await kube.request({ method: 'POST', path: '/apis/authorization.k8s.io/v1/subjectaccessreviews', body });
  return (answer as unknown as { readonly status: { readonly allowed: boolean } }).status.allowed;
}
type Question = readonly [verb: string, target: string, namespace: string, name?: string];

const questions = (verbs: readonly string[], targets: readonly string[], namespaces: readonly string[]): readonly Question[] =>
  verbs.flatMap((verb) => targets.flatMap((target) => namespaces.map((namespace) => [verb, target, namespace] as const)));

async function allowed(of: Account, asked: readonly Question[]): Promise<readonly string[]> {
  const answers = await Promise.all(asked.map((question) => may(of, question)));
  return asked.filter((_, index) => answers[index]).map((question) => question.join(' '));
}

describe('the controller may do', () => {
  test('in each namespace of the cluster exactly what the rendered roles say', async () => {
    const found = await ownRights(account);
    const namespaces = Object.keys(found);
    expect(namespaces).toEqual(expect.arrayContaining(['default', 'kube-system', controller, runtime, tasks]));
    const granted = (namespace: string) => rightTexts(grants.filter((one) => ['', namespace].includes(one.namespace)));
    expect(found).toEqual(Object.fromEntries(namespaces.map((namespace) => [namespace, granted(namespace)])));
  });

  test('in the whole cluster nothing but see its own namespaces, and finish Tasks and pools', () => {
    const everywhere = grants.filter(({ namespace }) => namespace === '');
    const own = [...new Set([runtime, ...platform.namespaces.tasks])];
    const seen = ['get', 'list', 'watch'].flatMap((verb) => own.map((name) => `${verb} namespaces ${name}`));
    const nodes = ['list nodes', 'watch nodes'];
    const finished = ['tasks', 'runtimepools'].flatMap((resource) => [
      ...['get', 'list', 'watch', 'patch'].map((verb) => `${verb} core.orka.ai/${resource}`),
      `patch core.orka.ai/${resource}/status`,
    ]);
    expect(rightTexts(everywhere)).toEqual([...seen, ...nodes, ...finished].sort());
  });

  test('what it is asked about here, when it may', async () => {
    const may: readonly Question[] = [
      ['get', 'secrets', controller, token],
      ['get', 'namespaces', '', runtime],
      ['create', 'sandboxclaims.extensions.agents.x-k8s.io', runtime],
      ['patch', 'tasks.core.orka.ai/status', tasks],
    ];
    expect(await allowed(account, may)).toHaveLength(may.length);
  });
});

describe('the controller may not', () => {
  const all = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
  const write = all.slice(3);
  /** What is left over may be deleted, one by one. */
  const changing = write.filter((verb) => verb !== 'delete');
  const others = ['default', 'kube-system', ''];

  test.each<readonly [what: string, asked: readonly Question[]]>([
    [
      'read a Secret of its namespace but the token of a class, nor list any',
      [
        ['get', 'secrets', controller],
        ['get', 'secrets', controller, 'another'],
        ...questions(all.slice(1), ['secrets'], [controller]),
      ],
    ],
    ['read or write a Secret or a ConfigMap elsewhere', questions(all, ['secrets', 'configmaps'], others)],
    ['change a Secret that there is', questions(['update', 'patch', 'deletecollection'], ['secrets'], [runtime, tasks])],
    ['list the Secrets beside Tasks', questions(['list', 'watch'], ['secrets', 'configmaps'], [tasks])],
    [
      'change a claim',
      questions(['update', 'patch', 'deletecollection'], ['sandboxclaims.extensions.agents.x-k8s.io'], [runtime, '']),
    ],
    [
      'change what the provider made',
      questions(changing, ['sandboxes.agents.x-k8s.io', 'sandboxes.agents.x-k8s.io/status'], [runtime, '']),
    ],
    [
      'make or change a Pod, or what makes Pods',
      [
        ...questions(changing, ['pods'], [runtime]),
        ...questions(write, ['pods'], [controller, tasks, '']),
        ...questions(write, ['jobs.batch', 'replicasets.apps'], [controller, runtime, tasks, '']),
        // Plain pools have one, where sandboxes are.
        ...questions(write, ['deployments.apps'], [controller, tasks, '']),
        ...questions(['patch', 'deletecollection'], ['deployments.apps'], [runtime]),
      ],
    ],
    [
      'enter a Pod, or read its log',
      questions(
        ['get', 'create'],
        ['exec', 'attach', 'portforward', 'proxy', 'log', 'ephemeralcontainers', 'eviction'].map((one) => `pods/${one}`),
        [controller, runtime, tasks],
      ),
    ],
    ['write a class', questions(write, ['runtimepoolclasses.core.orka.ai'], [controller, runtime, tasks, ''])],
    [
      'become somebody else',
      [
        ...questions(['impersonate'], ['users', 'groups', 'serviceaccounts'], ['', controller, 'kube-system']),
        ...questions(['create'], ['serviceaccounts/token'], [controller, runtime, tasks, 'kube-system']),
      ],
    ],
    [
      'give rights to anybody',
      questions(
        [...write, 'bind', 'escalate'],
        ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'].map((one) => `${one}.rbac.authorization.k8s.io`),
        [controller, runtime, tasks, ''],
      ),
    ],
    [
      'see or change the cluster',
      questions(
        all,
        [
          'namespaces',
          'persistentvolumes',
          'customresourcedefinitions.apiextensions.k8s.io',
          'pods',
          'secrets',
          'configmaps',
          'agents.core.orka.ai',
          'runtimepoolclasses.core.orka.ai',
        ],
        [''],
      ),
    ],
    // It sees which nodes are cordoned, since pools leave those.
    ['change a node, or use one', questions([...write, 'get'], ['nodes', 'nodes/proxy', 'nodes/status'], [''])],
    [
      'make or end Tasks and pools anywhere but where it runs them',
      questions(['create', 'update', 'delete', 'deletecollection'], ['tasks.core.orka.ai', 'runtimepools.core.orka.ai'], others),
    ],
    [
      'see another namespace',
      [
        ['get', 'namespaces', '', 'kube-system'],
        ['get', 'namespaces', '', controller],
      ],
    ],
  ])('%s', async (_, asked) => {
    expect(await allowed(account, asked)).toEqual([]);
  });

  test('do so when it tries', async () => {
    const as = `--as=${usernameOf(account)}`;
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'rbac-test' },
      spec: { containers: [{ name: 'a', image: 'a' }] },
    };
    const claim = {
      apiVersion: watchedKinds.claims.apiVersion,
      kind: watchedKinds.claims.kind,
      metadata: { name: 'rbac-test' },
      spec: { warmPoolRef: { name: 'any' } },
    };
    const tries = [
      kubectl(['get', 'secrets', '-A', as]),
      kubectl(['get', 'secret', 'another', '-n', controller, as]),
      kubectl(['apply', '--server-side', '-n', runtime, '-f', '-', as], JSON.stringify(claim)),
      kubectl(['create', '--dry-run=server', '-n', runtime, '-f', '-', as], JSON.stringify(pod)),
    ];
    for (const outcome of await Promise.allSettled(tries))
      expect(outcome).toMatchObject({ status: 'rejected', reason: { message: expect.stringContaining('Forbidden') } });
  });
});

describe('a class can be written', () => {
  const verbs = ['create', 'update', 'patch', 'delete', 'deletecollection'];
  const writers = async () => {
    const objects = await list('clusterroles,roles,clusterrolebindings,rolebindings');
    return holdersOf(objects, { group: 'core.orka.ai', resource: 'runtimepoolclasses', namespace: controller, verbs });
  };
  /** Those that we ship, and those that Pods have which name none. */
  const shipped = (): readonly Account[] => [
    ...product.manifests
      .filter(({ kind }) => kind === 'ServiceAccount')
      .map(({ metadata: { name, namespace = '' } }) => ({ name, namespace })),
    ...[controller, runtime, ...platform.namespaces.tasks].map((namespace) => ({ name: 'default', namespace })),
  ];

  test('by no account that we ship, nor by one that Pods have beside it', async () => {
    expect(shipped()).toContainEqual(account);
    const found = await writers();
    expect(found.filter(({ subject }) => shipped().some((one) => includes(subject, one)))).toEqual([]);
    const asked = questions(verbs, ['runtimepoolclasses.core.orka.ai'], [controller]);
    for (const one of shipped()) expect([one, await allowed(one, asked)]).toEqual([one, []]);
  });

  (cluster.node ? test : test.skip)(
    "by administrators, and deleted by Kubernetes' own collectors (others than on the cluster of this machine are not known)",
    async () => {
      expect(
        (await writers()).map(({ subject, role, verbs: held }) => `${subjectText(subject)} (${role}): ${held.join(' ')}`),
      ).toEqual([
        // Its members are also beyond RBAC: the API server asks nobody about them.
        'Group system:masters (ClusterRole cluster-admin): create update patch delete deletecollection',
        'ServiceAccount kube-system/generic-garbage-collector (ClusterRole system:controller:generic-garbage-collector): update patch delete',
        'ServiceAccount kube-system/namespace-controller (ClusterRole system:controller:namespace-controller): delete deletecollection',
      ]);
    },
  );
});

/** Rights that one life need not use, each with the reason why it is there. */
const kept: readonly { readonly namespace: string; readonly right: string; readonly because: string }[] = [
  ...['tasks', 'runtimepools'].map((resource) => ({
    namespace: '',
    right: `get core.orka.ai/${resource}`,
    because: 'read again after a conflict, which needs two writers in the same milliseconds',
  })),
  {
    namespace: runtime,
    right: 'get apps/deployments',
    because: 'read again after a conflict with the Deployment controller, which writes its status',
  },
  ...['create', 'patch'].map((verb) => ({
    namespace: controller,
    right: `${verb} events`,
    because: 'says which right is missing',
  })),
  {
    namespace: tasks,
    right: 'delete core.orka.ai/tasks',
    because: 'deletes finished Tasks that have a time to live, which the one of this life has not',
  },
  ...['delete agents.x-k8s.io/sandboxes', 'delete pods'].map((right) => ({
    namespace: runtime,
    right,
    because: 'ends what an orphaning deletion of a claim leaves',
  })),
];

/** As {@link grantText} has it. */
const keptText = ({ namespace, right }: (typeof kept)[number]) => `${namespace === '' ? 'everywhere' : namespace}: ${right}`;

(cluster.node ? describe : describe.skip)('in a whole life (needs the audit log, so the node of the cluster)', () => {
  let ended: Task;
  let requests: readonly ApiRequest[] = [];

  beforeAll(async () => {
    ended = await explained(product, () => wholeLife(product));
    requests = await requestsOf(readInfo()?.auditLog ?? '', usernameOf(account), since);
  }, 1_200_000);

  test('a Task succeeds', () => {
    expect(ended.status).toMatchObject({ phase: 'Succeeded', resultRef: { available: true } });
  });

  test('nothing that the controller asks for is denied', () => {
    expect(requests.length).toBeGreaterThan(100);
    expect(requests.filter(({ code }) => code === 401 || code === 403).map(({ what }) => what)).toEqual([]);
  });

  test('every right of the controller is used, or is kept for a reason', () => {
    const used = (grant: Grant) => requests.some(({ target }) => target && covers(grant, target));
    const reasons = new Set(kept.map(keptText));
    const unused = grants.filter((grant) => !used(grant)).map(grantText);
    expect(unused.filter((grant) => !reasons.has(grant))).toEqual([]);
  });

  test('every right that is kept for a reason is one that it has', () => {
    const granted = new Set(grants.map(grantText));
    expect(kept.map(keptText).filter((one) => !granted.has(one))).toEqual([]);
  });
});
