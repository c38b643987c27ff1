/** The product, installed on the cluster under test. */
import { cluster, kubectl } from './cluster.js';
import { ensureProxyToken, install, removeTasks, synthesize, uninstall } from './installation.js';
import type { Installation, Settings } from './installation.js';
import { startModel, stopModel } from './model.js';
import { refuseForeignTasks } from './own-cluster.js';

/** An installation with a model behind its provider proxy. */
export interface Installed extends Installation {
  /** What the model wants to see; known to the controller and to the proxy. */
  readonly proxyToken: string;
  /** Installs the same again with other settings; what is running goes on under the new ones. */
  readonly reinstall: (settings: Settings) => Promise<void>;
  /** Removes all of it but kinds and namespaces. Throws when something did not go by itself. */
  readonly remove: () => Promise<void>;
}

/** Installs as a platform engineer does and waits until the controller is available. What could not be installed is removed again. */
export async function installed(settings: Settings): Promise<Installed> {
  // What an interrupted run left on the cluster of this machine is ours; what is on another one is not.
  if (!cluster.node) await refuseForeignTasks(kubectl, () => false);
  const installation = await synthesize(settings);
  const { poolClass, image } = installation;
  const installWith = async (changed: Installation) => {
    try {
      await install(kubectl, changed);
    } catch (error) {
      throw new Error(`${String(error)}\n${await controllerLog(installation)}`, { cause: error });
    }
  };
  const remove = async () => {
    const log = await controllerLog(installation);
    const left = await uninstall(kubectl, installation);
    await stopModel(kubectl, poolClass);
    installation.forget();
    if (left.length > 0) throw new Error(`left behind:\n  ${left.join('\n  ')}\nthe controller's log before:\n${log}`);
  };
  try {
    await installWith(installation);
    await removeTasks(kubectl, installation);
    const proxyToken = await ensureProxyToken(kubectl, installation);
    await startModel(kubectl, poolClass, { image, token: proxyToken });
    return {
      ...installation,
      proxyToken,
      reinstall: async (changes) => {
        const changed = await synthesize(changes);
        await installWith(changed).finally(changed.forget);
      },
      remove,
    };
  } catch (error) {
    await remove().catch(() => undefined);
    throw error;
  }
}

/** The end of the log of every replica, and why a replica does not run. */
export async function controllerLog({ namespaces, deployment }: Installation, lines = 60): Promise<string> {
  const pods = ['-n', namespaces.controller, '-l', `app.kubernetes.io/name=${deployment.metadata.name}`];
  const said = (args: readonly string[]) => kubectl(args).catch((error: unknown) => String(error));
  const log = await said(['logs', ...pods, '--prefix', `--tail=${lines}`]);
  return log.includes('controller') ? log : `${log}\n${await said(['get', 'pods', ...pods, '-o', 'wide'])}`;
}
