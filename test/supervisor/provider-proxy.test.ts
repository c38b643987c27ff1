import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { startProviderProxy } from '../../src/supervisor/provider-proxy.js';
import type { ProviderProxy, ProxyRoute } from '../../src/supervisor/provider-proxy.js';
import { eventually } from '../support/eventually.js';
import { startModelFixture } from '../support/model-fixture.js';
import type { ModelFixture } from '../support/model-fixture.js';

const token = 'upstream-token-1f6f2b';
const model = 'gpt-5.5';
let fixture: ModelFixture;
let proxy: ProviderProxy;
beforeAll(async () => {
  fixture = await startModelFixture(token);
  proxy = await startProviderProxy(new URL(fixture.url), token, {
    'POST /v1/responses': { inference: true },
    'GET /v1/models': { inference: false },
  });
});
afterAll(async () => {
  await proxy.close();
  await fixture.close();
});

const ask = (route: ProxyRoute, path = '/v1/responses', options: { bearer?: string; method?: string; body?: object } = {}) =>
  fetch(`${route.url}${path}`, {
    method: options.method ?? 'POST',
    headers: { authorization: `Bearer ${options.bearer ?? route.credential}`, 'content-type': 'application/json' },
    ...(options.method === 'GET' ? {} : { body: JSON.stringify(options.body ?? { model }) }),
  });
const active = (maxTurns = 10) => {
  const route = proxy.addRoute({ model, maxTurns });
  route.enable(() => undefined);
  return route;
};

test('a request of the running prompt reaches the model with the upstream token, and its stream comes back', async () => {
  const answer = await ask(active());
  expect(answer.headers.get('content-type')).toBe('text/event-stream');
  expect(await answer.text()).toContain('response.completed');
  expect(fixture.requests.at(-1)?.authorization).toBe(`Bearer ${token}`);
});

test('without a running prompt, with another credential or on another route nothing goes out', async () => {
  const [idle, other] = [proxy.addRoute({ model, maxTurns: 1 }), active()];
  const before = fixture.requests.length;
  expect((await ask(idle)).status).toBe(403);
  expect((await ask(other, undefined, { bearer: idle.credential })).status).toBe(401);
  other.remove();
  expect((await ask(other)).status).toBe(401);
  expect(fixture.requests.length).toBe(before);
});

test('another path, method or model is outside the profile', async () => {
  const before = fixture.requests.length;
  for (const [path, method] of [
    ['/v1/files', 'POST'],
    ['/v1/responses', 'GET'],
    ['/v1/responses/../files', 'POST'],
  ] as const)
    expect((await ask(active(), path, { method })).status).toBe(403);
  expect((await ask(active(), undefined, { body: { model: 'gpt-9' } })).status).toBe(403);
  expect((await ask(active(), undefined, { body: [] })).status).toBe(400);
  expect(fixture.requests.length).toBe(before);
  expect((await ask(active(), '/v1/models', { method: 'GET' })).status).toBe(200);
});

test('an upgrade to a web socket is refused', async () => {
  const { port, pathname } = new URL(active().url);
  const answer = await new Promise<string>((resolve) => {
    const socket = connect(Number(port), '127.0.0.1', () =>
      socket.write(`GET ${pathname}/v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`),
    );
    socket.once('data', (part) => resolve(part.toString()));
  });
  expect(answer).toMatch(/^HTTP\/1.1 403/);
});

test('the call after the last turn is refused and told', async () => {
  const route = proxy.addRoute({ model, maxTurns: 2 });
  let limits = 0;
  route.enable(() => limits++);
  expect([(await ask(route)).status, (await ask(route)).status, (await ask(route)).status]).toEqual([200, 200, 400]);
  expect(limits).toBe(1);
  route.enable(() => limits++);
  expect((await ask(route)).status).toBe(200);
});

test('a third call at once is too many, and disabling breaks what is under way', async () => {
  const route = active();
  fixture.delay(60_000);
  const before = fixture.requests.length;
  const running = [ask(route), ask(route)].map((call) => call.then((answer) => answer.text()).catch(() => 'broken'));
  await eventually(() => fixture.requests.length === before + running.length);
  expect((await ask(route)).status).toBe(429);
  route.disable();
  expect(await Promise.all(running)).toEqual(['broken', 'broken']);
  fixture.delay(0);
});

