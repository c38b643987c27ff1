/**
 * A forge: bare repositories over HTTPS, served by `git http-backend`. A read token fetches, a write token also pushes. Repositories below
 * `public/` can be read without a token. A second port switches faults on and tells which requests came.
 *
 * As a program it takes FORGE_ROOT, FORGE_TLS_CERT and FORGE_TLS_KEY (files), FORGE_READ_TOKEN, FORGE_WRITE_TOKEN, FORGE_PORT and FORGE_CONTROL_PORT.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, realpathSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** @typedef {'ok' | 'slow' | '403' | '401' | '404' | 'redirect' | 'drop' | 'garbage'} Mode */
/** @typedef {{ readonly mode: Mode, readonly to?: string }} Switch */
/** @typedef {{ readonly method: string, readonly path: string, readonly authorized: boolean }} SeenRequest */
/**
 * @typedef {object} ForgeOptions
 * @property {string} root folder of the bare repositories
 * @property {string} cert PEM
 * @property {string} key PEM
 * @property {string} readToken
 * @property {string} writeToken
 * @property {number} [port] 0 = a free one
 * @property {number} [controlPort]
 * @property {string} [host]
 */
/**
 * @typedef {object} RunningForge
 * @property {number} port
 * @property {number} controlPort
 * @property {(wanted: Switch) => void} set
 * @property {() => readonly SeenRequest[]} requests
 * @property {() => Promise<void>} close
 */

/** @type {readonly string[]} */
const modes = ['ok', 'slow', '403', '401', '404', 'redirect', 'drop', 'garbage'];
/** Bytes of an answer that come through before a dropped connection. */
const beforeDrop = 64;
const mostRequests = 10_000;

/** @param {import('node:http').IncomingMessage} request */
function tokenOf({ headers: { authorization = '' } }) {
  const [scheme = '', value = ''] = authorization.split(' ');
  if (scheme === 'Bearer') return value;
  return scheme === 'Basic' ? Buffer.from(value, 'base64').toString().split(':').slice(1).join(':') : '';
}

/** @param {URL} url */
function isPush(url) {
  return url.pathname.endsWith('/git-receive-pack') || url.searchParams.get('service') === 'git-receive-pack';
}

/** @param {ForgeOptions} options @param {URL} url @param {string} token @returns {200 | 401 | 403} */
function verdict({ readToken, writeToken }, url, token) {
  if (token === writeToken) return 200;
  if (isPush(url)) return token === readToken ? 403 : 401;
  return token === readToken || url.pathname.startsWith('/public/') ? 200 : 401;
}

/** @param {import('node:http').ServerResponse} response @param {number} status @param {Record<string, string>} [headers] */
function answer(response, status, headers = {}) {
  response.writeHead(status, { 'content-type': 'text/plain', ...headers }).end(`${status}\n`);
}

/** @param {string} root @param {URL} url @param {import('node:http').IncomingMessage} request @param {string} user */
function backendEnvironment(root, url, request, user) {
  const { headers } = request;
  return {
    PATH: process.env['PATH'],
    GIT_PROJECT_ROOT: root,
    GIT_HTTP_EXPORT_ALL: '1',
    PATH_INFO: decodeURIComponent(url.pathname),
    QUERY_STRING: url.search.slice(1),
    REQUEST_METHOD: request.method,
    CONTENT_TYPE: headers['content-type'] ?? '',
    ...(headers['content-length'] === undefined ? {} : { CONTENT_LENGTH: headers['content-length'] }),
    GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
    HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '',
    REMOTE_USER: user,
    REMOTE_ADDR: request.socket.remoteAddress ?? '',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_COUNT: '2',
    GIT_CONFIG_KEY_0: 'safe.directory',
    GIT_CONFIG_VALUE_0: '*',
    GIT_CONFIG_KEY_1: 'uploadpack.allowFilter',
    GIT_CONFIG_VALUE_1: 'true',
  };
}

/** Splits the header of a CGI answer from its body. */
class CgiHeader {
  #head = Buffer.alloc(0);

