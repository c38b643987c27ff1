// An ACP agent that does what the prompt says: `say X`, `wait`, `flood N`, `fork`, `write FILE`, `exit`, `error`, `ask KIND`, `garbage`, `env`.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const send = (/** @type {object} */ message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const update = (/** @type {object} */ content) => send({ method: 'session/update', params: { sessionId: 's', update: content } });
const say = (/** @type {string} */ text) => update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });

/** @type {number | undefined} */
let running;
/** @type {(result: unknown) => void} */
let answered = () => undefined;

const end = (/** @type {string} */ stopReason) => {
  send({ id: running, result: { stopReason, usage: { inputTokens: 3, outputTokens: 4 } } });
  running = undefined;
};

async function act(/** @type {string} */ text) {
  const [verb, ...rest] = text.split(' ');
  const argument = rest.join(' ');
  if (verb === 'wait') return;
  if (verb === 'deaf') {
    process.on('SIGTERM', () => undefined);
    running = undefined;
    return;
  }
  if (verb === 'exit') process.exit(3);
  if (verb === 'error') {
    send({ id: running, error: { code: -32603, message: argument } });
    return;
  }
  if (verb === 'garbage') {
    process.stdout.write('this is no message\n');
    return;
  }
  if (verb === 'say') say(argument);
  if (verb === 'flood')
    for (let i = 0; i < Number(argument); i++) update({ sessionUpdate: 'tool_call', toolCallId: `t${i}`, title: 't' });
  if (verb === 'chunks') for (let i = 0; i < Number(argument); i++) say('x');
  if (verb === 'fork')
    spawn('/bin/sh', ['-c', 'trap "" TERM; while :; do sleep 1; done'], { detached: true, stdio: 'ignore' }).unref();
  if (verb === 'write') writeFileSync(argument, 'changed');
  if (verb === 'env') say(JSON.stringify(process.env));
  if (verb === 'stop') {
    end(argument);
    return;
  }
  if (verb === 'ask') {
    const result = await new Promise((resolve) => {
      answered = resolve;
      const options = [
        { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
        { optionId: 'no', name: 'No', kind: 'reject_once' },
      ];
      send({
        id: 'p1',
        method: 'session/request_permission',
        params: { sessionId: 's', toolCall: { toolCallId: 't', kind: argument }, options },
      });
    });
    say(JSON.stringify(result));
  }
  if (verb === 'offer') {
    const result = await new Promise((resolve) => {
      answered = resolve;
      send({ id: 'p1', method: argument, params: {} });
    });
    say(JSON.stringify(result));
  }
  end('end_turn');
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.method === 'initialize') send({ id: message.id, result: { protocolVersion: 1, agentCapabilities: {} } });
  else if (message.method === 'session/new') send({ id: message.id, result: { sessionId: 's' } });
  else if (message.method === 'session/cancel') {
    if (running !== undefined) end('cancelled');
  } else if (message.method === 'session/prompt') {
    running = message.id;
    void act(message.params.prompt[0].text);
  } else if (message.method === undefined) answered(message.result ?? message.error);
});