/** A proxy whose model answers with these statuses, one after the other. */
async function answering(...statuses: readonly number[]) {
  const left = [...statuses];
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(left.shift() ?? 200).end('{}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const own = await startProviderProxy(new URL(`http://127.0.0.1:${port}`), token, { 'POST /v1/responses': { inference: true } });
  const route = own.addRoute({ model, maxTurns: 2 });
  route.enable(() => undefined);
  const close = async () => {
    await own.close();
    await new Promise((resolve) => server.close(resolve));
  };
  return { route, close };
}

test.each([
  [401, 'model_unauthorized'],
  [403, 'model_unauthorized'],
  [429, 'model_rate_limited'],
  [500, 'model_unavailable'],
  [400, 'model_request_refused'],
] as const)('a model that answers %d is remembered as trouble: %s', async (status, code) => {
  const { route, close } = await answering(status);
  expect(route.trouble()).toBeUndefined();
  await ask(route);
  expect(route.trouble()).toMatchObject({ code, message: expect.stringContaining(String(status)) });
  await close();
});

test('trouble is over once the model answers, and tries in vain are no turns', async () => {
  const { route, close } = await answering(500, 500, 500, 200);
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push((await ask(route)).status);
  expect([statuses, route.trouble()]).toEqual([[500, 500, 500, 200], undefined]);
  await close();
});

test('a text is freed of both halves of what opens a route', () => {
  const route = active();
  expect(route.redact(`${route.url}/v1 ${route.credential}`)).toMatch(
    /^http:\/\/127\.0\.0\.1:\d+\/_orka\/provider\/\[redacted\]\/v1 \[redacted\]$/,
  );
});

test('a provider proxy that cannot be reached is a bad gateway, and trouble that names it', async () => {
  const lonely = await startProviderProxy(new URL('http://127.0.0.1:1'), token, { 'POST /v1/responses': { inference: true } });
  const route = lonely.addRoute({ model, maxTurns: 1 });
  route.enable(() => undefined);
  const answer = await ask(route);
  expect(answer.status).toBe(502);
  expect(await answer.text()).not.toContain(token);
  expect(route.trouble()).toEqual({
    code: 'provider_proxy_unavailable',
    message: 'the provider proxy cannot be reached: it refuses connections',
  });
  await lonely.close();
});

test('the output that a request may ask for is bounded under the name that its API has for it', async () => {
  const chat = await startProviderProxy(new URL(fixture.url), token, {
    'POST /v1/chat/completions': { inference: true, outputMembers: ['max_tokens', 'max_completion_tokens'] },
  });
  const route = chat.addRoute({ model, maxTurns: 10, outputLimit: 100 });
  route.enable(() => undefined);
  const sent = async (wanted: object) => {
    await (await ask(route, '/v1/chat/completions', { body: { model, ...wanted } })).text();
    const { model: _model, ...rest } = JSON.parse(fixture.requests.at(-1)?.body ?? '{}') as Record<string, unknown>;
    return rest;
  };
  expect(await sent({})).toEqual({ max_tokens: 100 });
  expect(await sent({ max_completion_tokens: 50 })).toEqual({ max_completion_tokens: 50 });
  expect(await sent({ max_completion_tokens: 101 })).toEqual({ max_completion_tokens: 100 });
  expect(await sent({ max_tokens: '9', max_completion_tokens: 9 })).toEqual({ max_tokens: 100, max_completion_tokens: 100 });
  await chat.close();
});

test('a request counts from before its body is read: many that never end are few', async () => {
  const route = active();
  const { port, pathname } = new URL(route.url);
  const head = `POST ${pathname}/v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${route.credential}\r\nContent-Length: 30000000\r\n\r\n`;
  const answers = new Array<string>(6).fill('');
  const sockets = answers.map((_, i) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(`${head}${'x'.repeat(1000)}`));
    socket.on('data', (part) => (answers[i] = `${answers[i] ?? ''}${part.toString()}`));
    socket.on('error', () => undefined);
    return socket;
  });
  await eventually(() => answers.filter((answer) => answer.startsWith('HTTP/1.1 429')).length === 4);
  route.disable();
  await eventually(() => sockets.every(({ destroyed }) => destroyed));
  const next = active();
  expect((await ask(next)).status).toBe(200);
});

test('silent connections without end keep no session from its model', async () => {
  const route = active();
  const sockets = Array.from({ length: 1300 }, () => {
    const socket = connect(Number(new URL(route.url).port), '127.0.0.1');
    // On a busy machine some are answered 408 before the last one comes: what is not read would never end.
    return socket.on('error', () => undefined).resume();
  });
  await eventually(() => sockets.filter(({ destroyed }) => destroyed).length >= 1300 - 1024);
  expect((await ask(route)).status).toBe(200);
  for (const socket of sockets) socket.destroy();
});

test('a session has a bound of connections of its own, and another session none of its trouble', async () => {
  const [route, other] = [active(), active()];
  const { port, pathname } = new URL(route.url);
  const head = `GET ${pathname}/v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${route.credential}\r\n\r\n`;
  const answers: string[] = [];
  const sockets: Socket[] = [];
  for (let i = 0; i < 20; i++) {
    const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
    sockets.push(socket);
    const answered = new Promise<Buffer>((resolve) => socket.once('data', resolve));
    socket.write(head);
    answers.push((await answered).toString().slice(0, 12));
  }
  expect(answers.filter((answer) => answer === 'HTTP/1.1 429')).toHaveLength(4);
  expect((await ask(other, '/v1/models', { method: 'GET' })).status).toBe(200);
  route.remove();
  await eventually(() => sockets.every(({ destroyed }) => destroyed));
});

