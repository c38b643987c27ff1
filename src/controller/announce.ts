import type { KubeEvent, Recorder } from '../kube/events.js';
import type { Log } from './log.js';
import type { Metrics } from './metrics.js';

export interface AnnouncerOptions {
  readonly recorder: Pick<Recorder, 'record'>;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'taskEnded' | 'taskRefused'>;
}

/**
 * Tells one fact once to each reader: an event for users of the object, a log line for operators (`warn` for a Warning), and a count by reason.
 */
export function createAnnouncer({ recorder, log, metrics }: AnnouncerOptions): (event: KubeEvent) => void {
  return (event) => {
    const { regarding, type, reason, action, note } = event;
    recorder.record(event);
    const about = { object: `${regarding.kind} ${regarding.metadata.namespace ?? ''}/${regarding.metadata.name}`, note };
    if (type === 'Warning') log.warn(reason, about);
    else log.info(reason, about);
    if (regarding.kind !== 'Task') return;
    if (action === 'Admit') metrics.taskRefused(reason);
    if (action === 'Settle') metrics.taskEnded(reason);
  };
}
