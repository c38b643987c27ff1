import type { SessionState } from '../harness/sessions.js';

/** Where a session may go from each state. Source: dispatch.md §6.5. */
const next: Readonly<Record<SessionState, readonly SessionState[]>> = {
  creating: ['idle', 'cancelling', 'poisoned'],
  idle: ['prompt_running', 'poisoned', 'deleting'],
  prompt_running: ['validating', 'cancelling'],
  validating: ['idle', 'preparing_publication', 'cancelling', 'poisoned'],
  preparing_publication: ['publication_prepared', 'cancelling', 'poisoned'],
  publication_prepared: ['publishing', 'finalizing', 'cancelling', 'poisoned'],
  publishing: ['verifying', 'poisoned'],
  verifying: ['poisoned'],
  finalizing: ['poisoned', 'deleting'],
  cancelling: ['poisoned'],
  poisoned: ['deleting'],
  deleting: ['deleted'],
  deleted: [],
};

export function mayMove(from: SessionState, to: SessionState): boolean {
  return next[from].includes(to);
}
