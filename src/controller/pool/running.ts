import {
  admitting,
  identitiesExhausted,
  notAccepted,
  notAttested,
  notBound,
  notProbed,
  notSeeded,
  restarted,
  unhealthy,
} from './admitting.js';
import { cordoned, rollingOut } from './ending.js';
import {
  classUnusable,
  credentialsConsumed,
  credentialsLost,
  credentialsUnknown,
  deploymentChanged,
  secretsStale,
  switchedOff,
  templateChanged,
  workloadAbsent,
} from './preconditions.js';
import { firstOf, onlyOf } from './rule.js';
import { claimAbsent, claimGoing, claimRefused, coldStart, ended, orphaned } from './starting.js';

/** How a wanted pool gets from nothing to an instance that takes work, and stays there. Source: workload.md §7.3–7.4. */
export const running = firstOf([
  cordoned,
  classUnusable,
  switchedOff,
  credentialsConsumed,
  credentialsUnknown,
  credentialsLost,
  onlyOf('workspace', templateChanged),
  onlyOf('plain', deploymentChanged),
  rollingOut,
  workloadAbsent,
  secretsStale,
  claimGoing,
  orphaned,
  claimAbsent,
  claimRefused,
  ended,
  coldStart,
  onlyOf('workspace', notAttested),
  onlyOf('workspace', notBound),
  onlyOf('workspace', notSeeded),
  notProbed,
  notAccepted,
  restarted,
  identitiesExhausted,
  unhealthy,
  admitting,
]);
