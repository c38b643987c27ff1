/**
 * Each thing that can go wrong, in each state that an attempt can be in: how the Task ends, that its prompt is sent at most once, and that nothing
 * is left. What is a moment is held by a controller that stands still in it. `ORKA_FAULTS` names, as a regular expression, what of it is played.
 * Source: dispatch.md §4.5, §4.8; §10.4 E, F, G and K are among it.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Task } from '../../src/api/index.js';
import { cluster, kubectl } from './support/cluster.js';
import { createLane } from './support/crash-lane.js';
import type { Lane } from './support/crash-lane.js';
import { bringTo, endingOf, faultsOf, overIn, removed, resume, versionsOf } from './support/dispatch-lane.js';
import type { AttemptState, FaultName, Held } from './support/dispatch-lane.js';
import type { Step } from './support/doomed.js';
import { stopwatch } from './support/evidence.js';
import { ended } from './support/faults.js';
import { isOver } from './support/first-task.js';
import { startHistory } from './support/history.js';
import type { History } from './support/history.js';
import { modelRequests, startModel, stopModel } from './support/model.js';

interface Row {
  readonly state: AttemptState;
  /** Where in it the controller is interrupted. */
  readonly phase?: Step['phase'];
  /** What the prompt says before it asks for a word. @default - as its state needs it */
  readonly prompt?: string;
  /** Tells apart two rows of one state. */
  readonly named?: string;
  /** How the attempt may end: state and reason, and those of the delivery. */
  readonly ends: readonly string[];
  /** Seconds until it has; a sandbox takes half a minute to start on a slow machine, and its end may have to be waited for. @default 180 */
  readonly within?: number;
  /** What it says while the fault lasts, which is mended then. */
  readonly says?: RegExp;
  /** It began again, and its status said so. */
  readonly recovered?: true;
}

/** What nobody heard the end of. It is never sent again. */
const unknown = ['OutcomeUnknown/RuntimeLost'];
const well = ['Succeeded'];
const unread = ['Succeeded, DeliveryConflict/RuntimeWorkspaceLost'];
/** What was asked of the workspace may have been answered before. */
const looked = ['Succeeded, DeliveryConflict/WorkspaceValidationFailed', ...unread, ...well];
/** Another session was tried; or where the one was there before, it is the prompt that could not leave. */
const unsent = [...well, 'Failed/RuntimeSessionStartFailed', 'Failed/PromptNotAccepted'];
const cancelled = ['Cancelled/Cancelled'];
/** The supervisor ends what does not end before its Pod must. */
const inTime = ['Failed/PromptFailed'];
const hold = 'ORKA_HOLD_180S';

/** One after the other in an installation of its own, since controllers end; or all at the same time. */
const lanes: Readonly<Record<string, Partial<Record<FaultName, readonly Row[]>>>> = {
  killed: {
    'controller killed': [
      { state: 'Queued', ends: well },
      { state: 'SessionStarting', ends: well, recovered: true },
      { state: 'SessionStarting', phase: 'answered', ends: well, recovered: true },
      { state: 'Submitting', phase: 'begins', ends: unknown },
      { state: 'Submitting', ends: unknown },
      { state: 'Running', ends: unknown },
      { state: 'Settling', ends: unread },
      { state: 'Settling', phase: 'answered', ends: unread },
    ],
    // Of the controller that bound the Task nothing is left that remembers.
    'snapshot tampered with': [
      { state: 'Queued', ends: ['Failed/InvalidAttempt'] },
      { state: 'SessionStarting', ends: ['Failed/InvalidAttempt'] },
    ],
  },
  lost: {
    'Lease lost': [
      { state: 'Queued', ends: well },
      { state: 'SessionStarting', ends: well, recovered: true },
      { state: 'Submitting', ends: unknown },
      { state: 'Running', ends: unknown },
      { state: 'Settling', ends: unread },
    ],
  },
  sandbox: {
    'Pod deleted': [
      // A terminating Pod takes no session and no prompt; a running prompt has 90 seconds.
      { state: 'SessionStarting', ends: unsent, within: 300 },
      { state: 'Submitting', prompt: hold, ends: inTime },
      { state: 'Running', ends: inTime },
      { state: 'Running', named: 'short', prompt: 'Wait 15 seconds.', ends: well },
      { state: 'Settling', ends: well },
    ],
    'Sandbox deleted': [{ state: 'Running', prompt: 'Wait 15 seconds.', ends: well }],
    'claim deleted': [{ state: 'Running', prompt: 'Wait 15 seconds.', ends: well }],
    'supervisor killed': [
      { state: 'SessionStarting', ends: [...unsent, ...unknown] },
      { state: 'Submitting', prompt: hold, ends: unknown },
      { state: 'Running', ends: unknown },
      { state: 'Settling', ends: looked },
    ],
    'agent killed': [
      { state: 'SessionStarting', phase: 'answered', ends: ['Failed/PromptNotAccepted', ...unknown] },
      { state: 'Submitting', prompt: hold, ends: unknown },
      { state: 'Running', ends: unknown },
      { state: 'Settling', ends: well },
    ],
  },
  wanted: {
    'network cut': [
      // An instance that cannot be asked is kept, and whoever waits for it goes on when it can be.
      { state: 'SessionStarting', ends: unsent, says: /the instance cannot be asked/ },
      { state: 'Submitting', prompt: hold, ends: unknown, within: 400 },
      { state: 'Running', ends: unknown, within: 400 },
      { state: 'Settling', ends: looked },
    ],
    'Task deleted': [
      { state: 'Queued', ends: cancelled },
      { state: 'SessionStarting', ends: cancelled },
      { state: 'Submitting', prompt: hold, ends: cancelled },
      { state: 'Running', ends: cancelled },
      { state: 'Settling', ends: well },
    ],
    'pool deleted': [
      { state: 'Queued', ends: well },
      // The prompt may be on its way already when the instance is told to drain, and its connection is closed with the instance.
      { state: 'SessionStarting', ends: [...unsent, ...unknown] },
      // Its instance is drained: it takes nothing more, and ends what it has.
      { state: 'Running', prompt: 'Wait 15 seconds.', ends: well },
      { state: 'Settling', ends: well },
    ],
    'class drifted': [
      { state: 'Queued', ends: well, says: /class .* is not among its approvedDigests/ },
      { state: 'SessionStarting', ends: [...unsent, ...unknown] },
      { state: 'Running', prompt: 'Wait 20 seconds.', ends: well },
      { state: 'Settling', ends: well },
    ],
  },
};

