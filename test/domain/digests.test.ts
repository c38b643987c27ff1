import { describe, expect, test } from '@jest/globals';
import {
  approvalPolicyDigest,
  controlRecordId,
  DigestInputError,
  domainDigest,
  emptyWorkspaceDigest,
  harnessDigest,
  mcpConfigurationDigest,
  promptAttemptId,
  requestDigest,
  sessionWorkspaceDigest,
  settlementDigest,
  taskRequestDigest,
  toolDescriptorsDigest,
  toolPolicyDigest,
} from '../../src/domain/digests.js';
import type { Digest } from '../../src/domain/digests.js';
import { poolName } from '../../src/domain/pool-name.js';
import { agentConfigurationDigest, lineageDigest, profileDigest } from '../../src/domain/profile.js';
import type { AgentConfiguration, RuntimeProfile } from '../../src/domain/profile.js';
import { canonicalJson } from '../../src/lib/canonical-json.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

type Section<I> = {
  readonly vectors: readonly Vector<
    I,
    { canonical?: string; digest?: Digest; error?: true; id?: string; hashedText?: string; poolName?: string }
  >[];
};
type Valued = { readonly value: Json };
const { sections } = readVectors<{
  sections: Record<string, Section<Valued>> & {
    promptAttemptID: Section<{ namespace: string; taskUid: string; attempt: number; promptId: string }>;
    requestDigest: Section<{ json: string }>;
    sessionLineage: Section<{
      reusePolicy: string;
      runtimeImage: string;
      runtimeProfileDigest: Digest;
      workspaceBindingDigest: Digest;
    }>;
    runtimePoolIdentity: Section<Valued & { poolKind: string; workspace: boolean }>;
  };
}>('digests');

const digesters: Record<string, (value: never) => Digest> = {
  agentConfiguration: (value: AgentConfiguration) => agentConfigurationDigest(value),
  approvalPolicy: ({ requiredTools }: { requiredTools: readonly string[] }) => approvalPolicyDigest(requiredTools),
  emptyWorkspace: ({ taskUID }: { taskUID: string }) => emptyWorkspaceDigest(taskUID),
  executionWorkspaceBinding: (value: JsonObject) => domainDigest('execution-workspace-binding', value),
  mcpConfiguration: ({ brokeredTools }: { brokeredTools: readonly string[] | null }) => mcpConfigurationDigest(brokeredTools),
  mcpToolDescriptors: (value: readonly JsonObject[] | null) => toolDescriptorsDigest(value),
  profile: (value: RuntimeProfile) => profileDigest(value),
  promptSettlement: (value: JsonObject) => settlementDigest(value),
  runtimePoolIdentity: (value: JsonObject) => domainDigest('runtime-pool-identity', value),
  runtimeSessionWorkspaceBinding: (value: Parameters<typeof sessionWorkspaceDigest>[0]) => sessionWorkspaceDigest(value),
  taskRequest: (value: JsonObject) => taskRequestDigest(value),
  toolPolicy: (value: Parameters<typeof toolPolicyDigest>[0]) => toolPolicyDigest(value),
};

describe.each(Object.entries(digesters))('the digest of %s', (section, digest) => {
  const vectors = sections[section]?.vectors.filter(({ output }) => output.digest !== undefined) ?? [];
  test.each(vectors.map(({ name, input, output }) => ({ name, input, output })))(
    'is the golden value: $name',
    ({ input, output }) => {
      expect(canonicalJson(input.value)).toBe(output.canonical);
      expect(digest(input.value as never)).toBe(output.digest);
    },
  );
});

test.each(sections.promptAttemptID.vectors.map((vector) => ({ ...vector })))(
  'the id of a prompt attempt is the golden value: $name',
  ({ input, output }) => {
    const id = () => promptAttemptId(input.namespace, input.taskUid, input.attempt, input.promptId);
    if (output.id === undefined) expect(id).toThrow(DigestInputError);
    else expect(id()).toBe(output.id);
  },
);

test.each(sections.requestDigest.vectors.map((vector) => ({ ...vector })))(
  'the digest of a request is the golden value: $name',
  ({ input, output }) => {
    if (output.digest === undefined) expect(() => requestDigest(input.json)).toThrow();
    else expect(requestDigest(input.json)).toBe(output.digest);
  },
);

test.each(sections.sessionLineage.vectors.map((vector) => ({ ...vector })))(
  'the lineage of a plan is the golden value: $name',
  ({ input, output }) => {
    const binding =
      input.reusePolicy === '' ? undefined : { reusePolicy: input.reusePolicy, bindingDigest: input.workspaceBindingDigest };
    if (output.digest === undefined) return;
    expect(lineageDigest({ profileDigest: input.runtimeProfileDigest, image: input.runtimeImage, binding })).toBe(output.digest);
  },
);

test('components of a control record cannot flow into each other', () => {
  expect(controlRecordId('k', ['a', 'bc'])).not.toBe(controlRecordId('k', ['ab', 'c']));
});

test('harness digests and domain digests of one value differ', () => {
  expect(harnessDigest('x', 1)).not.toBe(domainDigest('x', 1));
});

test('the pool names of the contract are reproduced', () => {
  const profile: Digest = `sha256:${'a'.repeat(64)}`;
  const image = `registry.example/orka/acp-codex@sha256:${'b'.repeat(64)}`;
  const bindingDigest: Digest = 'sha256:19d12a138372576ca56602e8592da41703a91ebde3b92555ec42f8ed4c649e73';
  const base = { providerKind: 'codex', profileDigest: profile, image };
  expect(poolName(base)).toBe('acp-codex-648227466f57413b');
  expect(poolName({ ...base, binding: { reusePolicy: 'none', sessionUID: '', workspaceSlot: 'default', bindingDigest } })).toBe(
    'acp-ws-codex-f9d3beb6767b554e',
  );
  const session = {
    reusePolicy: 'session',
    sessionUID: 'acp-session-00112233445566778899aabbccddeeff',
    workspaceSlot: 'default',
    bindingDigest,
  };
  expect(poolName({ ...base, binding: session })).toBe('acp-ws-session-55fb778cd751abae');
});
