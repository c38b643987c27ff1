import type { Json, JsonObject } from '../lib/json.js';
import { choice, flag, int64, list, map, object, open, optional, text, timestamp } from './schema.js';
import type { Static } from './schema.js';

/** A pattern of this API and how to say it to a person. */
export interface NamedPattern {
  readonly pattern: string;
  readonly says: string;
}

/** Valid in RE2 and in JavaScript. Sources: workload.md §1.2, dispatch.md §1.1, Kubernetes' own name and label rules. */
export const patterns = {
  dnsLabel: {
    pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
    says: 'a DNS label: lower-case letters, digits and "-", starting and ending with a letter or digit',
  },
  dnsSubdomain: {
    pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
    says: 'a DNS subdomain: lower-case letters, digits, "-" and ".", each part starting and ending with a letter or digit',
  },
  labelValue: {
    pattern: '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$',
    says: 'a label value: letters, digits, "-", "_" and ".", starting and ending with a letter or digit, or empty',
  },
  digest: { pattern: '^sha256:[a-f0-9]{64}$', says: '"sha256:" and 64 lower-case hex digits' },
  pinnedImage: {
    pattern: '^[^\\s@]+@sha256:[a-f0-9]{64}$',
    says: 'an image pinned by digest: <name>@sha256:<64 lower-case hex digits>',
  },
  duration: { pattern: '^(0|([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$', says: 'a duration such as 10m0s, 1m30s or 1h' },
  positiveDuration: {
    pattern:
      '^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))*([0-9]*[1-9][0-9]*(\\.[0-9]+)?|[0-9]+\\.[0-9]*[1-9][0-9]*)(ns|us|µs|ms|s|m|h)([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))*$',
    says: 'a duration above 0, such as 90s, 15m or 1h30m',
  },
  resourceClass: {
    pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
    says: 'lower-case letters, digits, "-" and ".", starting and ending with a letter or digit',
  },
  schemaVersion: {
    pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
    says: 'letters, digits, ".", "_" and "-", starting with a letter or digit, at most 64',
  },
  reason: {
    pattern: '^[A-Za-z][A-Za-z0-9._-]{0,127}$',
    says: 'a reason: a letter, then letters, digits, ".", "_" and "-", at most 128',
  },
  commit: { pattern: '^([a-f0-9]{40}|[a-f0-9]{64})$', says: 'a commit: 40 or 64 lower-case hex digits' },
  commitOrAbsent: {
    pattern: '^(|[a-f0-9]{40}|[a-f0-9]{64})$',
    says: 'a commit (40 or 64 lower-case hex digits), or "" for no such branch',
  },
  secretKey: { pattern: '^[-._a-zA-Z0-9]+$', says: 'a key of a Secret: letters, digits, "-", "_" and "."' },
  effectId: {
    pattern: '^external-effect:sha256:[a-f0-9]{64}$',
    says: 'the identity of a recorded call: "external-effect:sha256:" and 64 lower-case hex digits',
  },
  errorCode: {
    pattern: '^[a-z][a-z0-9_-]*$',
    says: 'a code such as source_ref_absent: a lower-case letter, then lower-case letters, digits, "_" and "-"',
  },
  tokenGeneration: { pattern: '^[a-f0-9]{16}$', says: '16 lower-case hex digits' },
  httpUrl: {
    pattern: '^https?://[^\\s/?#@]+(/[^\\s?#]*)?$',
    says: 'an http or https URL with a host and without user info, query and fragment',
  },
  cidr: {
    pattern: '^[0-9a-f.:]+/(0|[1-9][0-9]{0,2})$',
    says: 'a range of addresses such as 169.254.20.10/32 or fd00::a/128',
  },
  forge: {
    pattern:
      '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$',
    says: 'a host in lower case, such as github.com, or host and port such as git.example:8443',
  },
  jsonPointer: { pattern: '^(/([^~/]|~[01])*)*$', says: 'a JSON pointer (RFC 6901) such as /spec/replicas' },
  conditionType: {
    pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
    says: 'a condition type such as AdmissionReady',
  },
  conditionReason: { pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$', says: 'a condition reason such as AtCapacity' },
} as const satisfies Record<string, NamedPattern>;

/** A DNS label of at most 63 characters, as names of namespaces are. */
export const dnsLabel = text({ minLength: 1, maxLength: 63, pattern: patterns.dnsLabel.pattern });
/** A DNS subdomain of at most 253 characters, as names of most objects are. */
export const dnsSubdomain = text({ minLength: 1, maxLength: 253, pattern: patterns.dnsSubdomain.pattern });
/** `sha256:` and 64 lower-case hex digits. */
export const digest = text({ pattern: patterns.digest.pattern });
/** An image reference with a digest. */
export const pinnedImage = text({ maxLength: 2048, pattern: patterns.pinnedImage.pattern });
/** A Go duration such as `1m30s`; `0s` is one too. */
export const duration = text({ maxLength: 64, pattern: patterns.duration.pattern });
/** A Go duration above 0. */
export const positiveDuration = text({ maxLength: 64, pattern: patterns.positiveDuration.pattern });
const labels = map(text({ maxLength: 63, pattern: patterns.labelValue.pattern }));

/** Labels that select Pods or nodes. */
export const selectorLabels = labels;

/** `metadata` for offline validation. In a CRD the API server knows it by itself. */
export const ObjectMetaSchema = object({
  name: dnsSubdomain,
  generateName: optional(text({ maxLength: 253 })),
  namespace: optional(dnsLabel),
  uid: optional(text()),
  generation: optional(int64({ minimum: 0 })),
  resourceVersion: optional(text()),
  selfLink: optional(text()),
  creationTimestamp: optional(timestamp()),
  deletionTimestamp: optional(timestamp()),
  deletionGracePeriodSeconds: optional(int64({ minimum: 0 })),
  labels: optional(labels),
  annotations: optional(map(text())),
  finalizers: optional(list(text({ minLength: 1 }))),
  ownerReferences: optional(
    list(
      object({
        apiVersion: text({ minLength: 1 }),
        kind: text({ minLength: 1 }),
        name: text({ minLength: 1 }),
        uid: text({ minLength: 1 }),
        controller: optional(flag()),
        blockOwnerDeletion: optional(flag()),
      }),
    ),
  ),
  managedFields: optional(list(open())),
});

/** The members of `metadata` as the API server stores them. */
export type ObjectMeta = Static<typeof ObjectMetaSchema>;

/** Any Kubernetes object as JSON. */
export interface Manifest extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta & JsonObject;
  readonly [member: string]: Json | undefined;
}

/** A standard Kubernetes condition. */
export const ConditionSchema = object({
  type: text({ maxLength: 316, pattern: patterns.conditionType.pattern }),
  status: choice(['True', 'False', 'Unknown']),
  observedGeneration: optional(int64({ minimum: 0 })),
  lastTransitionTime: timestamp(),
  reason: text({ minLength: 1, maxLength: 1024, pattern: patterns.conditionReason.pattern }),
  message: text({ maxLength: 32768 }),
});
/** One condition of a status. */
export type Condition = Static<typeof ConditionSchema>;

/** `status.conditions` of every kind: one per type. */
export const conditions = list(ConditionSchema, { keys: ['type'] });
