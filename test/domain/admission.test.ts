import { describe, expect, test } from '@jest/globals';
import type { Agent, ExecutionWorkspaceStatus, Task } from '../../src/api/index.js';
import { admit } from '../../src/domain/admission/admit.js';
import { assess } from '../../src/domain/admission/assess.js';
import { refusedStatus } from '../../src/domain/admission/project.js';
import type { Hosting } from '../../src/domain/admission/rule.js';
import { available } from '../../src/domain/available.js';
import { missingClass } from '../../src/domain/missing-class.js';
import { describeFinding } from '../../src/lib/errors.js';
import { resolveBinding, sessionUidProblem } from '../../src/domain/binding.js';
import { agent, task } from '../support/objects.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

interface Flags {
  readonly agentSandboxEnabled: boolean;
  readonly acpWorkspaceDispatchEnabled: boolean;
  readonly substrateEnabled: boolean;
  readonly executionWorkspaceDefaultProvider: string;
}
interface Verdict {
  readonly verdict: 'accepted' | 'rejected';
  readonly gate?: string;
  readonly taskPhase: string;
  readonly executionWorkspace: ExecutionWorkspaceStatus | null;
}
const { vectors, sessionUIDResolution } = readVectors<{
  vectors: Vector<{ task: Task; agent: Agent | null; flags: Flags }, Verdict>[];
  sessionUIDResolution: Vector<
    { task: Task; defaultProvider: string; sessionUID: string },
    { ok: boolean; sessionUID?: string; sessionKey?: string; bindingDigest?: string }
  >[];
}>('admission');

/** Where we decide otherwise than the reference, on purpose. */
const deviations: Readonly<Record<string, string>> = {
  '0-agent-secret-ref':
    'an Agent with secretRef is valid: model access comes from the proxy of the class, and plan says that the reference is not used',
  'R-builtin-unclassified-plain': 'an absent contractVersion means orka.harness.v2',
  'accepted-v1-route-when-v1-enabled': 'orka.harness.v1 is refused by name; there is no switch for it',
  'R-builtin-v1-enabled-workspace':
    'orka.harness.v1 is refused by name, without a workspace status, as the reference does when v1 is off',
  'R-runtimeRef-missing-object':
    'an external runtime is refused without looking it up, so a workspace that was asked for gets its status',
  'R-runtimeRef-v2-no-workspace': 'refused, by the same rule with and without a workspace',
  'R-acp-disabled': 'there is no mode without runtime pools',
  'B-templateRef-default-template-configured': 'there is no switch for a default template, so the status names none',
  'B-status-cleanup-default-retain': 'there is no switch for a default cleanup policy, so the status says delete',
};

const gateNames: Readonly<Record<string, readonly string[]>> = {
  'task-agent-compatibility': ['compatibility'],
  A: ['shape'],
  B: ['routing', 'workspace'],
};

function hosting(flags: Flags): Hosting {
  return {
    agentSandboxEnabled: flags.agentSandboxEnabled,
    workspaceDispatchEnabled: flags.acpWorkspaceDispatchEnabled,
    defaultProvider: flags.executionWorkspaceDefaultProvider,
    forges: [],
    available: { substrate: flags.substrateEnabled, sessionReuse: true, plainPools: true },
  };
}

const withoutText = ({ message: _message, lastUpdateTime: _time, ...rest }: ExecutionWorkspaceStatus) => rest;

describe('the gates', () => {
  test.each(vectors.filter(({ name }) => !(name in deviations)).map((vector) => ({ ...vector })))(
    'decide as the golden value: $name',
    ({ input, output }) => {
      const refusal = admit({ task: input.task, agent: input.agent ?? undefined, hosting: hosting(input.flags) });
      expect(refusal === undefined ? 'accepted' : 'rejected').toBe(output.verdict);
      if (!refusal) return;
      expect(gateNames[output.gate ?? '']).toContain(refusal.gate);
      const status = refusedStatus(input.task, refusal, input.flags.executionWorkspaceDefaultProvider, '2026-01-01T00:00:00Z');
      expect(status.phase).toBe('Failed');
      expect(status.executionWorkspace ? withoutText(status.executionWorkspace) : null).toEqual(
        output.executionWorkspace ? withoutText(output.executionWorkspace) : null,
      );
      expect(refusal.finding).toMatchObject({
        at: expect.stringMatching(/^(Task|Agent) /),
        field: expect.any(String),
      });
      // Whose move it is: the author's, who is told what is allowed, or the operator's.
      expect(refusal.finding.allowed ?? refusal.finding.remedy).toEqual(expect.any(String));
    },
  );

  test('every deviation is about a vector that exists', () => {
    expect(Object.keys(deviations).filter((name) => !vectors.some((vector) => vector.name === name))).toEqual([]);
  });
});

/** A Task that reuses nothing has no Session UID, whoever passes one; the reference leaves that to its callers. */
const droppedSessionUid = 'none-with-a-passed-session-uid-keeps-it-quirk';

