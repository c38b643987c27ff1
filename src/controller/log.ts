import { pino, stdTimeFunctions } from 'pino';
import { CodedError } from '../lib/errors.js';

const levels = ['debug', 'info', 'warn', 'error'] as const;
type Level = (typeof levels)[number];

/** Names and values that a line is about. Whoever logs names what happened and whom it concerns, never what was said. */
type About = Readonly<Record<string, unknown>>;

/** One JSON object a line: level, time, what the line is about, and the event. */
export interface Log {
  readonly debug: (event: string, about?: About) => void;
  readonly info: (event: string, about?: About) => void;
  readonly warn: (event: string, about?: About) => void;
  readonly error: (event: string, error: unknown, about?: About) => void;
  /** The same, with this in each line. */
  readonly with: (about: About) => Log;
}

/** `ORKA_LOG_LEVEL` is none of the levels. */
class LogLevelError extends CodedError<'log-level-invalid'> {}

/** What is written: this level and those after it. An empty variable counts as none. @default 'info' */
export function logLevel(environment: NodeJS.ProcessEnv = process.env): Level {
  const text = environment['ORKA_LOG_LEVEL'] ?? '';
  const level = text === '' ? 'info' : levels.find((one) => one === text.toLowerCase());
  if (level) return level;
  throw new LogLevelError('log-level-invalid', {
    at: 'environment',
    field: 'ORKA_LOG_LEVEL',
    found: text,
    allowed: levels.join(', '),
  });
}

/** `write` gets whole lines. @default standard output, at once, so that nothing is lost when the process ends */
export function createLog(level: Level = logLevel(), write?: (line: string) => void): Log {
  const options = {
    level,
    base: null,
    messageKey: 'event',
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  const logger = write ? pino(options, { write }) : pino(options);
  const logWith = (always: About): Log => {
    const line = (at: Level, event: string, about: About) => {
      if (logger.isLevelEnabled(at)) logger[at](withoutSecrets({ ...always, ...about }), event);
    };
    return {
      debug: (event, about = {}) => {
        line('debug', event, about);
      },
      info: (event, about = {}) => {
        line('info', event, about);
      },
      warn: (event, about = {}) => {
        line('warn', event, about);
      },
      error: (event, error, about = {}) => {
        line('error', event, { ...about, error: error instanceof Error ? error : { message: String(error) } });
      },
      with: (about) => logWith({ ...always, ...about }),
    };
  };
  return logWith({});
}

/** Members, at any depth and in any case, that hold or may hold a credential; `data` is that of a Secret. */
const secretNames: ReadonlySet<string> = new Set([
  'authorization',
  'bearer',
  'capabilitysecret',
  'controllertoken',
  'data',
  'password',
  'privatekey',
  'providertoken',
  'seed',
  'signingseed',
  'stringdata',
  'token',
]);
const deepest = 8;

function withoutSecrets(members: object, depth = 0): object {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]: [string, unknown]) => [
      name,
      secretNames.has(name.toLowerCase()) ? '[redacted]' : writable(value, depth),
    ]),
  );
}

function writable(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  if (value instanceof Error) return toldOf(value);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  // Nothing that is meant for a line is as deep as this; what refers to itself is.
  if (depth >= deepest) return '[deeper]';
  return Array.isArray(value) ? value.map((item) => writable(item, depth + 1)) : withoutSecrets(value, depth + 1);
}

/**
 * What a line says of an error. Texts of ours never hold a credential. A parser quotes what it was given, so its text is left out. An error
 * without a code is a defect of ours, and is not found without the places in the code.
 */
function toldOf(error: Error): object {
  const { code } = error as { readonly code?: unknown };
  if (typeof code === 'string') return { code, message: error.message };
  const message = error instanceof SyntaxError ? 'a text that cannot be parsed' : error.message;
  return { code: error.name, message, at: placesOf(error) };
}

function placesOf({ stack = '' }: Error): readonly string[] {
  return stack
    .split('\n')
    .flatMap((line) => /^ {4}at (.+)$/.exec(line)?.[1] ?? [])
    .slice(0, 8);
}
