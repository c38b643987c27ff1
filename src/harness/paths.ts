import { CodedError } from '../lib/errors.js';

/** An id that would not stand in a path as itself. */
export class PathError extends CodedError<'segment'> {}

/** One segment: 1 to 253 bytes of visible ASCII, nothing that a server could read as more or less than one segment. */
function segment(field: string, id: string): string {
  const plain = /^[\x21-\x7e]{1,253}$/.test(id) && !/[/\\?#%]/.test(id) && id !== '.' && id !== '..';
  if (!plain)
    throw new PathError('segment', {
      at: 'path',
      field,
      allowed: '1 to 253 visible ASCII characters without / \\ ? # %, and not . or ..',
    });
  return encodeURIComponent(id);
}

const sessions = '/v2/runtime-sessions';

/** Paths of a supervisor. Throws {@link PathError} before anything is sent. Source: dispatch.md §5.1. */
export const paths = {
  health: '/v2/health',
  capabilities: '/v2/capabilities',
  status: '/v2/status',
  drain: '/v2/drain',
  bootstrap: '/v2/credential-bootstrap',
  sessions,
  session: (id: string): string => `${sessions}/${segment('sessionID', id)}`,
  prompt: (id: string, promptID: string): string => `${paths.session(id)}/prompts/${segment('promptID', promptID)}`,
  lease: (id: string, promptID: string): string => `${paths.prompt(id, promptID)}/lease`,
  cancel: (id: string, promptID: string): string => `${paths.prompt(id, promptID)}/cancel`,
  permission: (id: string, promptID: string, requestID: string): string =>
    `${paths.prompt(id, promptID)}/permissions/${segment('requestID', requestID)}`,
  delta: (id: string, deltaID: string): string => `${paths.session(id)}/workspace-deltas/${segment('deltaID', deltaID)}`,
  finalization: (id: string): string => `${paths.session(id)}/publication-finalization`,
} as const;