test('a Session UID that is passed for a Task that reuses nothing is dropped', () => {
  const vector = sessionUIDResolution.find(({ name }) => name === droppedSessionUid);
  if (!vector) throw new Error('no such vector');
  expect(resolveBinding(vector.input.task, vector.input.defaultProvider, vector.input.sessionUID)).toEqual(
    resolveBinding(vector.input.task, vector.input.defaultProvider),
  );
});

test.each(sessionUIDResolution.filter(({ name }) => name !== droppedSessionUid).map((vector) => ({ ...vector })))(
  'a Session UID binds as the golden value: $name',
  ({ input, output }) => {
    expect(sessionUidProblem(input.sessionUID) === undefined).toBe(output.ok);
    if (!output.ok) return;
    const { sessionUID, sessionKey, bindingDigest } = resolveBinding(input.task, input.defaultProvider, input.sessionUID) ?? {};
    expect({ sessionUID, sessionKey, bindingDigest }).toEqual({
      sessionUID: output.sessionUID,
      sessionKey: output.sessionKey,
      bindingDigest: output.bindingDigest,
    });
  },
);

const open: Hosting = {
  agentSandboxEnabled: true,
  workspaceDispatchEnabled: true,
  defaultProvider: '',
  forges: ['github.com', 'git.example:8443'],
  available,
};
const refused = (change: Partial<Task['spec']>, by: Partial<Hosting> = {}, of?: Agent) =>
  admit({ task: task(change), agent: of ?? agent(), hosting: { ...open, ...by } });

describe('what the reference decides otherwise', () => {
  test('an Agent of another namespace is refused, and not one of the same name taken for it', () => {
    expect(refused({ agentRef: { name: 'coder', namespace: 'team-b' } })).toMatchObject({
      rule: 'agent-namespace',
      projection: 'task',
      finding: { field: 'spec.agentRef.namespace', found: 'team-b' },
    });
  });

  test('the namespace of the Task may be named', () => {
    expect(refused({ agentRef: { name: 'coder', namespace: 'team-a' } })).toBeUndefined();
  });

  test('an Agent with a secretRef is admitted', () => {
    expect(admit({ task: task(), agent: agent({ secretRef: { name: 'k' } }), hosting: open })).toBeUndefined();
  });

  test('an Agent without a contract version is admitted', () => {
    expect(admit({ task: task(), agent: agent({ runtime: { type: 'codex' } }), hosting: open })).toBeUndefined();
  });

  test('an Agent of orka.harness.v1 is refused by name and writes no workspace status', () => {
    const refusal = admit({
      task: task(),
      agent: agent({ runtime: { type: 'codex', contractVersion: 'orka.harness.v1' } }),
      hosting: open,
    });
    expect(refusal).toMatchObject({ rule: 'contract', projection: 'task', finding: { found: 'orka.harness.v1' } });
  });

  test('an external runtime is refused, with a workspace status where a workspace was asked for', () => {
    const external = agent({ runtime: { runtimeRef: { name: 'ext' } } });
    expect(refused({}, {}, external)).toMatchObject({ rule: 'external-runtime', projection: 'workspace' });
    expect(refused({ execution: {} }, {}, external)).toMatchObject({ rule: 'external-runtime', projection: 'task' });
  });
});

describe('what this version does not run is refused by name', () => {
  test('substrate', () => {
    const refusal = refused({
      execution: { workspace: { enabled: true, provider: 'substrate', templateRef: { name: 'base' } } },
    });
    expect(refusal).toMatchObject({
      gate: 'workspace',
      rule: 'substrate',
      projection: 'workspace',
      finding: { allowed: expect.stringContaining('not available in this version') },
    });
  });

  test('session reuse', () => {
    const refusal = refused({ sessionRef: { name: 's1' }, execution: { workspace: { enabled: true, reusePolicy: 'session' } } });
    expect(refusal).toMatchObject({
      gate: 'workspace',
      rule: 'session-reuse',
      projection: 'workspace',
      finding: { allowed: expect.stringContaining('not available in this version') },
    });
  });

  test.each([
    ['substrate', { provider: 'substrate' }],
    ['substrate', { provider: 'substrate', templateRef: { name: 'No Name', namespace: 'Elsewhere' } }],
    ['substrate', { provider: 'substrate', boot: true, cleanupPolicy: 'retain', onDetach: 'Suspend' }],
    ['session-reuse', { reusePolicy: 'session' }],
    ['session-reuse', { reusePolicy: 'session', workspaceSlot: 'second', boot: true }],
    ['class', { classRef: { name: ' ' } }],
  ] as const)('%s, at once, whatever else is wrong: %j', (rule, workspace) => {
    expect(refused({ execution: { workspace: { enabled: true, ...workspace } } })).toMatchObject({
      rule,
      projection: 'workspace',
      finding: { allowed: expect.stringContaining('not available in this version') },
    });
  });

  test('no refusal advises a switch that does not exist', () => {
    const gates = ['controller.gates.agentSandbox', 'controller.gates.workspaceDispatch'];
    for (const { input, name } of vectors) {
      for (const hosting of [open, { ...open, agentSandboxEnabled: false }, { ...open, workspaceDispatchEnabled: false }]) {
        const refusal = admit({ task: input.task, agent: input.agent ?? undefined, hosting });
        const text = refusal ? describeFinding(refusal.finding) : '';
        const named = [...text.matchAll(/--[a-z]+[a-z-]*|controller\.gates\.[A-Za-z]+/g)].map(([one]) => one);
        expect([name, named.filter((one) => !gates.includes(one))]).toEqual([name, []]);
      }
    }
  });
});

