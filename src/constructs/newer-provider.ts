import type { CompactNode } from './check-schema.js';

/**
 * Fields that releases of the provider after the pinned v1.0.3 have brought, by type of `schemas.ts`. A provider without a field drops it, so the
 * controller asks the served schema before it creates anything (`domain/field-gaps.ts`).
 */
export const newerFields: Readonly<Record<string, Readonly<Record<string, CompactNode | string>>>> = {
  // agent-sandbox v1.0.12
  'SandboxWarmPool.spec': { readinessGracePeriodSeconds: 'int32' },
};