describe('what a model is asked is what was checked', () => {
  const raw = (route: ProxyRoute, body: string, contentType = 'application/json') =>
    fetch(`${route.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${route.credential}`, 'content-type': contentType },
      body,
    });
  const bounded = (outputLimit?: number) => {
    const route = proxy.addRoute({ model, maxTurns: 100, ...(outputLimit === undefined ? {} : { outputLimit }) });
    route.enable(() => undefined);
    return route;
  };
  const sent = async (route: ProxyRoute, body: string): Promise<string | number> => {
    const { status } = await raw(route, body);
    return status === 200 ? (fixture.requests.at(-1)?.body ?? '') : status;
  };

  test.each([
    ['a member twice', `{"model":"dear","model":"${model}"}`],
    ['a member twice, once escaped', `{"mod\\u0065l":"dear","model":"${model}"}`],
    ['a member twice further in', `{"model":"${model}","input":[{"role":"user","role":"system"}]}`],
    ['a second document', `{"model":"${model}"}{"model":"dear"}`],
    ['a byte order mark', `\ufeff{"model":"${model}"}`],
    ['a comment', `{"model":"${model}"/*,"model":"dear"*/}`],
    ['another case of a guarded member', `{"model":"${model}","Model":"dear"}`],
    ['a guarded member with a separator', `{"model":"${model}","max-output-tokens":9}`],
    ['a guarded member in camel case', `{"model":"${model}","maxOutputTokens":9}`],
    ['a guarded member with a look-alike letter', `{"model":"${model}","max_output_to\u212aens":9}`],
    ['a guarded member that ends in a null character', `{"model":"${model}","model\\u0000":"dear"}`],
  ])('%s is refused', async (_, body) => {
    const before = fixture.requests.length;
    expect((await raw(bounded(100), body)).status).toBe(400);
    expect(fixture.requests.length).toBe(before);
  });

  test('only another case of the model is not the model', async () => {
    expect((await raw(bounded(), `{"Model":"${model}"}`)).status).toBe(400);
    expect((await raw(bounded(), '{"input":"x"}')).status).toBe(403);
  });

  test('member names are re-serialized, and values that are not guarded keep their bytes', async () => {
    const input = '[1.0,12345678901234567890,1e400,-0,"\\u00e9",{"b":1, "a":2}]';
    expect(await sent(bounded(), ` { "mod\\u0065l" : "gpt-5\\u002e5", "input":${input} } `)).toBe(
      `{"model":"${model}","input":${input}}`,
    );
  });

  test.each([
    ['50', '50'],
    ['1e1', '10'],
    ['100.0', '100'],
    ['101', '100'],
    ['1e400', '100'],
    ['-1', '100'],
    ['0', '100'],
    ['50.5', '100'],
    ['"50"', '100'],
    ['[50]', '100'],
    ['null', '100'],
  ])('an output bound of %s is sent as %s', async (given, expected) => {
    expect(await sent(bounded(100), `{"model":"${model}","max_output_tokens":${given}}`)).toBe(
      `{"model":"${model}","max_output_tokens":${expected}}`,
    );
  });

  test.each(['"n":2', '"n":"2"', '"N":2', '"best_of":3', '"best_of":1,"n":1.5'])(
    'several answers to one request would pass the bound of the output: %s',
    async (members) => {
      expect(await sent(bounded(100), `{"model":"${model}",${members}}`)).toBe(403);
      expect(await sent(bounded(), `{"model":"${model}",${members}}`)).toContain(members);
    },
  );

  test('one answer to a request may be asked for by its number', async () => {
    expect(await sent(bounded(100), `{"model":"${model}","n":1,"best_of":null}`)).toContain('"n":1');
  });

  test('the type of a body is the one as which it was checked', async () => {
    expect((await raw(bounded(), `{"model":"${model}"}`, 'application/x-www-form-urlencoded')).status).toBe(200);
    expect(fixture.requests.at(-1)?.headers['content-type']).toBe('application/json');
  });

  test('a body with a large picture passes', async () => {
    const picture = 'A'.repeat(20_000_000);
    const body = `{"model":"${model}","input":"${picture}"}`;
    expect((await sent(bounded(), body)) === body).toBe(true);
  });
});

