import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** One request that reached the model. */
interface ModelRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A stand-in for a model: the parts of the Responses and the Chat Completions API that agents use, behind a bearer check. */
export interface ModelFixture {
  readonly url: string;
  readonly requests: readonly ModelRequest[];
  /** What the next answers say. */
  readonly say: (text: string) => void;
  /** The next answers ask for this shell command first, and say their text once its output has come. */
  readonly runCommand: (command: string | undefined) => void;
  /** Milliseconds before each answer begins. */
  readonly delay: (milliseconds: number) => void;
  /** So many answers break off in the middle, each after this text; then nobody listens for some milliseconds. */
  readonly breakOff: (text: string, times?: number, away?: number) => void;
  readonly close: () => Promise<void>;
}

/** What a request is answered with. */
export interface ModelReply {
  readonly text: string;
  /** A shell command that is asked for first. */
  readonly command?: string | undefined;
  /** Milliseconds before the answer begins. */
  readonly delay?: number;
  /** Texts that are sent before `text`, one each second. */
  readonly slowly?: readonly string[];
  /** Instead of an answer: none ever, a connection that is reset, or an error with this status. */
  readonly fault?: 'hang' | 'reset' | 429 | 500;
}

interface ModelFixtureOptions {
  /** @default '127.0.0.1' */
  readonly host?: string;
  /** @default - a free one */
  readonly port?: number;
  readonly onRequest?: (request: ModelRequest) => void;
  /** @default - what `say`, `runCommand` and `delay` said last */
  readonly reply?: (request: ModelRequest) => ModelReply;
}

/** Without `token` every bearer is good. */
export async function startModelFixture(
  token?: string,
  { host = '127.0.0.1', port = 0, onRequest, reply }: ModelFixtureOptions = {},
): Promise<ModelFixture> {
  const requests: ModelRequest[] = [];
  let text = 'HELLO_FIXTURE';
  let command: string | undefined;
  let wait = 0;
  let broken = { text: '', times: 0, away: 0 };

  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts).toString();
      const { authorization = '' } = request.headers;
      const path = request.url ?? '';
      const one = { method: request.method ?? '', path, authorization, headers: request.headers, body };
      requests.push(one);
      onRequest?.(one);
      if (token !== undefined && authorization !== `Bearer ${token}`)
        response.writeHead(401).end('{"error":{"message":"who are you"}}');
      else {
        const wanted = reply?.(one) ?? { text, command, delay: wait };
        const timer = setTimeout(() => answer(response, one, wanted), wanted.delay ?? 0);
        response.on('close', () => clearTimeout(timer));
      }
    });
  });
  server.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'));

  function answer(response: ServerResponse, { path, body }: ModelRequest, { text, command, slowly, fault }: ModelReply): void {
    const isResponse = path === '/v1/responses' || path === '/responses';
    if (path === '/v1/models' || path === '/models')
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"object":"list","data":[]}');
    else if (fault === 'reset') response.socket?.resetAndDestroy();
    else if (typeof fault === 'number')
      response.writeHead(fault, { 'content-type': 'application/json' }).end(`{"error":{"message":"the model answers ${fault}"}}`);
    else if (fault === 'hang') return;
    else if (path === '/v1/chat/completions')
      streamChat(response, command && !body.includes('"role":"tool"') ? { command } : { text });
    else if (!isResponse) response.writeHead(404).end();
    else if (broken.times > 0) void breakConnection(response);
    else if (command && !body.includes('function_call_output')) stream(response, callItem(command), undefined);
    else if (slowly) void streamSlowly(response, slowly, text);
    else stream(response, messageItem(text), text);
  }

  async function breakConnection(response: ServerResponse): Promise<void> {
    const { text: part, times, away } = broken;
    broken = { ...broken, times: times - 1 };
    beginStream(response, { ...messageItem(part), content: [] })('response.output_text.delta', delta(part));
    // The part is on its way before the connection is closed.
    await sleep(300);
    if (away > 0) server.close();
    server.closeAllConnections();
    if (away > 0) setTimeout(() => void listen(server, host, used.port).catch(() => undefined), away).unref();
  }

  await listen(server, host, port);
  const used = server.address() as AddressInfo;
  return {
    url: `http://${host}:${used.port}`,
    requests,
    say: (next) => {
      text = next;
    },
    runCommand: (next) => {
      command = next;
    },
    delay: (milliseconds) => {
      wait = milliseconds;
    },
    breakOff: (part, times = 1, away = 0) => {
      broken = { text: part, times, away };
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

function messageItem(text: string) {
  return { type: 'message', role: 'assistant', id: 'msg_1', content: [{ type: 'output_text', text }] };
}

function callItem(command: string) {
  return {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    name: 'exec_command',
    arguments: JSON.stringify({ cmd: command }),
  };
}

/** The events of one answer, as server-sent events. */
function stream(response: ServerResponse, item: object, text: string | undefined): void {
  const event = beginStream(response, text === undefined ? item : { ...item, content: [] });
  if (text !== undefined) event('response.output_text.delta', delta(text));
  endStream(response, event, item);
}

/** The same, with a part of the text each second. */
async function streamSlowly(response: ServerResponse, parts: readonly string[], last: string): Promise<void> {
  const item = messageItem([...parts, last].join(''));
  const event = beginStream(response, { ...item, content: [] });
  for (const part of parts) {
    event('response.output_text.delta', delta(part));
    await sleep(1_000);
    if (response.destroyed) return;
  }
  event('response.output_text.delta', delta(last));
  endStream(response, event, item);
}

type Send = (type: string, data: object) => void;

const delta = (text: string) => ({ delta: text, item_id: 'msg_1', output_index: 0, content_index: 0 });

function beginStream(response: ServerResponse, item: object): Send {
  const event: Send = (type, data) => void response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  event('response.created', { response: { id: 'resp_1' } });
  event('response.output_item.added', { output_index: 0, item });
  return event;
}

function endStream(response: ServerResponse, event: Send, item: object): void {
  const usage = {
    input_tokens: 120,
    output_tokens: 7,
    total_tokens: 127,
    input_tokens_details: { cached_tokens: 20 },
    output_tokens_details: { reasoning_tokens: 2 },
  };
  event('response.output_item.done', { output_index: 0, item });
  event('response.completed', { response: { id: 'resp_1', usage } });
  response.end();
}

/** The chunks of one chat completion: a text, or the call of a shell. */
function streamChat(response: ServerResponse, { text, command }: { readonly text?: string; readonly command?: string }): void {
  const chunk = (rest: object) =>
    response.write(
      `data: ${JSON.stringify({ id: 'chat_1', object: 'chat.completion.chunk', created: 1, model: 'fixture', ...rest })}\n\n`,
    );
  const call = { name: 'bash', arguments: JSON.stringify({ command, description: 'a command' }) };
  const calls = command === undefined ? undefined : [{ index: 0, id: 'call_1', type: 'function', function: call }];
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  chunk({ choices: [{ index: 0, delta: { role: 'assistant', ...(calls ? { tool_calls: calls } : { content: text }) } }] });
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: calls ? 'tool_calls' : 'stop' }] });
  chunk({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } });
  response.end('data: [DONE]\n\n');
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}
