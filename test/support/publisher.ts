/** A whole publisher on the loopback. Only its git is played. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { request as httpsRequest } from 'node:https';
import { request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Keys } from '../../src/publisher/keys.js';
import { createLog } from '../../src/publisher/log.js';
import { startPublisher } from '../../src/publisher/publisher.js';
import type { Publisher, PublisherOptions } from '../../src/publisher/publisher.js';
import type { SourceGit } from '../../src/publisher/source-git.js';
import type { Digest } from '../../src/lib/sha256.js';
import { PublisherClient } from '../../src/source/client.js';
import type { PrepareRequest, PrepareResponse, ResolveRequest } from '../../src/source/messages.js';
import { artifactId, workspaceMediaType } from '../../src/source/protocol.js';
import { selfSigned } from './certificates.js';
import { limit } from './pace.js';

export const oid = 'a'.repeat(40);
export const credential = `Authorization: Basic ${Buffer.from('x-access-token:hunter2-and-more').toString('base64')}`;
const unlessThere = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'EEXIST') throw error;
};

const source = { provider: 'github', id: 'git.example/acme/app', url: 'https://git.example/acme/app.git' };
const credentialRef = { name: 'token', kind: 'http-extra-header', role: 'SourceRead' } as const;

export const resolveMessage = (operationId = 'workspace-resolve-1'): ResolveRequest => ({
  metadata: { namespace: 'demo', operationId, taskId: '1111' },
  source,
  sourceRef: '',
  credentialRef,
});

export const prepareMessage = (operationId = 'workspace-prepare-1'): PrepareRequest => ({
  ...resolveMessage(operationId),
  sourceRef: 'refs/heads/main',
  baselineOid: oid,
});

/** Answers at once, until a test replaces a part. */
class PlayedGit implements SourceGit {
  calls = 0;
  content: Buffer = Buffer.from('the archive');
  /** What the answer says the archive is. @default what it is */
  claimed: Partial<PrepareResponse['artifact']> = {};
  /** Runs before each answer, and may throw. */
  before: (signal: AbortSignal) => Promise<void> | void = () => undefined;
  credentials: (string | undefined)[] = [];

  readonly resolve: SourceGit['resolve'] = async ({ source: { id }, sourceRef }, given, signal) => {
    await this.#called(given, signal);
    return { repositoryId: id, sourceRef: sourceRef || 'refs/heads/main', baselineOid: oid };
  };

  readonly prepare: SourceGit['prepare'] = async (_, given, target, signal) => {
    await this.#called(given, signal);
    await writeFile(target, this.content, { flag: 'wx' });
    return prepared(this.content, this.claimed);
  };

  readonly version = () => Promise.resolve('2.39.5');

  readonly close = () => Promise.resolve();

  async #called(given: string | undefined, signal: AbortSignal): Promise<void> {
    this.calls++;
    this.credentials.push(given);
    await this.before(signal);
  }
}

