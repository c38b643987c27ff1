/** What a reason of the provider's Ready condition means for a claim. */
type ReasonMeaning =
  /** Terminal: nothing but another claim, or another class, changes it. */
  | 'refused'
  /** Terminal: the provider ended it. Another claim is made. */
  | 'ended'
  /** Transient: a part of each start, or told better by the Pod. */
  | 'passing'
  /** Transient, and the cause if it does not pass: a quota, a missing object. */
  | 'hindered';

/** One row of the table. */
interface ProviderReason {
  readonly means: ReasonMeaning;
  /** Release of the provider that brought it; `1.0.3` is the pinned one, which has all that are older. */
  readonly since: string;
}

/**
 * Reasons of the Ready condition of a Sandbox, which its claim forwards, and of the claim itself. A reason that is not here is neither terminal nor
 * transient: it is shown, and waited for as long as a cold start may take. Source: provider.md §4.1–4.3, releases of agent-sandbox.
 */
export const providerReasons: Readonly<Record<string, ProviderReason>> = {
  InvalidMetadata: { means: 'refused', since: '1.0.3' },
  EnvVarsInjectionRejected: { means: 'refused', since: '1.0.3' },
  VolumeClaimTemplatesError: { means: 'refused', since: '1.0.3' },
  InvalidConfiguration: { means: 'refused', since: '1.0.4' },

  ClaimExpired: { means: 'ended', since: '1.0.3' },
  SandboxExpired: { means: 'ended', since: '1.0.3' },

  ReconcilerError: { means: 'hindered', since: '1.0.3' },
  WarmPoolNotFound: { means: 'hindered', since: '1.0.3' },
  TemplateNotFound: { means: 'hindered', since: '1.0.3' },

  DependenciesReady: { means: 'passing', since: '1.0.3' },
  DependenciesNotReady: { means: 'passing', since: '1.0.3' },
  SandboxNotReady: { means: 'passing', since: '1.0.3' },
  SandboxMissing: { means: 'passing', since: '1.0.3' },
  SandboxSuspended: { means: 'passing', since: '1.0.3' },
  SandboxCreatePending: { means: 'passing', since: '1.0.3' },
  AdoptionConflict: { means: 'passing', since: '1.0.3' },
  MultiplePods: { means: 'passing', since: '1.0.3' },
  PodSucceeded: { means: 'passing', since: '1.0.3' },
  PodFailed: { means: 'passing', since: '1.0.3' },
};

/** What a reason means; `undefined` = a reason that no release up to v1.0.12 has. */
export function meaningOf(reason: string): ReasonMeaning | undefined {
  return Object.hasOwn(providerReasons, reason) ? providerReasons[reason]?.means : undefined;
}
