import { expect, test } from '@jest/globals';
import { createLog, logLevel } from '../../src/controller/log.js';
import type { Log } from '../../src/controller/log.js';
import { CodedError } from '../../src/lib/errors.js';

type Lines = readonly Readonly<Record<string, unknown>>[];

function logged(use: (log: Log) => void, level: Parameters<typeof createLog>[0] = 'info'): Lines {
  const lines: string[] = [];
  use(createLog(level, (line) => lines.push(line)));
  return lines.map((line) => JSON.parse(line) as Lines[number]);
}

test('a line has the level as a word, the time in ISO form, the event and what it is about', () => {
  const [line] = logged((log) => {
    log.info('pool observed', { pool: 'team-a/acp-1', took: 12 });
  });
  expect(line).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    event: 'pool observed',
    pool: 'team-a/acp-1',
    took: 12,
  });
});

test('what a log was made with is in each of its lines', () => {
  const lines = logged((log) => {
    const ofPool = log.with({ controller: 'pool' }).with({ pool: 'a/b' });
    ofPool.info('one');
    ofPool.warn('two', { pool: 'c/d' });
  });
  expect(lines).toMatchObject([
    { level: 'info', controller: 'pool', pool: 'a/b' },
    { level: 'warn', controller: 'pool', pool: 'c/d' },
  ]);
});

test.each([
  ['debug', ['debug', 'info', 'warn', 'error']],
  ['info', ['info', 'warn', 'error']],
  ['error', ['error']],
] as const)('at level %s the lines of %j are written', (level, written) => {
  const lines = logged((log) => {
    log.debug('a');
    log.info('b');
    log.warn('c');
    log.error('d', new Error('e'));
  }, level);
  expect(lines.map((line) => line['level'])).toEqual(written);
});

test.each([
  'token',
  'authorization',
  'Authorization',
  'controllerToken',
  'capabilitySecret',
  'providerToken',
  'signingSeed',
  'seed',
  'data',
  'stringData',
])('the value of %s is written nowhere, however deep it is', (name) => {
  const lines = logged((log) => {
    log
      .with({ [name]: 'hunter2' })
      .info('a', { list: [{ [name]: { of: 'hunter2' } }], deep: { deeper: { [name]: ['hunter2'] } } });
  });
  expect(JSON.stringify(lines)).not.toContain('hunter2');
  expect(lines).toMatchObject([{ [name]: '[redacted]', list: [{ [name]: '[redacted]' }] }]);
});

test('names that only resemble those of secrets are written', () => {
  const [line] = logged((log) => {
    log.info('a', { tokenGeneration: 'abc', key: 'team-a/smoke', dataBytes: 3 });
  });
  expect(line).toMatchObject({ tokenGeneration: 'abc', key: 'team-a/smoke', dataBytes: 3 });
});

test('bytes are written as their number', () => {
  expect(
    logged((log) => {
      log.info('a', { key: Buffer.from('hunter2') });
    }),
  ).toMatchObject([{ key: '[7 bytes]' }]);
});

test('what refers to itself is written as deep as a line can be, and no deeper', () => {
  const loop: Record<string, unknown> = {};
  loop['self'] = loop;
  expect(
    JSON.stringify(
      logged((log) => {
        log.info('a', { loop });
      }),
    ),
  ).toContain('[deeper]');
});

class Broken extends CodedError<'broken'> {}

test('an error of ours is its code and its text, and nothing that it carries', () => {
  const error = new Broken('broken', { at: 'Task a/b', found: 'x' }, { cause: new Error('hunter2') });
  const [line] = logged((log) => {
    log.error('task failed', error);
  });
  expect(line?.['error']).toEqual({ code: 'broken', message: 'Task a/b: found "x"' });
});

test('an error inside of what a line is about is told in the same way', () => {
  const [line] = logged((log) => {
    log.warn('a', { runs: [{ error: new Broken('broken', { at: 'b' }) }] });
  });
  expect(line).toMatchObject({ runs: [{ error: { code: 'broken', message: 'b' } }] });
});

test('a defect is told with its places in the code, which hold no data', () => {
  const [line] = logged((log) => {
    log.error('a', new TypeError('no such thing'));
  });
  const error = line?.['error'] as { readonly at: readonly string[] };
  expect(error).toMatchObject({ code: 'TypeError', message: 'no such thing' });
  expect(error.at[0]).toContain('log.test');
});

test('what a parser could not read is not quoted', () => {
  const lines = logged((log) => {
    try {
      JSON.parse('hunter2');
    } catch (error) {
      log.error('a', error);
    }
  });
  expect(JSON.stringify(lines)).not.toContain('hunter2');
});

test('what was thrown and is no error is told all the same', () => {
  expect(
    logged((log) => {
      log.error('a', 'gone');
    }),
  ).toMatchObject([{ error: { message: 'gone' } }]);
});

test.each([
  [undefined, 'info'],
  ['', 'info'],
  ['debug', 'debug'],
  ['WARN', 'warn'],
])('ORKA_LOG_LEVEL=%s means %s', (text, level) => {
  expect(logLevel({ ORKA_LOG_LEVEL: text })).toBe(level);
});

test('a level that does not exist is refused with those that do', () => {
  expect(() => logLevel({ ORKA_LOG_LEVEL: 'loud' })).toThrow(
    'environment: ORKA_LOG_LEVEL: found "loud", allowed: debug, info, warn, error',
  );
});
