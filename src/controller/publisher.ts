import { equalJson } from '../lib/json.js';
import { issueArtifactCapability } from '../source/artifact-capability.js';
import type { ArtifactRequest } from '../source/artifact-capability.js';
import { PublisherClient } from '../source/client.js';
import type { CallOptions } from '../source/client.js';
import { PublisherError } from '../source/errors.js';
import type { PrepareRequest, PrepareResponse, ResolveRequest, ResolveResponse } from '../source/messages.js';
import type { PublisherAccess, PublisherKeys } from './publisher-keys.js';

/** What the controller asks for the repository of a Task. Every call throws {@link PublisherError}. */
export interface SourceService {
  /** `credential`: the header line for the forge; `undefined` = none. */
  readonly resolve: (request: ResolveRequest, credential: string | undefined, options: CallOptions) => Promise<ResolveResponse>;
  readonly prepare: (request: PrepareRequest, credential: string | undefined, options: CallOptions) => Promise<PrepareResponse>;
  /** Permits one transfer of an artifact. */
  readonly authorize: (
    request: ArtifactRequest,
    now: number,
  ) => Promise<{ capability: string; requestDigest: `sha256:${string}` }>;
}

/** The publisher of the installation, with the keys that it has now. */
export class Publisher implements SourceService {
  readonly #keys: Pick<PublisherKeys, 'access' | 'forget'>;
  #client: { readonly of: PublisherAccess; readonly client: PublisherClient } | undefined;

  constructor(keys: Pick<PublisherKeys, 'access' | 'forget'>) {
    this.#keys = keys;
  }

  resolve(request: ResolveRequest, credential: string | undefined, options: CallOptions): Promise<ResolveResponse> {
    return this.#ask((client) => client.resolve(request, credential, options));
  }

  prepare(request: PrepareRequest, credential: string | undefined, options: CallOptions): Promise<PrepareResponse> {
    return this.#ask((client) => client.prepare(request, credential, options));
  }

  async authorize(request: ArtifactRequest, now: number): ReturnType<SourceService['authorize']> {
    const { artifactSecret } = await this.#access();
    return issueArtifactCapability(artifactSecret, request, now);
  }

  close(): void {
    this.#client?.client.close();
    this.#client = undefined;
  }

  async #ask<T>(call: (client: PublisherClient) => Promise<T>): Promise<T> {
    const access = await this.#access();
    // What was read again is mostly the same: calls under way keep their connections.
    if (!this.#client || !equalJson({ ...this.#client.of }, { ...access })) {
      this.close();
      this.#client = { of: access, client: new PublisherClient(access) };
    }
    try {
      return await call(this.#client.client);
    } catch (error) {
      // The Secret may have been recreated, and the publisher gets new keys later.
      if (error instanceof PublisherError && ['unauthorized', 'unreachable'].includes(error.code)) this.#keys.forget();
      throw error;
    }
  }

  async #access(): Promise<PublisherAccess> {
    try {
      return await this.#keys.access();
    } catch (cause) {
      const says = 'the keys of the publisher can be neither read nor made';
      const known = { at: 'publisher', says, retryable: true, mayHaveArrived: false };
      throw new PublisherError('unreachable', known, { cause });
    }
  }
}
