// When what happened to one Task, by the clock of whoever watches: the API's own timestamps are of whole seconds.

import { watch } from './watch.js';

/** @typedef {import('./watch.js').Change} Change */
/** @typedef {import('../../../src/api/index.js').Task} Task */
/** @typedef {import('../../../src/api/index.js').RuntimePool} RuntimePool */

/** In the order in which they happen. */
export const steps = /** @type {const} */ ([
  'Task created',
  'pool created',
  'claim created',
  'Pod created',
  'Pod running',
  'Serving',
  'session starting',
  'prompt submitted',
  'prompt ended',
  'Succeeded',
]);

/** @typedef {(typeof steps)[number]} Step */

/** States of a Task's execution that say that a step is done; later ones say so as well. */
const order = [
  'Queued',
  'Reserved',
  'SessionStarting',
  'Planned',
  'Submitting',
  'SubmittedUnknown',
  'Accepted',
  'Running',
  'Settling',
  'Succeeded',
];
const reached = /** @type {const} */ ({
  'session starting': order.indexOf('SessionStarting'),
  'prompt submitted': order.indexOf('Submitting'),
  'prompt ended': order.indexOf('Settling'),
});

/** @param {unknown} object @returns {{ readonly metadata: { readonly uid: string }, readonly status?: Record<string, unknown> }} */
const seen = (object) => /** @type {ReturnType<typeof seen>} */ (object);

/**
 * Watches Tasks, pools, claims and Pods. While it does there may be one Task at a time.
 *
 * @param {{ readonly kubectl: string, readonly kubeconfig: string }} cluster
 * @param {{ readonly tasks: string, readonly runtime: string }} namespaces
 */
export function startTimeline(cluster, namespaces) {
  /** @type {Map<Step, number>} */
  let times = new Map();
  /** @type {Task | undefined} */
  let task;
  /** Objects of before. @type {Set<string>} */
  const old = new Set();
  /** @param {Step} step @param {number} at */
  const note = (step, at) => {
    if (!times.has(step)) times.set(step, at);
  };

  /** @type {Readonly<Record<string, (change: Change) => void>>} */
  const handlers = {
    [`/apis/core.orka.ai/v1alpha1/namespaces/${namespaces.tasks}/tasks`]: ({ object, at }) => {
      task = /** @type {Task} */ (/** @type {unknown} */ (object));
      const { status } = task;
      note('Task created', at);
      const state = order.indexOf(status?.execution?.state ?? '');
      for (const [step, from] of Object.entries(reached)) if (state >= from) note(/** @type {Step} */ (step), at);
      if (status?.phase === 'Succeeded') note('Succeeded', at);
    },
    [`/apis/core.orka.ai/v1alpha1/namespaces/${namespaces.tasks}/runtimepools`]: ({ object, at }) => {
      const { status } = /** @type {RuntimePool} */ (/** @type {unknown} */ (object));
      note('pool created', at);
      if (status?.lifecycle === 'Serving') note('Serving', at);
    },
    [`/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${namespaces.runtime}/sandboxclaims`]: ({ at }) =>
      note('claim created', at),
    [`/api/v1/namespaces/${namespaces.runtime}/pods`]: ({ object, at }) => {
      note('Pod created', at);
      if (seen(object).status?.['phase'] === 'Running') note('Pod running', at);
    },
  };
  const watches = Object.entries(handlers).map(([path, handle]) =>
    watch(cluster, path, (change) => {
      const { uid } = seen(change.object).metadata;
      if (change.type === 'DELETED') old.add(uid);
      else if (!old.has(uid)) handle(change);
    }),
  );
  return {
    /** What was seen so far. @returns {ReadonlyMap<Step, number>} milliseconds since the epoch */
    times: () => times,
    /** The Task as it was seen last. */
    task: () => task,
    /** Forgets what was seen. */
    restart: () => {
      task = undefined;
      times = new Map();
    },
    stop: () => watches.forEach((one) => one.stop()),
  };
}
