import type { Manifest } from '../api/index.js';
import { annotationKeys } from '../domain/labels.js';
import type { KubeClient } from '../kube/client.js';
import { startReflector } from '../kube/reflector.js';
import type { Reflector } from '../kube/reflector.js';
import type { ControllerSettings } from './settings.js';

/** Who paused new Tasks: the annotation of the runtime namespace is the platform's. `unread` = not known yet. */
export type Pause = 'platform' | 'namespace' | 'unread';

export interface PausesOptions extends Pick<ControllerSettings, 'runtimeNamespace' | 'taskNamespaces'> {
  /** The annotation of a namespace was read first, or changed. */
  readonly onChange: (namespace: string, paused: boolean) => void;
  readonly onError: (error: unknown) => void;
}

/**
 * Watches the annotation `orka.ai/paused` of the runtime namespace and of each Task namespace, each by name. It is no flag of the process:
 * another flag means another leader, which ends running prompts. A namespace that may not be read is not paused; one that could
 * not be read yet may be.
 */
export class Pauses {
  readonly #options: PausesOptions;
  readonly #reflectors: readonly Reflector[];
  /** By namespace; one that is not in it has not been read. */
  readonly #paused = new Map<string, boolean>();

  constructor(client: KubeClient, options: PausesOptions) {
    this.#options = options;
    this.#reflectors = [options.runtimeNamespace, ...options.taskNamespaces].map((name) => this.#watch(client, name));
  }

  /** Of new Tasks in a namespace; `undefined` = nobody paused them. */
  of(taskNamespace: string): Pause | undefined {
    const [platform, own] = [this.#options.runtimeNamespace, taskNamespace].map((name) => this.#paused.get(name));
    if (platform) return 'platform';
    if (own) return 'namespace';
    return platform === undefined || own === undefined ? 'unread' : undefined;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.stop()));
  }

  #watch(client: KubeClient, name: string): Reflector {
    const reflector = startReflector(client, {
      apiVersion: 'v1',
      kind: 'Namespace',
      fieldSelector: `metadata.name=${name}`,
      onChange: (key, _before, after) => {
        if (key === name) this.#learn(name, isPaused(after));
      },
      onError: this.#options.onError,
    });
    void reflector.synced.then(() => {
      if (!this.#paused.has(name)) this.#learn(name, false);
    });
    return reflector;
  }

  #learn(name: string, paused: boolean): void {
    if (this.#paused.get(name) === paused) return;
    this.#paused.set(name, paused);
    this.#options.onChange(name, paused);
  }
}

function isPaused(namespace: Manifest | undefined): boolean {
  return namespace?.metadata.annotations?.[annotationKeys.paused] === 'true';
}