/** Seconds after the deletion of a Task and its pool. Source: dispatch.md §8.3. */
const goneWithin = 180;

/** What a controller does not outlive: nothing else may run beside it. */
const deadly: readonly string[] = ['controller killed', 'snapshot tampered with', 'Lease lost'];

interface Outcome {
  readonly task: Task;
  readonly versions: readonly Task[];
  readonly left: readonly string[];
  /** Words that the Task said while the fault lasted. */
  readonly said: string;
}

const wanted = new RegExp(process.env['ORKA_FAULTS'] ?? '', 'i');
const jobs = Object.entries(lanes).flatMap(([lane, faults], number) =>
  Object.entries(faults).flatMap(([fault, rows]) =>
    rows
      .map((row) => {
        const word = ['FAULT', fault, row.state, row.phase, row.named]
          .filter(Boolean)
          .join('_')
          .replaceAll(' ', '_')
          .toUpperCase();
        return { ...row, lane, group: 64_100 + number, fault: fault as FaultName, word };
      })
      .filter(({ word }) => wanted.test(word)),
  ),
);
type Job = (typeof jobs)[number];

/** What there is of Tasks while the API server is down, each in another lane. */
const outages = (
  [
    { lane: 'killed', state: 'Queued', word: 'OUTAGE_QUEUED', ends: well },
    { lane: 'sandbox', state: 'Running', word: 'OUTAGE_RUNNING', ends: unknown },
    {
      lane: 'wanted',
      state: 'Running',
      word: 'OUTAGE_ANSWERED',
      prompt: 'Wait 8 seconds.',
      ends: [...unknown, ...unread, ...well],
    },
  ] as const
).filter(({ word }) => wanted.test(word));

const outcomes = new Map<string, Outcome | Error>();
const begun = new Map<string, Lane>();
const histories = new Map<string, History>();
let prompts: ReadonlyMap<string, number> = new Map();
/** What each was asked to say, when it was played first and then. */
const words = new Map<string, readonly string[]>();
let strangers: readonly unknown[] = [];
const tell = stopwatch('faults');

async function begin(lane: Lane, history: History, job: Job): Promise<Held> {
  const by = ['controller killed', 'snapshot tampered with'].includes(job.fault) ? 'SIGKILL' : 'SIGSTOP';
  return bringTo({ lane, history }, job.word, { ...job, by });
}

