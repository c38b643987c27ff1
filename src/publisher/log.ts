/** All that a line may say beside its event. There is no member for a text that a request, a forge or a person wrote. */
export interface LogFacts {
  readonly operationId?: string;
  readonly code?: string;
  readonly milliseconds?: number;
  readonly port?: number;
}

/** One JSON object a line. Source: repository.md §5.1. */
export interface Log {
  readonly info: (event: string, facts?: LogFacts) => void;
  readonly error: (event: string, facts?: LogFacts) => void;
}

/** `write` gets whole lines. @default standard output */
export function createLog(write: (line: string) => void = (line) => process.stdout.write(line)): Log {
  const line =
    (level: string) =>
    (event: string, { operationId, code, milliseconds, port }: LogFacts = {}) => {
      write(`${JSON.stringify({ time: new Date().toISOString(), level, event, operationId, code, milliseconds, port })}\n`);
    };
  return { info: line('info'), error: line('error') };
}

/** The code of an error, which is all that a line says of it. */
export function codeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  return [code, name].find((one): one is string => typeof one === 'string' && /^[\w-]{1,64}$/.test(one)) ?? 'unknown';
}