describe('a refusal says who has to do what, with the key of platform.yaml', () => {
  const text = (refusal: ReturnType<typeof admit>) => (refusal ? describeFinding(refusal.finding) : 'admitted');
  const operator = (key: string) => `the operator of the platform sets ${key} in platform.yaml and applies it`;

  test.each([
    ['agentSandboxEnabled', 'provider: sandboxes of agent-sandbox', 'controller.gates.agentSandbox: true'],
    ['workspaceDispatchEnabled', 'enabled: workspaces', 'controller.gates.workspaceDispatch: true'],
  ])('a switch that is off: %s', (name, what, key) => {
    expect(text(refused({}, { [name]: false }))).toBe(
      `Task team-a/t1: spec.execution.workspace.${what} are switched off in this installation; ${operator(key)}`,
    );
  });

  test.each<[string, Partial<Task['spec']>, string]>([
    ['an image', { image: 'alpine' }, 'classes.<name>.runtime.image'],
    ['resources', { resources: { limits: { cpu: '1' } } }, 'classes.<name>.pod.resources'],
    ['a node selector', { execution: { nodeSelector: { disk: 'ssd' } } }, 'classes.<name>.pod '],
    ['a credential', { secretRef: { name: 'key' } }, 'classes.<name>.providerProxy'],
  ])('what belongs to the class: %s', (_, spec, key) => {
    const says = text(refused(spec));
    expect(says).toContain(key);
    expect(says).toContain('which the operator sets');
  });

  test('a class that is missing: the message names the classes that exist', () => {
    const classes = [
      { name: 'claude-large', providerKind: 'claude', resourceClass: 'standard' },
      { name: 'codex-small', providerKind: 'codex', resourceClass: 'small' },
    ];
    const outcome = assess({ task: task(), agent: agent(), hosting: open, classMissing: missingClass('codex', classes) });
    expect('refusal' in outcome && describeFinding(outcome.refusal.finding)).toBe(
      'Task team-a/t1: RuntimePoolClass: there is no RuntimePoolClass for codex/standard; classes that exist: ' +
        'claude-large (claude/standard), codex-small (codex/small); the operator of the platform adds the class under ' +
        'classes in platform.yaml and applies it, or the Agent names another runtime in spec.runtime.type',
    );
  });

  test.each([
    [undefined, 'there is no RuntimePoolClass for codex/standard'],
    [[], 'there is no RuntimePoolClass for codex/standard, and no other class either'],
  ])('of classes that are not known, or not there, nothing is made up', (known, says) => {
    expect(missingClass('codex', known)).toBe(says);
  });

  test('only ten of many classes are named', () => {
    const many = Array.from({ length: 30 }, (_, index) => ({
      name: `c${String(index).padStart(2, '0')}`,
      providerKind: 'codex',
      resourceClass: 'small',
    }));
    expect(missingClass('codex', many)).toMatch(/c09 \(codex\/small\) and 20 more$/);
  });
});

test('the shape of a workspace is judged before the switches', () => {
  const off = { agentSandboxEnabled: false, workspaceDispatchEnabled: false };
  expect(refused({ execution: { workspace: { enabled: true, boot: true } } }, off)?.rule).toBe('boot');
  expect(refused({}, off)?.rule).toBe('sandbox-switch');
  expect(refused({}, { workspaceDispatchEnabled: false })?.rule).toBe('dispatch-switch');
});

test('a long message is cut at 1024 bytes, between characters, and marked', () => {
  const refusal = refused({ execution: { workspace: { enabled: true, reusePolicy: 'x' as never } } });
  if (!refusal) throw new Error('admitted');
  const finding = { ...refusal.finding, allowed: 'é'.repeat(2000) };
  const { message = '' } = refusedStatus(task(), { ...refusal, finding }, '', '2026-01-01T00:00:00Z');
  expect(Buffer.byteLength(message.replace('...<truncated>', ''))).toBeLessThanOrEqual(1024);
  expect(message.endsWith('é...<truncated>')).toBe(true);
});

test('a variable that is refused is named without its value', () => {
  const flags = {
    agentSandboxEnabled: true,
    workspaceDispatchEnabled: true,
    defaultProvider: 'agent-sandbox',
    forges: [],
    available,
  };
  const refusal = admit({ task: task({ env: [{ name: 'API_KEY', value: 'sk-1234' }] }), agent: agent(), hosting: flags });
  expect(refusal?.finding).toMatchObject({ field: 'spec.env', found: ['API_KEY'] });
  expect(JSON.stringify(refusal)).not.toContain('sk-1234');
});