/** @returns what the Task said meanwhile, and what mends the fault once the Task is over */
async function goesWrong(held: Held, { fault, state, says, group }: Job): Promise<{ said: string; mend: () => Promise<void> }> {
  const stands = held.stopped && fault !== 'Lease lost';
  let mend: (() => Promise<void>) | undefined;
  try {
    mend = await faultsOf(group)[fault](held);
    if (stands) await sleep(1_000);
  } finally {
    // Others wait for it too.
    if (stands) resume(held);
  }
  const last = () => versionsOf(held.history, held.task).at(-1)?.status?.message ?? '';
  const over = () => isOver(versionsOf(held.history, held.task).at(-1));
  for (let tries = 0; says && !says.test(last()) && !over() && tries < 900; tries++) await sleep(200);
  const said = last();
  if (state === 'Queued') await held.lane.restoreToken();
  if (fault !== 'class drifted' && !says) return { said, mend: mend ?? (() => Promise.resolve()) };
  // All Tasks of the lane have the same class; and what was to be said was said.
  await mend?.();
  return { said, mend: () => Promise.resolve() };
}

async function finish(
  held: Held,
  { within = 180 }: Pick<Job, 'within'>,
  said = '',
  mend = () => Promise.resolve(),
): Promise<Outcome> {
  const { history } = held;
  const task = await overIn(history, held.task, within).finally(mend);
  const left = await removed(held, goneWithin);
  return { task, versions: versionsOf(history, held.task), left, said };
}

function noted(
  job: Pick<Job, 'word'>,
  since: number,
): readonly [done: (outcome: Outcome) => void, failed: (error: unknown) => void] {
  const note = (outcome: Outcome | Error, how: string) => {
    outcomes.set(job.word, outcome);
    tell(`${job.word} ${how} in ${((Date.now() - since) / 1000).toFixed(1)} s`);
  };
  return [
    (outcome) => note(outcome, [endingOf(outcome.task), ...outcome.left].join(', left: ')),
    (error) => {
      const it = error instanceof Error ? error : new Error(String(error));
      note(it, `failed: ${it.message}`);
    },
  ];
}

/** Plays what belongs to a lane; what was played with a controller that lost its Lease by standing still too long, once more. */
async function play(name: string): Promise<void> {
  const own = jobs.filter(({ lane }) => lane === name);
  const again = await playAll(name, own, ({ word }) => word);
  await playAll(name, again, ({ word }) => `${word}_AGAIN`);
}

/**
 * What needs its controller, or that no pool starts, is alone; the rest begins one after the other and ends at any time.
 *
 * @returns what says nothing: the controller ended by itself meanwhile
 */
async function playAll(name: string, own: readonly Job[], wordOf: (job: Job) => string): Promise<readonly Job[]> {
  const [lane, history] = [begun.get(name)!, histories.get(name)!];
  const isAlone = ({ fault, state }: Job) => deadly.includes(fault) || state === 'Queued';
  const running: Promise<void>[] = [];
  const unproven: Job[] = [];
  for (const job of [...own.filter(isAlone), ...own.filter((one) => !isAlone(one))]) {
    const word = wordOf(job);
    words.set(job.word, [...(words.get(job.word) ?? []), word]);
    const [done, failed] = noted(job, Date.now());
    const controller = await lane.controller();
    const judge = () => {
      if (!deadly.includes(job.fault) && controller.hasEnded()) unproven.push(job);
    };
    try {
      const held = await begin(lane, history, { ...job, word });
      const { said, mend } = await goesWrong(held, job);
      const end = finish(held, job, said, mend).then(done, failed).then(judge);
      if (isAlone(job)) await end;
      else running.push(end);
    } catch (error) {
      failed(error);
      judge();
      await Promise.all(running.splice(0));
      await lane.clean();
    }
  }
  await Promise.all(running);
  return unproven;
}

/** Half a minute without the API server is more than a leadership lasts: each controller ends, and is started again. */
async function outage(): Promise<void> {
  const server = ended('apiserver');
  const since = Date.now();
  const held = new Map<string, Held>();
  const bring = async (job: (typeof outages)[number]) => {
    held.set(job.word, await bringTo({ lane: begun.get(job.lane)!, history: histories.get(job.lane)! }, job.word, job));
  };
  // The one that is answered meanwhile does not wait for the others.
  const answered = outages.filter(({ word }) => word === 'OUTAGE_ANSWERED');
  await Promise.all(outages.filter((job) => !answered.includes(job)).map(bring));
  await Promise.all(answered.map(bring));
  try {
    await server.begin();
    await sleep(30_000);
  } finally {
    await server.mend();
  }
  tell('the API server is back');
  await Promise.all(
    outages.map(async (job) => {
      const [done, failed] = noted(job, since);
      try {
        const lane = begun.get(job.lane)!;
        await lane.replace();
        if (job.state === 'Queued') await lane.restoreToken();
        done(await finish(held.get(job.word)!, {}));
      } catch (error) {
        failed(error);
      }
    }),
  );
}

