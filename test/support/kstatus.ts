import type { Condition, Manifest } from '../../src/api/index.js';

/** What a GitOps tool makes of an object while it waits for it. */
export type KStatus = 'Terminating' | 'InProgress' | 'Failed' | 'Current';

/**
 * The rules of kstatus for kinds that it does not know, in its order. Source: sigs.k8s.io/cli-utils, pkg/kstatus, `Compute`:
 *
 * 1. `metadata.deletionTimestamp` → Terminating
 * 2. `status.observedGeneration` that is not `metadata.generation` → InProgress; without the field the rule is passed over
 * 3. condition `Reconciling` True → InProgress, `Stalled` True → Failed
 * 4. condition `Ready` False or Unknown → InProgress, True → Current
 * 5. otherwise → Current
 */
export function kstatusOf({ metadata, status }: Manifest): KStatus {
  const { observedGeneration, conditions = [] } = (status ?? {}) as {
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
  };
  const statusOf = (type: string) => conditions.find((condition) => condition.type === type)?.status;
  if (metadata.deletionTimestamp !== undefined) return 'Terminating';
  if (observedGeneration !== undefined && observedGeneration !== metadata.generation) return 'InProgress';
  if (statusOf('Reconciling') === 'True') return 'InProgress';
  if (statusOf('Stalled') === 'True') return 'Failed';
  return statusOf('Ready') === undefined || statusOf('Ready') === 'True' ? 'Current' : 'InProgress';
}

/**
 * What is wrong with the conditions of a status. Sources: Kubernetes API conventions ("Typical status properties": conditions are a map by
 * type, reasons are CamelCase, lastTransitionTime moves with the status only) and kstatus (`Reconciling` and `Stalled` are there only while they
 * are true).
 */
export function conditionProblems({ metadata, status }: Manifest): readonly string[] {
  const { observedGeneration, conditions = [] } = (status ?? {}) as {
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
  };
  const generation = metadata.generation ?? 0;
  const types = conditions.map(({ type }) => type);
  return [
    ...(observedGeneration !== undefined && observedGeneration > generation ? ['observedGeneration is ahead'] : []),
    ...types.filter((type, index) => types.indexOf(type) < index).map((type) => `${type} stands twice`),
    ...conditions.flatMap(({ type, status: is, reason, message, lastTransitionTime, observedGeneration: seen }) => [
      ...(/^[A-Z][A-Za-z0-9]*$/.test(reason) ? [] : [`${type}: reason ${reason}`]),
      ...(message.trim() === '' ? [`${type}: no message`] : []),
      ...(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(lastTransitionTime) ? [] : [`${type}: time ${lastTransitionTime}`]),
      ...(seen === undefined || seen <= generation ? [] : [`${type}: observedGeneration is ahead`]),
      ...(['Reconciling', 'Stalled'].includes(type) && is !== 'True' ? [`${type} is there although it is ${is}`] : []),
    ]),
  ];
}
