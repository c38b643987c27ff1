import type { Manifest, RuntimePoolClassSpec } from '../api/index.js';
import { isWorkspaceFacts } from '../domain/facts.js';
import type { Facts } from '../domain/facts.js';
import { commonLabels, labelKeys } from '../domain/labels.js';

/** A Secret of a pool but for its values, which are made at run time and are never rendered. */
export interface SecretShape {
  /** Everything but `data`. */
  readonly manifest: Manifest;
  readonly keys: readonly string[];
}

/** The two Secrets of a pool: what controller and supervisor share, and the copy of the provider's token. Source: workload.md §3.7. */
export function secretShapes({ network }: RuntimePoolClassSpec, facts: Facts): readonly SecretShape[] {
  const shape = (name: string, labels: Readonly<Record<string, string>>, keys: readonly string[]): SecretShape => ({
    manifest: {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name,
        namespace: network.runtimeNamespace,
        labels: { ...commonLabels(facts), [labelKeys.controllerEpoch]: facts.controllerEpoch, ...labels },
      },
      type: 'Opaque',
      immutable: true,
    },
    keys,
  });
  return [
    shape(facts.authSecretName, { [labelKeys.poolAuth]: 'true' }, [
      'controller-token',
      'capability-secret',
      'bootstrap-nonce',
      ...(isWorkspaceFacts(facts) ? ['bootstrap-signing-seed'] : []),
    ]),
    shape(
      facts.providerSecretName,
      { [labelKeys.providerCredential]: 'true', [labelKeys.providerGeneration]: facts.tokenGeneration },
      ['token'],
    ),
  ];
}
