/**
 * Runs in a Pod that stands for the provider proxy: a model behind a bearer check. Says what its argument is, and without one what the prompt
 * asks it to say, after as many seconds as it asks it to wait. Prints who asked for what, one line for each request, with what a prompt asks it
 * to say; never a token.
 */
import { readFileSync } from 'node:fs';
import { startModelFixture } from '../../../support/model-fixture.js';

const [answer] = process.argv.slice(2);
const token = readFileSync('/secret/token', 'utf8');
const model = await startModelFixture(token, {
  host: '0.0.0.0',
  port: 1337,
  onRequest: ({ method, path, authorization, body }) => {
    const asked = [...body.matchAll(/Reply exactly: (\w+)/g)].at(-1)?.[1];
    model.say(answer ?? asked ?? 'nobody told me what to say');
    const wait = [...body.matchAll(/Wait (\d+) seconds/g)].at(-1)?.[1];
    model.delay(1_000 * Number(wait ?? 0));
    process.stdout.write(
      `${JSON.stringify({ method, path, authorized: authorization === `Bearer ${token}`, at: Date.now(), asked })}\n`,
    );
  },
});
