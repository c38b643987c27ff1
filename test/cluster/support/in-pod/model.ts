/** Runs in a Pod that stands for the provider proxy: a model behind a bearer check. Prints who asked for what; never a token. */
import { startModelFixture } from '../../../support/model-fixture.js';

const [token = '', answer = ''] = process.argv.slice(2);
const model = await startModelFixture(token, {
  host: '0.0.0.0',
  port: 1337,
  onRequest: ({ path, authorization }) => {
    process.stdout.write(`${JSON.stringify({ path, authorized: authorization === `Bearer ${token}` })}\n`);
  },
});
model.say(answer);
