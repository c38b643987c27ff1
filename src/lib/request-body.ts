import type { IncomingMessage } from 'node:http';

/** A body as a whole; `undefined` if it is longer than `limit` bytes or breaks off. What is left of a long one is not read. */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return undefined;
  const parts: Buffer[] = [];
  let size = 0;
  return new Promise((resolve) => {
    request.on('data', (part: Buffer) => {
      size += part.length;
      if (size > limit) {
        request.pause();
        resolve(undefined);
      } else parts.push(part);
    });
    request.once('end', () => {
      resolve(Buffer.concat(parts));
    });
    request.once('close', () => {
      resolve(undefined);
    });
    request.once('error', () => {
      resolve(undefined);
    });
  });
}