async function make(name: string, token: string): Promise<void> {
  const lane = await createLane(`orka-fault-${name}`, token, { group: jobs.find((job) => job.lane === name)?.group });
  begun.set(name, lane);
  histories.set(name, startHistory(lane.installation));
}

beforeAll(async () => {
  const token = randomBytes(32).toString('base64url');
  const [first = '', ...others] = [...new Set([...jobs, ...outages].map(({ lane }) => lane))];
  await make(first, token);
  await Promise.all(others.map((name) => make(name, token)));
  const { poolClass, image } = begun.get(first)!.installation;
  await startModel(kubectl, poolClass, { image, token });
  tell(`${begun.size} installations`);
  await Promise.all([first, ...others].map(play));
  if (cluster.node && outages.length > 0) await outage();
  const asked = (await modelRequests(kubectl, poolClass)).filter(({ path }) => path.startsWith('/v1/responses'));
  for (const { word } of outages) words.set(word, [word]);
  const known = [...words.values()].flat();
  strangers = asked.filter((one) => !known.includes(one.asked ?? ''));
  const times = (word: string) => asked.filter((one) => one.asked === word).length;
  prompts = new Map([...words].map(([word, all]) => [word, Math.max(...all.map(times))]));
}, 1_800_000);

afterAll(async () => {
  for (const history of histories.values()) history.stop();
  await Promise.all([...begun.values()].map((lane) => lane.remove()));
  const [lane] = begun.values();
  if (lane) await stopModel(kubectl, lane.installation.poolClass);
}, 600_000);

const outcomeOf = ({ word }: Pick<Job, 'word'>): Outcome => {
  const outcome = outcomes.get(word);
  if (!outcome) throw new Error(`${word} was not played`);
  if (outcome instanceof Error) throw outcome;
  return outcome;
};

/** What is so of every Task, whatever happened to it. */
function hasEnded({ ends, word }: Pick<Job, 'ends' | 'word'>): void {
  const { task } = outcomeOf({ word });
  expect(ends).toContain(endingOf(task));
  const { phase, execution } = task.status ?? {};
  expect(execution).toMatchObject({ attempt: 1, outcome: execution?.state });
  const phases = { Succeeded: 'Succeeded', Failed: 'Failed', Cancelled: 'Cancelled', OutcomeUnknown: 'Failed' } as const;
  expect(phase).toBe(endingOf(task).includes('DeliveryConflict') ? 'Failed' : phases[execution?.outcome ?? 'Failed']);
}

/** No prompt is sent twice, and one that succeeded was sent. */
function wasSentOnce({ word }: Pick<Job, 'word'>): void {
  const least = outcomeOf({ word }).task.status?.execution?.state === 'Succeeded' ? 1 : 0;
  expect(prompts.get(word)).toBeGreaterThanOrEqual(least);
  expect(prompts.get(word)).toBeLessThanOrEqual(1);
}

describe.each([...new Set(jobs.map(({ fault }) => fault))])('%s', (fault) => {
  describe.each(jobs.filter((job) => job.fault === fault))('while an attempt is $state ($word)', (job) => {
    test(`ends it as ${job.ends.join(' or ')}`, () => {
      hasEnded(job);
      const { task, versions, said } = outcomeOf(job);
      // One whose session was there already does not wait for it.
      if (job.says && task.status?.phase === 'Succeeded') expect(said).toMatch(job.says);
      const recovered = versions.some(({ status }) => status?.execution?.reason === 'ControllerRestartRecovered');
      expect(recovered).toBe(job.recovered === true);
    });

    test('has no prompt sent twice', () => wasSentOnce(job));

    test('leaves nothing', () => {
      expect(outcomeOf(job).left).toEqual([]);
    });

    if (fault === 'pool deleted' && job.state === 'Queued')
      test('goes on in a pool of the same name that was made anew', () => {
        const pools = outcomeOf(job).versions.map(({ status }) => status?.execution ?? {});
        expect(new Set(pools.flatMap(({ runtimePoolName }) => runtimePoolName ?? [])).size).toBe(1);
        expect(new Set(pools.flatMap(({ runtimePoolUID }) => runtimePoolUID ?? [])).size).toBe(2);
      });
  });
});

test('nothing is asked that no Task asks for', () => {
  expect(strangers).toEqual([]);
});

(cluster.node && outages.length > 0 ? describe : describe.skip)('half a minute without the API server', () => {
  test.each(outages)('ends a Task that is $state ($word), without a prompt that is sent twice, and leaves nothing', (job) => {
    hasEnded(job);
    wasSentOnce(job);
    expect(outcomeOf(job).left).toEqual([]);
  });
});
