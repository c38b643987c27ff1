// Plain JavaScript: a child process loads this file as it is, before and after a build.

/**
 * Becomes the user of a session, for good. A process that changes its user itself, without a new program after it, cannot be traced or
 * opened in /proc by others of that user.
 *
 * @param {import('./identities.js').SessionIdentity} identity
 */
export function becomeUser({ uid, gid }) {
  // Node's own handler would open a debugger for every process that may send the signal.
  process.on('SIGUSR1', () => undefined);
  process.setgroups?.([]);
  process.setgid?.(gid);
  process.setuid?.(uid);
}
