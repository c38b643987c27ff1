import type { Manifest, Task } from '../api/index.js';
import { jittered } from '../kube/backoff.js';
import type { KubeClient } from '../kube/client.js';
import { sleep, systemClock } from '../kube/clock.js';
import type { Clock } from '../kube/clock.js';
import { mergePatch } from '../kube/patch.js';
import { startReflector } from '../kube/reflector.js';
import type { Reflector } from '../kube/reflector.js';
import { watchedKinds } from './world.js';

export interface UnservedTasksOptions {
  /** Task namespaces of this installation. */
  readonly served: readonly string[];
  readonly controllerNamespace: string;
  /** Field manager of the message. */
  readonly manager: string;
  readonly onError: (error: unknown) => void;
  readonly clock?: Clock;
}

/** Milliseconds between looks. */
const every = 15_000;
/** Age in milliseconds from which a Task without a phase waits in vain: another installation would have written one. */
const silentAfter = 60_000;
/** Messages of one look; the next look goes on. */
const mostAtOnce = 20;

/**
 * Writes a message on Tasks of namespaces that this installation does not serve. Such a Task has no phase and would give no reason. A Task
 * with a phase or a message is left alone: another installation may serve it.
 */
export class UnservedTasks {
  readonly #client: KubeClient;
  readonly #options: UnservedTasksOptions;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  readonly #reflector: Reflector;
  readonly #running: Promise<void>;

  constructor(client: KubeClient, options: UnservedTasksOptions) {
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#reflector = startReflector(client, {
      ...watchedKinds.tasks,
      namespace: '',
      fieldSelector: options.served.map((name) => `metadata.namespace!=${name}`).join(','),
      keep: brief,
      onChange: () => undefined,
      onError: options.onError,
    });
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#reflector.stop(), this.#running]);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await sleep(this.#clock, jittered(every), signal);
      const silent = this.#reflector.list().filter((task) => isSilent(task as unknown as Task, this.#clock.now()));
      for (const task of silent.slice(0, mostAtOnce)) await this.#explain(task);
    }
  }

  async #explain({ metadata }: Manifest): Promise<void> {
    const { namespace = '', name, resourceVersion = '' } = metadata;
    const { controllerNamespace, manager, onError } = this.#options;
    const message = unservedText(namespace, controllerNamespace);
    try {
      await mergePatch(
        this.#client,
        { ...watchedKinds.tasks, namespace, name },
        { status: { message } },
        { manager, resourceVersion, subresource: 'status', signal: this.#stopping.signal },
      );
    } catch (error) {
      if (!this.#stopping.signal.aborted) onError(error);
    }
  }
}

function unservedText(namespace: string, controllerNamespace: string): string {
  const remedy = 'the operator of the platform adds it to namespaces.tasks in platform.yaml and applies it';
  return `the controller in ${controllerNamespace} does not serve namespace ${namespace}; ${remedy}`;
}

/** Whether no controller wrote anything on a Task for a minute. */
function isSilent({ metadata, status }: Task, now: number): boolean {
  const created = Date.parse(metadata.creationTimestamp ?? '');
  const written = status?.phase !== undefined || status?.message !== undefined || status?.execution !== undefined;
  return !written && metadata.deletionTimestamp === undefined && now - created > silentAfter;
}

/** Prompts of other teams are not kept. */
function brief({ metadata, ...object }: Manifest): Manifest {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  const { phase, message, execution } = (object['status'] ?? {}) as NonNullable<Task['status']>;
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp },
    status: { phase, message, ...(execution === undefined ? {} : { execution: {} }) },
  };
}