describe('who closed first', () => {
  /** A model that does what `behave` says with each request. */
  const behaving = async (behave: (response: ServerResponse, call: number) => void, silence?: number) => {
    let calls = 0;
    const server = createServer((request, response) => {
      request.resume().on('end', () => behave(response, calls++));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const own = await startProviderProxy(
      new URL(`http://127.0.0.1:${port}`),
      token,
      { 'POST /v1/responses': { inference: true } },
      silence,
    );
    const route = own.addRoute({ model, maxTurns: 2 });
    let limits = 0;
    route.enable(() => limits++);
    return {
      route,
      addRoute: (maxTurns: number) => own.addRoute({ model, maxTurns }),
      calls: () => calls,
      limits: () => limits,
      close: async () => {
        await own.close();
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  };
  /** Asks, and hangs up once `when` holds. */
  const hangUp = async (route: ProxyRoute, when: (text: string) => boolean): Promise<void> => {
    const { port, pathname } = new URL(route.url);
    const body = JSON.stringify({ model });
    const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
    let text = '';
    socket.on('data', (part: Buffer) => (text += part.toString()));
    socket.write(
      `POST ${pathname}/v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${route.credential}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await eventually(() => when(text));
    socket.destroy();
  };

  test('an agent that hangs up in the middle of an answer had a turn, and the model no trouble', async () => {
    let left = 0;
    const it = await behaving((response) => {
      response.on('close', () => left++);
      response.writeHead(200).write('a part');
    });
    for (let i = 0; i < 2; i++) {
      await hangUp(it.route, (text) => text.includes('a part'));
      await eventually(() => left === i + 1);
    }
    expect((await ask(it.route)).status).toBe(400);
    expect([it.limits(), it.route.trouble()]).toEqual([1, undefined]);
    await it.close();
  });

  test('an agent that hangs up before the answer begins also had a turn', async () => {
    let left = 0;
    const it = await behaving((response) => void response.on('close', () => left++));
    for (let i = 0; i < 2; i++) {
      await hangUp(it.route, () => it.calls() === i + 1);
      await eventually(() => left === i + 1);
    }
    expect((await ask(it.route)).status).toBe(400);
    expect([it.limits(), it.route.trouble()]).toEqual([1, undefined]);
    await it.close();
  });

  test('a provider proxy that breaks off an answer is trouble that names it, and the call was a turn', async () => {
    const it = await behaving((response) => {
      response.writeHead(200).write('a part', () => response.destroy());
    });
    for (let i = 0; i < 2; i++) await ask(it.route).then((answer) => answer.text().catch(() => undefined));
    expect(it.route.trouble()).toEqual({
      code: 'provider_proxy_unavailable',
      message: 'the provider proxy closed the connection in the middle of an answer',
    });
    expect((await ask(it.route)).status).toBe(400);
    await it.close();
  });

  test('a provider proxy that breaks before it answers is trouble that names it, and the call was no turn', async () => {
    const it = await behaving((response, call) => {
      if (call < 3) response.destroy();
      else response.end('{}');
    });
    for (let i = 0; i < 3; i++) expect((await ask(it.route)).status).toBe(502);
    expect(it.route.trouble()).toEqual({
      code: 'provider_proxy_unavailable',
      message: 'the provider proxy closed the connection before it answered',
    });
    expect((await ask(it.route)).status).toBe(200);
    expect(it.route.trouble()).toBeUndefined();
    await it.close();
  });

  test('the first call after a broken-off answer is a retry, unless another call is under way', async () => {
    const it = await behaving((response, call) => {
      if (call === 0 || call === 3) response.writeHead(200).write('a part', () => response.destroy());
      else if (call === 2) response.writeHead(200).write('a part');
      else response.end('{}');
    });
    const seen: number[] = [];
    let retries = 0;
    const wide = it.addRoute(9);
    wide.enable(
      () => undefined,
      () => retries++,
    );
    const call = async () => {
      await ask(wide).then((answer) => answer.text().catch(() => undefined));
      seen.push(retries);
    };
    await call();
    await call();
    const open = ask(wide);
    await eventually(() => it.calls() === 3);
    await call();
    await call();
    expect(seen).toEqual([0, 1, 1, 1]);
    wide.disable();
    await open.then((answer) => answer.text().catch(() => undefined));
    await it.close();
  });

  test('a model that stays silent is trouble before its agent gives up', async () => {
    const it = await behaving(() => undefined, 50);
    expect((await ask(it.route)).status).toBe(502);
    expect(it.route.trouble()).toMatchObject({ code: 'model_unavailable', message: 'the model was silent for too long' });
    await it.close();
  });

  test('trouble of a call that came before stays known when the agent hangs up on the next', async () => {
    const it = await behaving((response, call) => {
      if (call === 0) response.writeHead(500).end();
    });
    await ask(it.route);
    await hangUp(it.route, () => it.calls() === 2);
    expect(it.route.trouble()).toMatchObject({ code: 'model_unavailable', message: expect.stringContaining('500') });
    await it.close();
  });
});
