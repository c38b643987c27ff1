import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request as plainRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { request as tlsRequest } from 'node:https';
import type { Writable } from 'node:stream';
import type { Digest } from '../domain/digests.js';
import { artifactSubject } from '../harness/creation.js';
import { CodedError } from '../lib/errors.js';
import { artifactHeaders, artifactPath } from '../source/protocol.js';

/**
 * `unreachable`: no answer, or one that broke off. `refused`: the server does not serve the artifact. `mismatch`: what it serves is another
 * one. Another transfer, under a capability of its own, may succeed after each.
 */
export class DownloadError extends CodedError<'unreachable' | 'refused' | 'mismatch'> {}

export interface Artifact {
  readonly digest: Digest;
  readonly sizeBytes: number;
  readonly mediaType: string;
}

export interface Authorization {
  /** For one transfer, once. */
  readonly capability: string;
  readonly requestDigest: Digest;
}

/** Milliseconds without a byte after which a transfer is given up. */
const idleTime = 15_000;

/**
 * Writes an artifact to `target` as it arrives, and does not end it. Resolves when every byte was written and all of them have the length and
 * the digest that were asked for. Follows no redirect. Throws {@link DownloadError}, or why `signal` aborted. Source: repository.md §4.1.
 */
export async function downloadArtifact(
  api: URL,
  artifact: Artifact,
  authorization: Authorization,
  target: Writable,
  signal: AbortSignal,
): Promise<void> {
  const answer = await ask(api, artifact, authorization, signal);
  try {
    checkHead(answer, artifact);
    await transfer(answer, artifact, target, signal);
  } catch (cause) {
    if (cause instanceof DownloadError || signal.aborted) throw cause;
    throw failed('unreachable', 'the transfer broke off', cause);
  } finally {
    answer.destroy();
  }
}

async function ask(
  api: URL,
  { digest, sizeBytes, mediaType }: Artifact,
  { capability, requestDigest }: Authorization,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const url = new URL(api.pathname.replace(/\/$/, '') + artifactPath(digest), api);
  const sent = (url.protocol === 'https:' ? tlsRequest : plainRequest)(url, {
    agent: false,
    signal,
    timeout: idleTime,
    headers: {
      [artifactHeaders.capability]: capability,
      [artifactHeaders.requestDigest]: requestDigest,
      [artifactHeaders.contentLength]: String(sizeBytes),
      [artifactHeaders.mediaType]: mediaType,
    },
  });
  sent.on('timeout', () => sent.destroy(new Error(`nothing came for ${idleTime} ms`)));
  try {
    const answered = once(sent, 'response', { signal });
    sent.end();
    const [answer] = (await answered) as [IncomingMessage];
    // Errors of a request that was answered also reach its answer.
    sent.on('error', () => undefined);
    return answer;
  } catch (cause) {
    sent.on('error', () => undefined).destroy();
    if (signal.aborted) throw cause;
    throw failed('unreachable', 'the artifact API does not answer', cause);
  }
}

/** Nothing that the server says is quoted. */
function checkHead({ statusCode, headers }: IncomingMessage, { digest, sizeBytes, mediaType }: Artifact): void {
  if (statusCode !== 200) throw failed('refused', `the artifact API answers with status ${statusCode ?? 'unknown'}`);
  const expected = {
    'content-length': String(sizeBytes),
    'content-type': mediaType,
    [artifactHeaders.digest]: digest,
    'content-encoding': undefined,
  };
  for (const [name, value] of Object.entries(expected))
    if (headers[name] !== value) throw failed('mismatch', `the answer has another ${name} than the artifact`);
}

async function transfer(answer: IncomingMessage, artifact: Artifact, target: Writable, signal: AbortSignal): Promise<void> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > artifact.sizeBytes) throw failed('mismatch', 'the answer is longer than the artifact');
    hash.update(part);
    if (!target.write(part)) await once(target, 'drain', { signal });
  }
  if (size !== artifact.sizeBytes) throw failed('mismatch', 'the answer is shorter than the artifact');
  if (`sha256:${hash.digest('hex')}` !== artifact.digest)
    throw failed('mismatch', 'the answer does not have the digest of the artifact');
}

function failed(code: DownloadError['code'], says: string, cause?: unknown): DownloadError {
  return new DownloadError(code, { at: artifactSubject, says }, { cause });
}
