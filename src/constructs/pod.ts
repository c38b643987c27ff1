import type { V1PersistentVolumeClaimSpec, V1PodSpec } from './pod-types.js';

/** A Pod's spec in Kubernetes' own terms. Only the type is used; what is given is rendered as it is. */
export type PodSpec = Pick<V1PodSpec, keyof V1PodSpec>;

/** Labels, annotations and spec of the Pods that something else creates. */
export interface PodTemplate {
  /** @default - no labels and annotations of its own */
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: PodSpec;
}

/** A volume that each sandbox gets, and that is deleted with it. Containers mount it by its name. */
export interface VolumeClaimTemplate {
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: V1PersistentVolumeClaimSpec;
}
