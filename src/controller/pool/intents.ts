import type { ActiveInstance } from '../../api/index.js';
import type { ConditionIntent, PoolCondition, StatusIntent } from './decision.js';

type Conditions = Partial<Record<PoolCondition, ConditionIntent>>;

const condition = (status: ConditionIntent['status'], reason: string, message: string): ConditionIntent => ({
  status,
  reason,
  message,
});
const closed = (message: string) => condition('False', 'AdmissionClosed', message);

/** Normal until something says otherwise. */
const admitted: Conditions = {
  PodSecurityReady: condition('True', 'PodSecurityConfigured', 'the namespace admits the Pod'),
  QuotaReady: condition('True', 'ResourcesAdmitted', 'no quota is exceeded'),
};

export function starting(message: string): StatusIntent {
  return {
    lifecycle: 'Starting',
    admission: 'Closed',
    instance: 'none',
    message,
    conditions: {
      ...admitted,
      AdmissionReady: closed('there is no instance yet'),
      SchedulingReady: condition('Unknown', 'SchedulingPending', 'there is no scheduled Pod yet'),
      RolloutReady: condition('Unknown', 'RolloutStarting', 'the instance is being started'),
    },
  };
}

/** An instance that is as it was, and takes nothing more for now. */
export function heldBack(lifecycle: StatusIntent['lifecycle'], message: string): StatusIntent {
  return { lifecycle, admission: 'Closed', instance: 'keep', message, conditions: { AdmissionReady: closed(message) } };
}

export function timedOut(message: string): StatusIntent {
  return {
    ...starting(message),
    lifecycle: 'Degraded',
    conditions: { AdmissionReady: closed(message), RolloutReady: condition('False', 'RolloutTimedOut', message) },
  };
}

/** Something is wrong. The text says which condition it belongs to. Source: workload.md §7.2. */
export function degraded(
  message: string,
  instance: StatusIntent['instance'] = 'none',
  scheduling?: ConditionIntent,
): StatusIntent {
  const text = message.toLowerCase();
  const security = ['podsecurity', 'pod security', 'restricted:'].some((word) => text.includes(word));
  const because: Conditions = security
    ? { PodSecurityReady: condition('False', 'PodSecurityRejected', message) }
    : text.includes('quota')
      ? { QuotaReady: condition('False', 'QuotaRejected', message) }
      : { RolloutReady: condition('False', 'RolloutFailed', message) };
  return {
    lifecycle: 'Degraded',
    admission: 'Closed',
    instance,
    message,
    conditions: { AdmissionReady: closed(message), ...because, ...(scheduling ? { SchedulingReady: scheduling } : {}) },
  };
}

/** A draining that takes longer than it may. The instance stays, and ends when it is quiet after all. */
export function drainTimedOut(message: string): StatusIntent {
  return {
    ...degraded(message, 'keep'),
    conditions: { AdmissionReady: closed(message), RolloutReady: condition('False', 'RolloutTimedOut', message) },
  };
}

/** The same, with reasons of its own on some conditions. */
export function reasoned(intent: StatusIntent, reasons: Readonly<Partial<Record<PoolCondition, string>>>): StatusIntent {
  const named = Object.entries(intent.conditions).map(([type, one]) => {
    const reason = reasons[type as PoolCondition];
    return [type, reason === undefined ? one : { ...one, reason }];
  });
  return { ...intent, conditions: Object.fromEntries(named) as Conditions };
}

export function ambiguous(message: string): StatusIntent {
  const both = condition('False', 'RuntimeAmbiguous', message);
  return {
    lifecycle: 'Ambiguous',
    admission: 'Ambiguous',
    instance: 'none',
    message,
    conditions: { AdmissionReady: both, RolloutReady: both },
  };
}

export function stopping(message: string): StatusIntent {
  return {
    lifecycle: 'Stopping',
    admission: 'Closed',
    instance: 'none',
    message,
    conditions: { AdmissionReady: closed(message), RolloutReady: condition('Unknown', 'RolloutStopping', message) },
  };
}

export function draining(message: string): StatusIntent {
  return {
    lifecycle: 'Draining',
    admission: 'Draining',
    instance: 'keep',
    message,
    conditions: { AdmissionReady: closed(message), RolloutReady: condition('Unknown', 'RolloutDraining', message) },
  };
}

export function quiescent(message: string): StatusIntent {
  return {
    lifecycle: 'Quiescent',
    admission: 'Draining',
    instance: 'keep',
    message,
    conditions: { AdmissionReady: closed(message), RolloutReady: condition('Unknown', 'RolloutQuiescent', message) },
  };
}

export function stopped(): StatusIntent {
  const message = 'scaled to zero';
  return {
    lifecycle: 'Stopped',
    admission: 'Closed',
    instance: 'none',
    message,
    conditions: {
      ...admitted,
      AdmissionReady: closed(message),
      SchedulingReady: condition('Unknown', 'ScaledToZero', message),
      RolloutReady: condition('True', 'ScaledToZero', message),
    },
  };
}

export function serving(instance: ActiveInstance, pressure: NonNullable<StatusIntent['pressure']>, full: boolean): StatusIntent {
  const message = full ? 'the instance is at capacity' : 'one exact instance accepts work';
  return {
    lifecycle: 'Serving',
    admission: full ? 'Closed' : 'Accepting',
    instance,
    message,
    pressure,
    conditions: {
      ...admitted,
      AdmissionReady: full ? condition('False', 'AtCapacity', message) : condition('True', 'Serving', message),
      SchedulingReady: condition('True', 'PodScheduled', 'the instance runs'),
      RolloutReady: condition('True', 'ExactInstanceReady', 'the instance is the one that is wanted'),
    },
  };
}
