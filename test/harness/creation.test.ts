import { expect, test } from '@jest/globals';
import { workspaceFailure } from '../../src/harness/creation.js';
import type { WorkspaceFailure } from '../../src/harness/creation.js';
import { AcpError } from '../../src/supervisor/acp.js';
import { DownloadError } from '../../src/supervisor/artifact-download.js';
import { CreationError, creationRefusal } from '../../src/supervisor/creation-error.js';
import type { CreationStage } from '../../src/harness/creation.js';
import { WorkspaceError } from '../../src/supervisor/workspace.js';

const refused = new WorkspaceError('refused', { at: 'workspace', says: 'the name is reserved: a/.git' });
const changed = new WorkspaceError('changed', { at: 'workspace', says: 'it was replaced' });
const download = (code: DownloadError['code']) => new DownloadError(code, { at: 'workspace artifact', says: 'it did not come' });
const unusable = new AcpError('unusable', { at: 'agent', says: 'workspace artifact: no' });

test.each<[string, CreationStage, Error, WorkspaceFailure | undefined]>([
  ['a refused tree', 'workspace materialization', refused, { kind: 'refused', says: 'the name is reserved: a/.git' }],
  ['no answer', 'workspace materialization', download('unreachable'), { kind: 'download', says: 'it did not come' }],
  ['a refused download', 'workspace materialization', download('refused'), { kind: 'download', says: 'it did not come' }],
  ['other bytes', 'workspace materialization', download('mismatch'), { kind: 'download', says: 'it did not come' }],
  ['a folder that was replaced', 'workspace materialization', changed, undefined],
  ['a failure that is not told', 'workspace materialization', new Error('EIO'), undefined],
  ['an agent that cannot be used', 'provider adapter initialization', unusable, undefined],
])('a session that fails because of %s is read as its supervisor tells it', (_, stage, cause, expected) => {
  expect(workspaceFailure(creationRefusal(new CreationError(stage, cause), (text) => text).body)).toEqual(expected);
});

test.each([
  ['code', { code: 'invalid_request' as const, retryable: false }],
  ['kind of failure', { code: 'session_poisoned' as const, retryable: true }],
])('the words of a refused tree with another %s are not believed', (_, change) => {
  const message = 'creation failed: workspace materialization: workspace: the name is reserved: a/.git';
  expect(workspaceFailure({ protocol: 'orka.harness.v2', message, ...change })).toBeUndefined();
});
