// The platform file of the test cluster: what `platform.yaml` is for an installation.

import { inWork } from '../settings.js';

/** Written by `npm run images`, read by the tests. */
export const platformFile = process.env['ORKA_PLATFORM'] ?? inWork('platform.yaml');

/**
 * The members that the test cluster's own programs use.
 *
 * @typedef {{ pod: { resources: { requests: Record<string, string>, limits?: Record<string, string> } } }} ClassSettings
 * @typedef {{ namespaces: { controller: string, runtime: string, tasks: string[] }, controller: { image: string }, classes: Record<string, ClassSettings> }} PlatformFile
 */

/**
 * @param {{ controller: string, runtime: string, adapterDigests: Readonly<Record<string, string>> }} built references and digests
 * @returns YAML; JSON is YAML too
 */
export function platformOf({ controller, runtime, adapterDigests }) {
  return `${JSON.stringify(
    {
      version: 1,
      namespaces: { controller: 'orka-system', runtime: 'orka-runtimes', tasks: ['demo-magic'] },
      controller: { image: controller, replicas: 0 },
      classes: {
        'codex-standard': {
          providerKind: 'codex',
          runtime: { image: runtime, adapterDigests },
          // The node of the test cluster has two cores.
          pod: { resources: { requests: { cpu: '100m', memory: '128Mi', 'ephemeral-storage': '64Mi' } } },
        },
      },
    },
    null,
    2,
  )}\n`;
}
