import { describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../../src/api/index.js';
import { differs } from '../../../src/controller/pool/differs.js';
import { deploymentAsClaim, outlived, plainAuthName, plainProviderName, unmounted } from '../../../src/controller/pool/plain.js';
import type { JsonObject } from '../../../src/lib/json.js';
import { plainClaim, plainRendered, pod, stored, storedPool } from '../../support/pool-observation.js';

const wanted = plainRendered.claim;
const seen = (object: Manifest, replicas = 1, conditions: readonly JsonObject[] = []): Manifest => ({
  ...object,
  spec: { ...(object['spec'] as JsonObject), replicas },
  status: { observedGeneration: 1, conditions },
});
const all = () => true;

describe('a Deployment', () => {
  test('that asks for one Pod is a claim, and one at zero is none', () => {
    expect(deploymentAsClaim(seen(plainClaim), true, 5)).toMatchObject({
      whole: true,
      deleting: false,
      verdict: { state: 'open' },
      askedAt: 5,
    });
    expect(deploymentAsClaim(seen(plainClaim, 0), true, 5)).toBeUndefined();
  });
  test('that asks for two was changed', () => {
    expect(deploymentAsClaim(seen(plainClaim, 2), true, 5)?.whole).toBe(false);
  });
  test('that its controller has not seen is not judged', () => {
    expect(deploymentAsClaim(plainClaim, true, undefined)?.verdict).toEqual({ state: 'unseen' });
  });
  test('whose Pod a quota forbids says so', () => {
    const conditions = [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'exceeded quota' }];
    expect(deploymentAsClaim(seen(plainClaim, 1, conditions), true, 5)?.verdict).toEqual({
      state: 'blocked',
      says: 'FailedCreate: exceeded quota',
    });
  });
});

describe('a stored Deployment is as rendered', () => {
  const template = (wanted['spec'] as { template: { metadata: JsonObject; spec: JsonObject } }).template;
  const withPod = (change: JsonObject): Manifest => {
    const spec = { ...(wanted['spec'] as JsonObject), template: { ...template, spec: { ...template.spec, ...change } } };
    return stored({ ...wanted, spec }, 'uid');
  };
  test('with the defaults of the server, and however many Pods it asks for', () => {
    const defaults = { dnsPolicy: 'ClusterFirst', restartPolicy: 'Always', schedulerName: 'default-scheduler' };
    expect(differs(wanted, seen(withPod(defaults), 0))).toBe(false);
  });
  test.each([
    { hostNetwork: true },
    { nodeName: 'node1' },
    { serviceAccountName: 'another' },
    { priority: 9 },
    { initContainers: [{ name: 'x' }] },
  ])('but not with %j', (change) => {
    expect(differs(wanted, withPod(change))).toBe(true);
  });
});

describe('Secrets of a plain pool', () => {
  const pool = storedPool();
  test('have names that follow from pool, epoch and token', () => {
    const names = plainRendered.secrets.map(({ manifest }) => manifest.metadata.name);
    expect([plainAuthName(pool, 7), plainProviderName(pool, 7, '0123456789abcdef')]).toEqual(names);
  });
  const [auth, provider] = plainRendered.secrets.map(({ manifest }) => manifest) as [Manifest, Manifest];
  const old = { ...auth, metadata: { ...auth.metadata, name: 'old-auth-e6' } };
  const user = {
    finished: false,
    live: { ...pod.live, spec: { containers: [{ env: [{ valueFrom: { secretKeyRef: { name: 'old-auth-e6' } } }] }] } },
  };
  const stale = (...of: Parameters<typeof unmounted>) => unmounted(...of).map(({ metadata }) => metadata.name);
  test('are removed when neither the Deployment nor a Pod names them', () => {
    expect(stale([auth, provider, old], [], seen(plainClaim), [])).toEqual(['old-auth-e6']);
  });
  test('not while a Pod that runs names them, in whatever way', () => {
    expect(stale([old], [], seen(plainClaim), [user])).toEqual([]);
    expect(stale([old], [], seen(plainClaim), [{ ...user, finished: true }])).toEqual(['old-auth-e6']);
  });
  test('not while what the Deployment was before may still make Pods', () => {
    expect(stale([old], [], plainClaim, [])).toEqual([]);
  });
});

test('Pods are left over only when a Deployment at zero was seen by its controller', () => {
  const pods = [pod];
  const left = (of: Manifest | undefined) => outlived(of, pods, all).length;
  expect([
    left(undefined),
    left(seen(plainClaim)),
    left(seen(plainClaim, 0)),
    left({ ...seen(plainClaim, 0), status: {} }),
  ]).toEqual([0, 0, 1, 0]);
});
