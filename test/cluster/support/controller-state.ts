/** Which Pod of the controller leads, and how often it had to begin. */
import type { Manifest } from '../../../src/api/index.js';
import { kubectl } from './cluster.js';
import type { Installation } from './installation.js';

export interface ControllerState {
  /** Pods by name, each with the restarts of its container. */
  readonly restarts: Readonly<Record<string, number>>;
  /** Exit codes of what the containers were before their last restart. */
  readonly exitCodes: readonly number[];
  readonly holder: string;
  /** That the Lease bears. */
  readonly epoch: number;
}

interface ControllerPod extends Manifest {
  readonly status: {
    readonly containerStatuses?: readonly {
      readonly restartCount: number;
      readonly lastState?: { readonly terminated?: { readonly exitCode: number } };
    }[];
  };
}

export const leaseName = 'orka-workspaces-controller';

export async function controllerState({ namespaces, deployment }: Installation): Promise<ControllerState> {
  const read = async (what: readonly string[]): Promise<unknown> =>
    JSON.parse(await kubectl(['get', ...what, '-n', namespaces.controller, '-o', 'json']));
  const { items } = (await read(['pods', '-l', `app.kubernetes.io/name=${deployment.metadata.name}`])) as {
    readonly items: readonly ControllerPod[];
  };
  const { metadata, spec } = (await read(['lease', leaseName])) as Manifest & {
    readonly spec: { readonly holderIdentity?: string };
  };
  const containers = items.flatMap(({ status }) => status.containerStatuses ?? []);
  return {
    restarts: Object.fromEntries(
      items.map(({ metadata: { name }, status }) => [name, status.containerStatuses?.[0]?.restartCount ?? 0]),
    ),
    exitCodes: containers.flatMap(({ lastState }) => lastState?.terminated?.exitCode ?? []),
    holder: spec.holderIdentity ?? '',
    epoch: Number(metadata.annotations?.['orka.ai/controller-epoch'] ?? 0),
  };
}