export function prepared(content: Buffer, claimed: Partial<PrepareResponse['artifact']> = {}): PrepareResponse {
  const digest: Digest = `sha256:${createHash('sha256').update(content).digest('hex')}`;
  const artifact: PrepareResponse['artifact'] = {
    artifactId: artifactId(digest),
    digest,
    sizeBytes: content.length,
    mediaType: workspaceMediaType,
  };
  return { treeOid: oid, manifestDigest: digest, entryCount: 1, expandedBytes: 1, artifact: { ...artifact, ...claimed } };
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A publisher that can be started again over the same folder. */
export class TestPublisher {
  readonly folder: string;
  readonly git = new PlayedGit();
  readonly lines: string[] = [];
  /** Added to the clock of the publisher; milliseconds. */
  ahead = 0;
  identity = selfSigned('publisher');
  token = randomBytes(32).toString('base64url');
  operationSecret = randomBytes(32).toString('base64url');
  artifactSecret = randomBytes(32).toString('base64url');
  #publisher: Publisher | undefined;
  readonly #clients: PublisherClient[] = [];

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async create(options: Partial<PublisherOptions> = {}): Promise<TestPublisher> {
    const one = new TestPublisher(await mkdtemp(path.join(tmpdir(), 'orka-publisher-')));
    for (const name of ['keys', 'data']) await mkdir(path.join(one.folder, name));
    await one.writeKeys();
    await one.start(options);
    return one;
  }

  get data(): string {
    return path.join(this.folder, 'data');
  }

  get ports(): Publisher['ports'] {
    if (!this.#publisher) throw new Error('the publisher does not run');
    return this.#publisher.ports;
  }

  get client(): PublisherClient {
    const url = `https://127.0.0.1:${this.ports.operations}`;
    const { token: controllerToken, operationSecret: capabilitySecret } = this;
    const client = new PublisherClient({ url, ca: this.identity.cert, controllerToken, capabilitySecret });
    this.#clients.push(client);
    return client;
  }

  /** Replaces all keys at once, as a kubelet does: `..data` becomes a link to another folder. */
  async writeKeys(): Promise<void> {
    const { token, operationSecret, artifactSecret, identity } = this;
    const files = { 'controller-token': token, 'operation-capability-secret': operationSecret };
    const more = { 'artifact-capability-secret': artifactSecret, 'tls.crt': identity.cert, 'tls.key': identity.key };
    const folder = path.join(this.folder, 'keys');
    const made = await mkdtemp(`${folder}/..`);
    for (const [name, text] of Object.entries({ ...files, ...more })) {
      await writeFile(path.join(made, name), text);
      await symlink(path.join('..data', name), path.join(folder, name)).catch(unlessThere);
    }
    const next = path.join(folder, '..data_tmp');
    await symlink(path.basename(made), next);
    await rename(next, path.join(folder, '..data'));
  }

  async start(options: Partial<PublisherOptions> = {}): Promise<void> {
    const log = createLog((line) => this.lines.push(line));
    this.#publisher = await startPublisher({
      config: { forges: [{ host: 'git.example' }] },
      keys: await Keys.open(path.join(this.folder, 'keys'), { log, interval: 20 }),
      dataFolder: this.data,
      git: this.git,
      ports: { operations: 0, artifacts: 0, probes: 0 },
      log,
      clock: () => Date.now() + this.ahead,
      ...options,
    });
  }

  async stop(grace = 0): Promise<void> {
    await this.#publisher?.stop(grace);
    this.#publisher = undefined;
  }

  async restart(options: Partial<PublisherOptions> = {}): Promise<void> {
    await this.stop();
    await this.start(options);
  }

  async remove(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.stop();
    await rm(this.folder, { recursive: true });
  }

  /** A request to the operation port, with nothing added. */
  operation(method: string, target: string, headers: OutgoingHttpHeaders, body?: string | Buffer): Promise<Answer> {
    const { identity, ports } = this;
    const options = { host: '127.0.0.1', port: ports.operations, method, path: target, headers, ca: identity.cert, agent: false };
    return new Promise((resolve, reject) => {
      const outgoing = httpsRequest(options, (answer) => void whole(answer).then(resolve, reject));
      outgoing.once('error', reject);
      outgoing.end(body);
    });
  }

  artifact(target: string, headers: OutgoingHttpHeaders, method = 'GET'): Promise<Answer> {
    const options = { host: '127.0.0.1', port: this.ports.artifacts, method, path: target, headers, agent: false } as const;
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest(options, (answer) => void whole(answer).then(resolve, reject));
      outgoing.once('error', reject);
      outgoing.end();
    });
  }
}

async function whole(answer: IncomingMessage): Promise<Answer> {
  const parts: Buffer[] = [];
  for await (const part of answer as AsyncIterable<Buffer>) parts.push(part);
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(parts) };
}

export const usualCall = () => ({ signal: new AbortController().signal, timeout: limit(20_000) });
