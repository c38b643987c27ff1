// An ACP agent that does what the prompt says: one verb and its argument, see `verbs`. Before that, the variable `TEST_AGENT` may tell it
// how to misbehave at a step, as `initialize:exit 3`.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { createInterface } from 'node:readline';

const send = (/** @type {object} */ message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const update = (/** @type {object} */ content) => send({ method: 'session/update', params: { sessionId: 's', update: content } });
const say = (/** @type {string} */ text) => update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
const pause = (/** @type {number} */ milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const never = () => new Promise(() => undefined);

/** @type {number | undefined} */
let running;
/** JSON-RPC error code that answers a cancelled prompt. @type {number | undefined} */
let cancelAnswer;
/** @type {(result: unknown) => void} */
let answered = () => undefined;

const end = (/** @type {string} */ stopReason) => {
  send({ id: running, result: { stopReason, usage: { inputTokens: 3, outputTokens: 4 } } });
  running = undefined;
};

/** The client's answer to a request of the agent's. */
const asked = (/** @type {string} */ method, /** @type {object} */ params) =>
  new Promise((resolve) => {
    answered = resolve;
    send({ id: 'p1', method, params });
  });

const permission = (/** @type {string} */ kind) =>
  asked('session/request_permission', {
    sessionId: 's',
    toolCall: { toolCallId: 't', kind },
    options: [
      { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
      { optionId: 'no', name: 'No', kind: 'reject_once' },
    ],
  });

/** Writes for ever, as fast as it is read. */
async function endlessly(/** @type {import('node:stream').Writable} */ stream, /** @type {string | Buffer} */ text) {
  for (;;) if (!stream.write(text)) await new Promise((resolve) => stream.once('drain', () => resolve(undefined)));
}

const line = (/** @type {object} */ message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
const updateLine = (/** @type {object} */ content) =>
  line({ method: 'session/update', params: { sessionId: 's', update: content } });
const chunk = (/** @type {string} */ said) => ({
  sessionUpdate: 'agent_message_chunk',
  content: { type: 'text', text: said },
});
const text = (/** @type {string} */ value) => ({ type: 'content', content: { type: 'text', text: value } });
const shell = (/** @type {string} */ script, /** @type {object} */ options = {}) =>
  spawn('/bin/sh', ['-c', script], { detached: true, stdio: 'ignore', ...options }).unref();

/** @type {import('node:child_process').ChildProcessWithoutNullStreams | undefined} */
let worker;

/** Starts a long-lived child of the name that Codex' has. It ends with the code that it reads. */
async function startWorker() {
  worker = spawn('/bin/sh', ['-c', 'printf codex >/proc/$$/comm; echo ready; read code; exit $code']);
  await new Promise((resolve) => worker?.stdout.once('data', resolve));
}

/** What a program printed. */
function output(/** @type {string} */ program, /** @type {string[]} */ ...args) {
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1024 * 1024 });
  return `${stdout}${stderr}`.trim();
}

/** What comes of one attempt: `ok`, or the code of the error. */
async function attempt(/** @type {[string, string]} */ [verb, target]) {
  try {
    if (verb === 'read') readFileSync(target);
    if (verb === 'list') readdirSync(target);
    if (verb === 'write') writeFileSync(target, 'written by a session');
    if (verb === 'kill') process.kill(Number(target), 'SIGKILL');
    if (verb === 'setuid') process.setuid?.(Number(target));
    if (verb === 'get')
      return await new Promise((resolve) =>
        get(target, (answer) => resolve(answer.resume().statusCode)).on('error', (e) => resolve(e)),
      );
    return 'ok';
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code;
  }
}

/** @type {Record<string, (argument: string) => unknown>} */
const verbs = {
  // Ends that no agent should have.
  exit: (code) => process.exit(Number(code || 3)),
  kill: async (signal) => {
    process.kill(process.pid, signal);
    await never();
  },
  mute: never,
  'wait-for': (milliseconds) => pause(Number(milliseconds)),
  'stop-reading': () => {
    setTimeout(() => process.stdin.pause(), 0);
    setTimeout(() => undefined, 600_000);
  },
  wait: never,
  deaf: () => {
    process.on('SIGTERM', () => undefined);
    running = undefined;
    return never();
  },
  'close-stdout': () => {
    closeSync(1);
    return never();
  },
  'leave-pipes': () => {
    spawn('/bin/sh', ['-c', 'while :; do sleep 1; done'], { detached: true, stdio: 'inherit' });
    process.exit(3);
  },

  // What becomes of the process that it cannot work without.
  worker: startWorker,
  'kill-worker': (signal) => {
    worker?.kill(/** @type {NodeJS.Signals} */ (signal));
    return never();
  },
  'end-worker': (code) => {
    worker?.stdin.write(`${code}\n`);
    return never();
  },
  'lose-worker': () => {
    process.kill(worker?.pid ?? 0, 'SIGKILL');
    // Never waits for its child, nor reports it.
    for (;;);
  },
  'deny-worker': async () => {
    send({ method: '_orka/child_ended', params: { pid: worker?.pid, code: null, signal: 'SIGKILL' } });
    await pause(1_000);
  },
  'other-worker': async () => {
    const first = worker;
    await startWorker();
    const other = worker;
    worker = first;
    const ended = new Promise((resolve) => other?.once('exit', resolve));
    other?.kill('SIGKILL');
    await ended;
    await pause(1_000);
  },

  // Things that are no messages, or none of this protocol.
  garbage: (count) => {
    for (let i = 0; i < Number(count || 1); i++) process.stdout.write(`this is no message, ${i}\n`);
  },
  'log-lines': () => {
    process.stdout.write(`Welcome to the agent, ${process.env['TEST_CREDENTIAL'] ?? ''}\n\n \r\n42\n`);
    process.stdout.write(`{"id":${running ?? 1},"level":"info"}\n{"jsonrpc":"2.0","id":${running ?? 1}}\n`);
    process.stdout.write(`${'long '.repeat(1000)}\n`);
    say('after the lines');
  },
  binary: () => process.stdout.write(Buffer.concat([Buffer.alloc(70_000, 0xff), Buffer.from('\n')])),
  array: () => process.stdout.write('[]\n'),
  version: () => process.stdout.write(`{"id":${running ?? 1},"result":{}}\n`),
  'deep-id': () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    process.stdout.write(`{"jsonrpc":"2.0","id":${deep},"method":"x"}\n`);
  },
  'no-object': () => send({ id: running ?? 1, result: 42 }),
  raw: (message) => process.stdout.write(`${message}\n`),

  // Too much of something.
  endless: () => endlessly(process.stdout, 'x'.repeat(65_536)),
  'endless-drip': async () => {
    for (;;) for (let i = 0; i < 50; i++) await new Promise((resolve) => process.stdout.write('x', resolve));
  },
  'endless-unknown': () => endlessly(process.stdout, line({ method: 'x/unknown', params: { text: 'y'.repeat(200) } })),
  'endless-thoughts': () =>
    endlessly(process.stdout, updateLine({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'z' } })),
  'endless-chunks': () =>
    endlessly(
      process.stdout,
      updateLine({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'w'.repeat(60_000) } }),
    ),
  'endless-stderr': () => endlessly(process.stderr, 'e'.repeat(65_536)),
  'endless-questions': () => {
    process.stdin.pause();
    return endlessly(process.stdout, line({ id: 1, method: 'x/unknown', params: {} }));
  },
  flood: (count) => {
    for (let i = 0; i < Number(count); i++) update({ sessionUpdate: 'tool_call', toolCallId: `t${i}`, title: 't' });
  },
  chunks: (count) => {
    for (let i = 0; i < Number(count); i++) say('x');
  },
  'heavy-updates': async (count) => {
    const content = Array.from({ length: 8 }, () => text('h'.repeat(16_000)));
    for (let i = 0; i < Number(count); i++) {
      update({ sessionUpdate: 'tool_call_update', toolCallId: 't', content });
      await pause(6);
    }
  },
  long: (size) => say('l'.repeat(Number(size))),
  'long-pieces': (size) => {
    for (let left = Number(size); left > 0; left -= 50_000) say('p'.repeat(Math.min(left, 50_000)));
  },
  control: (size) => say('\u0001'.repeat(Number(size))),
  tool: (size) => {
    update({ sessionUpdate: 'tool_call', toolCallId: 't', title: 'big' });
    update({
      sessionUpdate: 'tool_call_update',
      toolCallId: 't',
      status: 'completed',
      content: [text('o'.repeat(Number(size)))],
    });
    say('done');
  },
  'tool-control': () => {
    const content = Array.from({ length: 16 }, () => text('\u0001'.repeat(16_384)));
    update({ sessionUpdate: 'tool_call_update', toolCallId: 't', title: 'binary', content });
    update({
      sessionUpdate: 'plan',
      entries: Array.from({ length: 256 }, () => ({ content: '\u0001'.repeat(1024), status: 'pending' })),
    });
    say('done');
  },

  // Processes that are not to outlive it.
  fork: () => shell('trap "" TERM; while :; do sleep 1; done'),
  'fork-wait': () => {
    shell('trap "" TERM; while :; do sleep 1; done');
    shell('setsid /bin/sh -c "trap \\"\\" TERM HUP; (while :; do sleep 1; done) & exit 0" & exit 0');
    return never();
  },
  'fork-error': async () => {
    shell('trap "" TERM; while :; do sleep 1; done');
    await pause(300);
    send({ id: running, error: { code: -32603, message: 'broken' } });
    return never();
  },
  daemon: async () => {
    shell('trap "" TERM HUP; setsid /bin/sh -c "trap \\"\\" TERM HUP; (while :; do sleep 1; done) & exit 0" & exit 0');
    await pause(300);
  },
  swarm: async () => {
    shell('trap "" TERM; while :; do sleep 30 & sleep 0.005; done');
    await pause(300);
  },
  program: async (file) => {
    spawn(file, [], { detached: true, stdio: 'ignore' }).unref();
    await pause(300);
  },

  // What it leaves on disk.
  write: (file) => writeFileSync(file, 'changed'),
  deep: (levels) => {
    process.chdir(process.env['HOME'] ?? '/');
    for (let i = 0; i < Number(levels); i++) {
      mkdirSync('d'.repeat(100));
      process.chdir('d'.repeat(100));
    }
    writeFileSync('bottom', 'x');
    mkdirSync('closed', { mode: 0 });
    process.chdir('/');
  },

  sh: (script) => say(output('/bin/sh', '-c', script)),
  js: (script) => say(output(process.execPath, '-e', script)),

  // What it says and asks.
  say,
  env: () => say(JSON.stringify(process.env)),
  error: (message) => {
    send({ id: running, error: { code: -32603, message } });
    return never();
  },
  'tell-secret': () => {
    send({ id: running, error: { code: -32603, message: `the key ${process.env['TEST_CREDENTIAL'] ?? ''} was refused` } });
    return never();
  },
  'error-on-cancel': (code) => {
    cancelAnswer = Number(code);
    return never();
  },
  'say-after': (said) => {
    const result = { stopReason: 'end_turn', usage: {} };
    process.stdout.write(`${line({ id: running, result })}${updateLine(chunk(said))}${updateLine(chunk(said))}`);
    setTimeout(() => say(said), 50);
    running = undefined;
    return never();
  },
  'refuse-with-secret': () => {
    send({ id: 2, error: { code: -32603, message: `the key ${process.env['TEST_CREDENTIAL'] ?? ''} was refused` } });
    return never();
  },
  stop: (reason) => {
    end(reason);
    return never();
  },
  ask: async (kind) => say(JSON.stringify(await permission(kind))),
  offer: async (method) => say(JSON.stringify(await asked(method, {}))),
  'ask-later': async (file) => {
    setTimeout(() => void permission('read').then((answer) => writeFileSync(file, JSON.stringify(answer))), 200);
  },
  'flood-later': async () => {
    setTimeout(() => void verbs['endless-unknown']?.(''), 100);
  },
  try: async (attempts) => {
    const results = [];
    for (const one of JSON.parse(attempts)) results.push(await attempt(one));
    say(JSON.stringify(results));
  },
};

