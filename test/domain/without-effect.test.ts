import { describe, expect, test } from '@jest/globals';
import { AgentSpecSchema, TaskSpecSchema } from '../../src/api/index.js';
import { admit } from '../../src/domain/admission/admit.js';
import { available } from '../../src/domain/available.js';
import { unusedAgentFields, unusedTaskFields, withoutEffect } from '../../src/domain/without-effect.js';
import { agent, task } from '../support/objects.js';

const hosting = { agentSandboxEnabled: true, workspaceDispatchEnabled: true, defaultProvider: '', forges: [], available };

/** What a field is when it is set to something that means something. */
const taskFields = {
  used: [
    'type',
    'prompt',
    'agentRef',
    'agentRuntime',
    'execution',
    'timeout',
    'priority',
    'workspace',
    'ttlSecondsAfterFinished',
  ],
  refused: {
    sessionRef: { name: 's' },
    priorTaskRef: { name: 't' },
    transaction: { id: 'x' },
    resources: { limits: { cpu: '1' } },
    secretRef: { name: 's' },
    image: 'x',
    command: ['x'],
    args: ['x'],
    env: [{ name: 'X' }],
    schedule: '* * * * *',
    suspend: true,
  },
};
const agentFields = {
  used: ['runtime', 'model', 'systemPrompt', 'tools', 'skills', 'execution'],
  refused: { providerRef: { name: 'p' }, resources: { limits: { cpu: '1' } }, rateLimit: { requestsPerMinute: 1 } },
};

describe('every field of', () => {
  test('a Task is used, refused by its name, or said to have no effect', () => {
    const noted = unusedTaskFields.map(({ field }) => field);
    const known = [...taskFields.used, ...Object.keys(taskFields.refused), ...noted];
    expect(Object.keys(TaskSpecSchema.properties).filter((name) => !known.includes(name))).toEqual([]);
    for (const [field, value] of Object.entries(taskFields.refused))
      expect(admit({ task: task({ [field]: value }), agent: agent(), hosting })?.finding.field).toContain(`spec.${field}`);
  });

  test('an Agent is used, refused by its name, or said to have no effect', () => {
    const noted = unusedAgentFields.map(({ field }) => field);
    const known = [...agentFields.used, ...Object.keys(agentFields.refused), ...noted];
    expect(Object.keys(AgentSpecSchema.properties).filter((name) => !known.includes(name))).toEqual([]);
    for (const [field, value] of Object.entries(agentFields.refused))
      expect(admit({ task: task(), agent: agent({ [field]: value }), hosting })?.finding.field).toBe(`spec.${field}`);
  });
});

test('a limit that nobody would enforce is refused, since a user relies on it', () => {
  expect(admit({ task: task(), agent: agent({ rateLimit: { requestsPerMinute: 10 } }), hosting })?.rule).toBe('rate-limit');
  expect(admit({ task: task(), agent: agent({ rateLimit: {} }), hosting })).toBeUndefined();
});

test('fields that are absent or empty are not named', () => {
  expect(withoutEffect(task({ webhookURL: '', ai: {} }), agent({ coordination: {} }))).toEqual([]);
});

test('settings of a workspace that is not asked for are named', () => {
  const fields = withoutEffect(task({ execution: { workspace: { enabled: false, reusePolicy: 'none' } } }), agent());
  expect(fields).toMatchObject([{ at: expect.stringMatching(/^Task /), field: 'spec.execution.workspace' }]);
});

test('an empty workspace is named, one that is switched off is not', () => {
  const fields = (workspace: object) => withoutEffect(task({ execution: { workspace } }), agent()).map(({ field }) => field);
  expect(fields({})).toEqual(['spec.execution.workspace']);
  expect(fields({ enabled: false })).toEqual([]);
  expect(fields({ enabled: true })).toEqual([]);
});
