/**
 * Runs in a Pod that stands for the provider proxy: a model behind a bearer check. Says what its argument is, and without one what the prompt
 * asks it to say, in the way that the prompt asks for (see `model-orders.ts`). Prints who asked for what, one line for each request, with what a
 * prompt asks it to say; never a token.
 */
import { readFileSync } from 'node:fs';
import { startModelFixture } from '../../../support/model-fixture.js';
import { askedFor, replyTo } from './model-orders.js';

const [answer] = process.argv.slice(2);
const token = readFileSync('/secret/token', 'utf8');
await startModelFixture(token, {
  host: '0.0.0.0',
  port: 1337,
  onRequest: ({ method, path, authorization, body }) => {
    const first = !body.includes('"function_call_output"');
    const line = { method, path, authorized: authorization === `Bearer ${token}`, at: Date.now(), asked: askedFor(body), first };
    process.stdout.write(`${JSON.stringify(line)}\n`);
  },
  reply: ({ body }) => (answer === undefined ? replyTo(body) : { text: answer }),
});
