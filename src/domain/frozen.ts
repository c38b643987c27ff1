import type { RuntimePoolClassSpec, RuntimePoolSpec } from '../api/index.js';

/** What a pool was frozen with and its class must still have: constant in the compiled objects, never a fact. */
export interface FrozenValues {
  readonly image: string;
  readonly adapterDigests: Readonly<Record<string, string>>;
  readonly providerKind: string;
  readonly resourceClass: string;
  readonly acpProfile: string;
  readonly runtimeNamespace: string;
}

/** Where each frozen value stands in a RuntimePool. */
export const frozenFields: Readonly<Record<keyof FrozenValues, string>> = {
  image: 'spec.runtime.image',
  adapterDigests: 'spec.runtime.profile.adapterDigests',
  providerKind: 'spec.runtime.profile.providerKind',
  resourceClass: 'spec.runtime.profile.resourceClass',
  acpProfile: 'spec.runtime.profile.acpProfile',
  runtimeNamespace: 'spec.runtimeNamespace',
};

/** The frozen values that a pool was made with. */
export function frozenByPool({ runtime, runtimeNamespace }: RuntimePoolSpec): FrozenValues {
  const { adapterDigests, providerKind, resourceClass, acpProfile } = runtime.profile;
  return {
    image: runtime.image,
    adapterDigests,
    providerKind,
    resourceClass,
    acpProfile,
    runtimeNamespace: runtimeNamespace ?? '',
  };
}

/** The frozen values as a class has them now. */
export function frozenByClass({ runtime, providerKind, resourceClass, network }: RuntimePoolClassSpec): FrozenValues {
  return {
    image: runtime.image,
    adapterDigests: runtime.adapterDigests,
    providerKind,
    resourceClass,
    acpProfile: 'acp.v1',
    runtimeNamespace: network.runtimeNamespace,
  };
}
