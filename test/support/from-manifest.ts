import { Testing } from 'cdk8s';
import type { Construct } from 'constructs';
import type { Manifest } from '../../src/api/index.js';
import type { FromManifestOptions } from '../../src/constructs/from-manifest.js';
import { NetworkPolicy } from '../../src/constructs/network-policy.js';
import type { Resource } from '../../src/constructs/resource.js';
import type { Allowance, SwitchableRule } from '../../src/constructs/rules/switch.js';
import { Sandbox } from '../../src/constructs/sandbox.js';
import { SandboxClaim } from '../../src/constructs/sandbox-claim.js';
import { SandboxTemplate } from '../../src/constructs/sandbox-template.js';
import { SandboxWarmPool } from '../../src/constructs/sandbox-warm-pool.js';

type FromManifest = (
  scope: Construct,
  id: string,
  manifest: Manifest,
  options: FromManifestOptions,
) => { readonly resource: Resource };

const constructs: Readonly<Record<string, FromManifest>> = {
  NetworkPolicy: (...args) => NetworkPolicy.fromManifest(...args),
  Sandbox: (...args) => Sandbox.fromManifest(...args),
  SandboxClaim: (...args) => SandboxClaim.fromManifest(...args),
  SandboxTemplate: (...args) => SandboxTemplate.fromManifest(...args),
  SandboxWarmPool: (...args) => SandboxWarmPool.fromManifest(...args),
};

/** The construct of a manifest, by its kind. */
export function fromManifest(
  scope: Construct,
  id: string,
  manifest: Manifest,
  allow: readonly Allowance[] = [],
): { readonly resource: Resource } {
  const of = constructs[manifest.kind];
  if (!of) throw new Error(`no construct for ${manifest.kind}`);
  return of(scope, id, manifest, { allow });
}

/** The rules that a manifest breaks and that may be switched off, found by allowing each that is named until none is. */
export function neededFor(manifest: Manifest): readonly SwitchableRule[] {
  const allow: SwitchableRule[] = [];
  for (;;) {
    try {
      fromManifest(Testing.chart(), 'example', manifest, allow);
      return allow;
    } catch (error) {
      const [, id = ''] = /\(([a-z-]+\/[a-z-]+): /.exec(String(error)) ?? [];
      if (id === '' || allow.some((name) => name === id)) throw error;
      allow.push(id as SwitchableRule);
    }
  }
}