async function act(/** @type {string} */ order) {
  const [verb = '', ...rest] = order.split(' ');
  await verbs[verb]?.(rest.join(' '));
  end('end_turn');
}

const [step, ...how] = (process.env['TEST_AGENT'] ?? '').split(':');
const misbehave = async (/** @type {string} */ at) => {
  if (at !== step) return;
  const [verb = '', ...rest] = how.join(':').split(' ');
  await verbs[verb]?.(rest.join(' '));
};

await misbehave('start');
// It stands where Codex' adapter is expected.
if (import.meta.url.includes('codex-acp')) await startWorker();
createInterface({ input: process.stdin }).on('line', async (received) => {
  const message = JSON.parse(received);
  await misbehave(message.method);
  if (message.method === 'initialize') send({ id: message.id, result: { protocolVersion: 1, agentCapabilities: {} } });
  else if (message.method === 'authenticate') send({ id: message.id, result: {} });
  else if (message.method === 'session/new') send({ id: message.id, result: { sessionId: 's' } });
  else if (message.method === 'session/cancel') {
    if (running !== undefined && cancelAnswer !== undefined)
      send({ id: running, error: { code: cancelAnswer, message: 'Request cancelled' } });
    else if (running !== undefined) end('cancelled');
  } else if (message.method === 'session/prompt') {
    running = message.id;
    void act(message.params.prompt[0].text);
  } else if (message.method === undefined) answered(message.result ?? message.error);
});
