import type { SourceService } from '../../src/controller/publisher.js';
import { PublisherError } from '../../src/source/errors.js';
import type { ErrorDetail, PublisherErrorCode } from '../../src/source/errors.js';
import type { PrepareResponse, ResolveResponse } from '../../src/source/messages.js';
import { artifactId, workspaceMediaType } from '../../src/source/protocol.js';

/** One call as it arrived. */
interface PublisherCall {
  readonly what: 'resolve' | 'prepare';
  readonly operationId: string;
  readonly credential: string | undefined;
}

/** A publisher that answers as a test says, for what a cluster cannot show on demand. */
export interface PlayedPublisher extends SourceService {
  readonly calls: PublisherCall[];
  /** Called with each call before its answer; what it throws is the answer. */
  answer: (call: PublisherCall, signal: AbortSignal) => void | Promise<void>;
}

export const commit = 'c'.repeat(40);
export const archive = `sha256:${'d'.repeat(64)}` as const;
export const manifest = `sha256:${'e'.repeat(64)}` as const;

export function refused(
  code: PublisherErrorCode,
  { retryable = false, detail }: { readonly retryable?: boolean; readonly detail?: ErrorDetail } = {},
): PublisherError {
  return new PublisherError(code, { at: 'POST /v1/x', says: code, retryable, mayHaveArrived: true, status: 422, detail });
}

/** Waits until the caller gives up. */
export function hanging(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(refused('aborted')), { once: true });
  });
}

export function playedPublisher(): PlayedPublisher {
  const it: PlayedPublisher = {
    calls: [],
    answer: () => undefined,
    resolve: async ({ metadata, source }, credential, { signal }): Promise<ResolveResponse> => {
      await heard({ what: 'resolve', operationId: metadata.operationId, credential }, signal);
      return { repositoryId: source.id, sourceRef: 'refs/heads/main', baselineOid: commit };
    },
    prepare: async ({ metadata }, credential, { signal }): Promise<PrepareResponse> => {
      await heard({ what: 'prepare', operationId: metadata.operationId, credential }, signal);
      const artifact = {
        artifactId: artifactId(archive),
        digest: archive,
        sizeBytes: 2048,
        mediaType: workspaceMediaType,
      } as const;
      return { treeOid: 'a'.repeat(40), manifestDigest: manifest, entryCount: 3, expandedBytes: 9, artifact };
    },
    authorize: ({ operationID }) => Promise.resolve({ capability: `for ${operationID}`, requestDigest: manifest }),
  };
  async function heard(call: PublisherCall, signal: AbortSignal): Promise<void> {
    it.calls.push(call);
    await it.answer(call, signal);
  }
  return it;
}
