import { describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../../src/api/index.js';
import { claimVerdict } from '../../../src/controller/pool/claim-verdict.js';
import { providerReasons } from '../../../src/domain/provider-reasons.js';

/** A claim with the Ready condition that provider v1.0.3 was seen to write. */
const claim = (reason: string, message: string, { status = 'False', observedGeneration = 1 } = {}): Manifest => ({
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxClaim',
  metadata: { name: 'c', namespace: 'n', generation: 1 },
  status: { conditions: [{ type: 'Ready', status, reason, message, observedGeneration }] },
});

describe('what no waiting cures is refused', () => {
  test.each([
    ['InvalidMetadata', 'invalid additionalPodMetadata: failed to validate label "example.com/a"'],
    ['EnvVarsInjectionRejected', 'environment variable injection rejected'],
    ['VolumeClaimTemplatesError', 'failed to merge volume claim templates'],
    ['ReconcilerError', 'Error seen: Pod "badspec" is invalid: spec.containers[0].name: Invalid value: "Bad_Name"'],
    ['ReconcilerError', 'Error seen: target container "nope" not found in template for environment variable "B"'],
    ['ReconcilerError', 'Error seen: environment variable override is not allowed by the template policy for variable "A"'],
    ['ReconcilerError', 'Error seen: sandbox "foreign" is not controlled by claim "foreign"'],
    ['ReconcilerError', 'Error seen: metadata override conflict: label "sandbox.users.io/task" is defined in template'],
  ])('%s: %s', (reason, message) => {
    expect(claimVerdict(claim(reason, message))).toEqual({ state: 'refused', says: `${reason}: ${message}` });
  });
});

// A fact of agent-sandbox v1.0.4, which is newer than the pinned release.
test('a Service name that is too long is refused: InvalidConfiguration', () => {
  const message = 'Error seen: Service name is longer than 63 characters';
  expect(claimVerdict(claim('InvalidConfiguration', message))).toEqual({
    state: 'refused',
    says: `InvalidConfiguration: ${message}`,
  });
});

test('a reason that no known release has is neither terminal nor transient, and is said', () => {
  for (const reason of ['SomethingNew', 'constructor', '__proto__'])
    expect(claimVerdict(claim(reason, 'words'))).toEqual({ state: 'open', says: `${reason}: words` });
});

test('each reason of the table names the release that brought it', () => {
  const since = Object.values(providerReasons).map((row) => row.since);
  expect(since.every((release) => /^1\.0\.\d+$/.test(release))).toBe(true);
  expect(
    Object.entries(providerReasons).flatMap(([reason, row]) => (row.since === '1.0.3' ? [] : [`${reason} ${row.since}`])),
  ).toEqual(['InvalidConfiguration 1.0.4']);
});

describe('what has ended is said to have ended', () => {
  test.each([
    ['ClaimExpired', 'Claim expired. Sandbox cleanup initiated.'],
    ['SandboxExpired', 'Underlying Sandbox resource has expired independently of the Claim.'],
  ])('%s', (reason, message) => {
    expect(claimVerdict(claim(reason, message)).state).toBe('ended');
  });
});

describe('what a quota or an admission forbids is blocked', () => {
  test.each([
    ['ReconcilerError', 'Error seen: pods "q2" is forbidden: exceeded quota: q'],
    ['ReconcilerError', 'Error seen: pods "nosa" is forbidden: error looking up service account'],
    ['ReconcilerError', 'Error seen: pods "p" is forbidden: violates PodSecurity "restricted:latest"'],
  ])('%s: %s', (reason, message) => {
    expect(claimVerdict(claim(reason, message))).toEqual({ state: 'blocked', says: `${reason}: ${message}` });
  });
});

describe('what may pass is open, and says what hinders', () => {
  test.each([
    ['ReconcilerError', 'Error seen: pod "a" is owned by Sandbox/a, not by sandbox a'],
    ['WarmPoolNotFound', 'SandboxWarmPool "nopool" not found'],
    ['TemplateNotFound', 'SandboxTemplate "notmpl" not found'],
  ])('%s: %s', (reason, message) => {
    expect(claimVerdict(claim(reason, message))).toEqual({ state: 'open', says: `${reason}: ${message}` });
  });
});

describe('what is nothing but a start, or is told by the Pod itself, is open', () => {
  test.each([
    ['SandboxNotReady', ''],
    ['DependenciesNotReady', 'Pod exists with phase: Pending'],
    ['PodFailed', 'Pod failed'],
    ['PodSucceeded', 'Pod completed successfully'],
    ['SandboxSuspended', ''],
  ])('%s', (reason, message) => {
    expect(claimVerdict(claim(reason, message))).toEqual({ state: 'open' });
  });
});

test('a claim that is ready is open', () => {
  expect(claimVerdict(claim('DependenciesReady', 'Pod is Ready', { status: 'True' }))).toEqual({ state: 'open' });
});

test('a condition of another generation says nothing', () => {
  expect(claimVerdict(claim('InvalidMetadata', 'no', { observedGeneration: 0 }))).toEqual({ state: 'open' });
});

test('a claim without a status was not looked at yet', () => {
  const { status: _status, ...fresh } = claim('InvalidMetadata', 'no');
  expect(claimVerdict(fresh)).toEqual({ state: 'unseen' });
});
