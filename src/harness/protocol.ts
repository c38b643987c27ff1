import { protocolVersion } from '../api/index.js';

/** What both sides of the harness protocol say about themselves. Source: dispatch.md §5. */
export const protocol = protocolVersion;
export const transport = 'http+ndjson';
export const acpVersion = 'acp.v1';

/** Port on which every supervisor listens inside its sandbox. */
export const supervisorPort = 8080;

/** Version of the way in which requests and profiles are digested. */
export const requestDigestSchemaVersion = 1;
export const profileDigestSchemaVersion = 1;

/** Header names, in lower case as Node gives them. */
export const headers = {
  capability: 'x-orka-operation-capability',
  bootstrapNonce: 'x-orka-credential-bootstrap-nonce',
  bootstrapSignature: 'x-orka-credential-bootstrap-signature',
} as const;

/** Tokens and secrets shorter than this are refused on both sides; bytes of UTF-8. */
export const shortestSecret = 32;

export const contentTypes = { json: 'application/json', events: 'application/x-ndjson' } as const;

/** Bytes and milliseconds that both sides keep to, whatever the other side advertises. */
export const bounds = {
  bootstrapBody: 64 * 1024,
  requestBody: 2 * 1024 * 1024,
  responseBody: 2 * 1024 * 1024,
  errorBody: 64 * 1024,
  eventLine: 1024 * 1024,
  eventBytesPerSecond: 32 * 1024 * 1024,
  promptContent: 1024 * 1024,
  controlTimeout: 30_000,
  statusCapabilityLife: 60_000,
  /** A lease may have been issued this far in the receiver's future: two clocks are never equal. */
  clockSkew: 5_000,
} as const;
