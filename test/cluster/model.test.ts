/** What becomes of a Task whose model is slow, silent, or fails. All of them run at the same time, since each waits most of the time. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Task } from '../../src/api/index.js';
import { kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { answerOf, applyObjects, example, taskLike, taskOver } from './support/first-task.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { modelRequests } from './support/model.js';
import type { ModelRequest } from './support/model.js';

const { namespace = '' } = example.task.metadata;

interface Row {
  readonly name: string;
  readonly what: string;
  /** What the prompt says before it asks for a word. */
  readonly order: string;
  readonly timeout?: string;
  /** Of the Task, once it is over. */
  readonly ends: object;
  /** Seconds that it takes at least. */
  readonly lasts?: number;
  /** Requests of the agent for one prompt: it asks again where it may. */
  readonly requests: readonly [least: number, most: number];
}

const well = { phase: 'Succeeded', execution: { state: 'Succeeded', outcome: 'Succeeded' } };
const failed = { phase: 'Failed', execution: { state: 'Failed', outcome: 'Failed', reason: 'PromptFailed' } };

const rows: readonly Row[] = [
  {
    name: 'model-silent',
    what: 'is silent for 45 seconds before it answers',
    order: 'Wait 45 seconds.',
    ends: well,
    lasts: 45,
    requests: [1, 1],
  },
  {
    name: 'model-slow',
    what: 'says a little each second for two minutes',
    order: 'Take 120 seconds.',
    ends: well,
    lasts: 120,
    requests: [1, 1],
  },
  {
    name: 'model-hangs',
    what: 'never answers, until the time of the Task is over',
    order: 'Never answer.',
    timeout: '3m',
    ends: { phase: 'Cancelled', execution: { state: 'Cancelled', outcome: 'Cancelled', reason: 'TaskTimeout' } },
    requests: [1, 1],
  },
  {
    name: 'model-resets',
    what: 'breaks each connection',
    order: 'Break the connection.',
    ends: failed,
    requests: [1, 30],
  },
  { name: 'model-429', what: 'answers 429', order: 'Fail with 429.', ends: failed, requests: [1, 30] },
  { name: 'model-500', what: 'answers 500', order: 'Fail with 500.', ends: failed, requests: [1, 30] },
];

const wordOf = ({ name }: Row) => name.toUpperCase().replaceAll('-', '_');

let product: Installed;
let requests: readonly ModelRequest[] = [];
const over = new Map<string, Task>();

beforeAll(async () => {
  product = await installed({ gates: true });
  await applyObjects(kubectl, [example.agent]);
  const after = stopwatch('models that are slow or fail');
  await applyObjects(
    kubectl,
    rows.map((row) => taskLike(row.name, { prompt: `${row.order} Reply exactly: ${wordOf(row)}`, timeout: row.timeout ?? '5m' })),
  );
  await explained(product, () =>
    Promise.all(
      rows.map(async ({ name }) => {
        const task = await taskOver(kubectl, { name, namespace }, 360);
        over.set(name, task);
        const { state, reason, message } = task.status?.execution ?? {};
        after([name, state, reason, message].filter(Boolean).join(' '));
      }),
    ),
  );
  requests = await modelRequests(kubectl, product.poolClass);
}, 900_000);
afterAll(() => product.remove(), 600_000);

describe.each(rows)('a model that $what', (row) => {
  const seconds = ({ status }: Task) => (Date.parse(status?.completionTime ?? '') - Date.parse(status?.startTime ?? '')) / 1000;

  test(`ends the Task as ${row.ends === well ? 'Succeeded' : 'what the contract says'}`, () => {
    expect(over.get(row.name)?.status).toMatchObject(row.ends);
    // Times of the API are of whole seconds.
    expect(seconds(over.get(row.name)!)).toBeGreaterThanOrEqual((row.lasts ?? 0) - 1);
  });

  test('is sent one prompt, whatever its agent asks again', () => {
    const task = over.get(row.name)!;
    const asked = requests.filter(({ asked: word, path }) => word === wordOf(row) && path.startsWith('/v1/responses'));
    expect(asked.length).toBeGreaterThanOrEqual(row.requests[0]);
    expect(asked.length).toBeLessThanOrEqual(row.requests[1]);
    expect(task.status).toMatchObject({ attempts: 1, execution: { attempt: 1, promptID: `prompt-${task.metadata.uid}-1` } });
  });

  if (row.ends === well)
    test('is heard to the end', async () => {
      const answer = await answerOf(kubectl, { name: row.name, namespace });
      expect(answer.replaceAll('. ', '')).toBe(wordOf(row));
    });
  else
    test('leaves no answer', () => {
      expect(over.get(row.name)?.status?.resultRef).toBeUndefined();
    });
});
