/** An artifact API on this machine, which serves what it is given, or misbehaves. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SessionOrder } from '../../src/harness/sessions.js';
import { artifactId, artifactPath, workspaceMediaType } from '../../src/source/protocol.js';
import { digestOfArchive } from './archive.js';
import { taskOrders } from './harness-orders.js';
import type { Runtime, TaskOrders } from './harness-orders.js';

export interface ArtifactServer {
  readonly url: string;
  readonly requests: readonly IncomingMessage[];
  /** Answers the next requests instead of serving. */
  answer: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** A Task whose session begins with an archive. */
  readonly task: (
    taskUID: string,
    runtime: Runtime,
    bytes: Buffer,
    more?: { readonly relativeRoot?: string; readonly artifact?: object },
  ) => TaskOrders;
  readonly close: () => Promise<void>;
}

export const testCapability = 'capability-of-one-transfer';

export async function artifactServer(): Promise<ArtifactServer> {
  const objects = new Map<string, Buffer>();
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    if (it.answer) {
      it.answer(request, response);
      return;
    }
    const bytes = objects.get(request.url ?? '');
    if (!bytes || request.headers['x-orka-artifact-capability'] !== testCapability) response.writeHead(403).end('{}');
    else response.writeHead(200, headOf(bytes)).end(bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const it: ArtifactServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer: undefined,
    task: (taskUID, runtime, bytes, { relativeRoot, artifact: changed } = {}) => {
      const task = taskOrders(taskUID, runtime);
      const digest = digestOfArchive(bytes);
      objects.set(artifactPath(digest), bytes);
      const artifact = {
        artifactID: artifactId(digest),
        digest,
        sizeBytes: bytes.length,
        mediaType: workspaceMediaType,
        ...changed,
      };
      const session: SessionOrder = {
        ...task.session,
        workspace: {
          intent: 'read',
          baseline: {
            repositoryIdentity: 'git.example/acme/app',
            revision: '03a015a98bd10a257ef2212c9c776c5e621dabe8',
            treeDigest: `sha256:${'7'.repeat(64)}`,
            artifact,
          },
          ...(relativeRoot === undefined ? {} : { relativeRoot }),
        },
        workspaceArtifactAuthorization: { capability: testCapability, requestDigest: `sha256:${'8'.repeat(64)}` },
      };
      return { ...task, session };
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return it;
}

/** What the API says about an archive that it serves. */
export function headOf(bytes: Buffer): Record<string, string | number> {
  return { 'content-length': bytes.length, 'content-type': workspaceMediaType, 'x-orka-artifact-digest': digestOfArchive(bytes) };
}
