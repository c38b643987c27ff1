/** Rights of the controller that are taken away and given back. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { labelKeys } from '../../src/domain/labels.js';
import { eventually, kubectl } from './support/cluster.js';
import { explained } from './support/evidence.js';
import { applyObjects, example, isOver, plainTaskLike, readTask, taskLike, taskOver } from './support/first-task.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';

const { namespace = '' } = example.task.metadata;
/** Seconds: the wait between tries of a right that is missing is half a minute. */
const soon = 90;

let product: Installed;
beforeAll(async () => {
  product = await installed({ gates: true });
  await applyObjects(kubectl, [example.agent]);
}, 600_000);
afterAll(async () => {
  await giveBack();
  await product.remove();
}, 600_000);

const name = 'orka-workspaces-controller';
const rightObjects = (): readonly Manifest[] =>
  product.manifests.filter(({ apiVersion }) => apiVersion === 'rbac.authorization.k8s.io/v1');
const giveBack = () =>
  kubectl(
    ['apply', '--server-side', '--force-conflicts', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: rightObjects() }),
  );

/** Takes the rights to one resource from a Role. */
async function take(role: string, at: string, resource: string): Promise<void> {
  const found = rightObjects().find(({ kind, metadata }) => kind === role && (metadata.namespace ?? '') === at);
  const rules = (found?.['rules'] as unknown as readonly { readonly resources: readonly string[] }[]).map((rule) => ({
    ...rule,
    resources: rule.resources.filter((one) => one !== resource),
  }));
  const left = rules.filter(({ resources }) => resources.length > 0);
  const where = at === '' ? [] : ['-n', at];
  await kubectl(['patch', role.toLowerCase(), name, ...where, '--type=merge', '-p', JSON.stringify({ rules: left })]);
}

interface ControllerPod extends Manifest {
  readonly status: { readonly containerStatuses?: readonly { readonly restartCount: number; readonly ready: boolean }[] };
}
async function controllerPods(): Promise<readonly ControllerPod[]> {
  const at = ['-n', product.namespaces.controller, '-l', `app.kubernetes.io/name=${name}`];
  return (JSON.parse(await kubectl(['get', 'pods', ...at, '-o', 'json'])) as { readonly items: readonly ControllerPod[] }).items;
}

/** Another process begins with the rights that there are now. @returns once it is ready */
async function restarted(): Promise<void> {
  const at = ['-n', product.namespaces.controller];
  await kubectl(['rollout', 'restart', `deployment/${name}`, ...at]);
  await kubectl(['rollout', 'status', `deployment/${name}`, ...at, '--timeout=120s']);
  await eventually('one controller', async () => ((await controllerPods()).length === 1 ? true : undefined));
}

async function readyz(): Promise<string> {
  const [pod] = await controllerPods();
  const at = `/api/v1/namespaces/${product.namespaces.controller}/pods/${pod?.metadata.name ?? ''}:8081/proxy/readyz`;
  return kubectl(['get', '--raw', at]);
}
const named = (right: string) =>
  eventually(`${right} on /readyz`, async () => ((await readyz()).includes(`may not ${right}`) ? true : undefined), soon);
const restarts = async () =>
  (await controllerPods()).flatMap(({ status }) => (status.containerStatuses ?? []).map(({ restartCount }) => restartCount));

describe.each<[string, () => Promise<unknown>, string]>([
  [
    'the Role of its namespace',
    () => kubectl(['delete', 'role', name, '-n', namespace]),
    `list agents.core.orka.ai in namespace ${namespace}`,
  ],
  ['the right to Tasks', () => take('ClusterRole', '', 'tasks'), `list tasks.core.orka.ai in namespace ${namespace}`],
  ['the right to Pods', () => take('Role', product.namespaces.runtime, 'pods'), 'list pods in namespace'],
])('a Task that is made while %s is missing', (what, remove, right) => {
  const task = `without-${what.replaceAll(' ', '-').toLowerCase()}`;

  test('waits for a controller that is ready and names the right, and succeeds once the right is given back', async () => {
    await explained(product, async () => {
      await remove();
      await restarted();
      await applyObjects(kubectl, [taskLike(task)]);
      await named(right);
      expect(isOver(await readTask(kubectl, { name: task, namespace }))).toBe(false);
      expect(await restarts()).toEqual([0]);
      await giveBack();
      expect((await taskOver(kubectl, { name: task, namespace }, 240)).status?.phase).toBe('Succeeded');
      const events = await kubectl(['get', 'events', '-n', product.namespaces.controller, '-o', 'jsonpath={.items[*].message}']);
      expect(events).toContain(`the controller may not ${right}`);
    });
  }, 600_000);
});

test('the Pod of a warm pool stays while the rights to its Tasks and children are taken and given back', async () => {
  await explained(product, async () => {
    await applyObjects(kubectl, [plainTaskLike('warms-a-pool')]);
    await taskOver(kubectl, { name: 'warms-a-pool', namespace }, 240);
    const ours = ['-n', product.namespaces.runtime, '-l', labelKeys.poolUid];
    const uids = () => kubectl(['get', 'pods', ...ours, '-o', 'jsonpath={.items[*].metadata.uid}']);
    const before = await uids();
    expect(before).not.toBe('');
    await take('ClusterRole', '', 'tasks');
    await take('Role', product.namespaces.runtime, 'pods');
    // Watches that are open go on; another process has none.
    await restarted();
    await named(`list tasks.core.orka.ai in namespace ${namespace}`);
    expect(await uids()).toBe(before);
    await giveBack();
    await eventually('a controller without a missing right', async () => ((await readyz()) === 'ok\n' ? true : undefined), soon);
  });
}, 600_000);