  /** @param {Buffer} chunk @returns {{ status: number, headers: Record<string, string>, rest: Buffer } | undefined} */
  add(chunk) {
    this.#head = Buffer.concat([this.#head, chunk]);
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    const pairs = this.#head
      .subarray(0, end)
      .toString('latin1')
      .split('\r\n')
      .map((line) => /** @type {[string, string]} */ ([line.split(':', 1)[0] ?? '', line.replace(/^[^:]*:\s*/, '')]));
    const { Status: status = '200', ...headers } = Object.fromEntries(pairs);
    return { status: Number.parseInt(status, 10), headers, rest: this.#head.subarray(end + 4) };
  }
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {boolean} drop ends the connection in the middle of the answer, after the backend has done its work
 */
function runBackend(env, request, response, drop) {
  const child = spawn('git', ['http-backend'], { env, stdio: ['pipe', 'pipe', 'ignore'] });
  const header = new CgiHeader();
  let sent = 0;
  const body = (/** @type {Buffer} */ chunk) => {
    const part = drop ? chunk.subarray(0, Math.max(0, beforeDrop - sent)) : chunk;
    sent += part.length;
    if (part.length > 0 && !response.write(part)) {
      child.stdout.pause();
      response.once('drain', () => child.stdout.resume());
    }
  };
  child.stdout.on('data', (/** @type {Buffer} */ chunk) => {
    if (response.headersSent) return body(chunk);
    const head = header.add(chunk);
    if (!head) return;
    response.writeHead(head.status, head.headers);
    body(head.rest);
  });
  child.on('error', () => response.destroy());
  child.stdout.on('end', () => {
    if (drop) response.socket?.destroy();
    else if (response.headersSent) response.end();
    else answer(response, 500);
  });
  response.on('close', () => child.kill());
  child.stdin.on('error', () => undefined);
  request.pipe(child.stdin);
}

/**
 * @param {ForgeOptions} options
 * @param {Switch} current
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {(authorized: boolean) => void} record
 */
function serve(options, { mode, to }, request, response, record) {
  const url = new URL(request.url ?? '/', 'https://forge');
  const token = tokenOf(request);
  const status = verdict(options, url, token);
  record(status === 200);
  // The client gives up first.
  if (mode === 'slow') return;
  if (mode === '401' || mode === '403' || mode === '404') {
    answer(response, Number(mode), mode === '401' ? { 'www-authenticate': 'Basic realm="forge"' } : {});
    return;
  }
  if (mode === 'redirect') {
    answer(response, 302, { location: to ?? `/moved${request.url ?? ''}` });
    return;
  }
  if (mode === 'garbage') {
    response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' }).end(randomBytes(4096));
    return;
  }
  if (status !== 200) {
    answer(response, status, status === 401 ? { 'www-authenticate': 'Basic realm="forge"' } : {});
    return;
  }
  runBackend(
    backendEnvironment(options.root, url, request, token === options.writeToken ? 'writer' : ''),
    request,
    response,
    mode === 'drop' && request.method === 'POST',
  );
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {(wanted: Switch) => void} set
 * @param {readonly SeenRequest[]} seen
 */
async function control(request, response, set, seen) {
  if (request.method === 'GET' && request.url === '/-/requests') {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(seen));
    return;
  }
  if (request.method !== 'POST' || request.url !== '/-/switch') {
    answer(response, 404);
    return;
  }
  const chunks = [];
  for await (const chunk of request) chunks.push(/** @type {Buffer} */ (chunk));
  try {
    const wanted = /** @type {Switch} */ (JSON.parse(Buffer.concat(chunks).toString()));
    if (!modes.includes(wanted.mode)) throw new Error('unknown mode');
    set(wanted);
    answer(response, 200);
  } catch {
    answer(response, 400);
  }
}

/** @param {import('node:net').Server} server @param {number} port @param {string} host @returns {Promise<number>} */
function listen(server, port, host) {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

/** @param {ForgeOptions} options @returns {Promise<RunningForge>} */
export async function startForge(options) {
  const { cert, key, port = 0, controlPort = 0, host = '127.0.0.1' } = options;
  /** @type {Switch} */
  let current = { mode: 'ok' };
  /** @type {SeenRequest[]} */
  const seen = [];
  const set = (/** @type {Switch} */ wanted) => {
    current = wanted;
  };
  const forge = createTlsServer({ cert, key }, (request, response) => {
    serve(options, current, request, response, (authorized) => {
      seen.push({ method: request.method ?? '', path: request.url ?? '', authorized });
      if (seen.length > mostRequests) seen.shift();
    });
  });
  const controls = createServer((request, response) => void control(request, response, set, seen));
  const ports = [await listen(forge, port, host), await listen(controls, controlPort, host)];
  return {
    port: ports[0] ?? 0,
    controlPort: ports[1] ?? 0,
    set,
    requests: () => [...seen],
    close: async () => {
      for (const server of [forge, controls]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

/** @param {string} name */
function required(name) {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set`);
  return value;
}

async function main() {
  const { port, controlPort } = await startForge({
    root: path.resolve(required('FORGE_ROOT')),
    cert: readFileSync(required('FORGE_TLS_CERT'), 'utf8'),
    key: readFileSync(required('FORGE_TLS_KEY'), 'utf8'),
    readToken: required('FORGE_READ_TOKEN'),
    writeToken: required('FORGE_WRITE_TOKEN'),
    port: Number(process.env['FORGE_PORT'] ?? '8443'),
    controlPort: Number(process.env['FORGE_CONTROL_PORT'] ?? '8080'),
    host: '0.0.0.0',
  });
  console.log(JSON.stringify({ event: 'forge listens', port, controlPort }));
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0));
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main();
