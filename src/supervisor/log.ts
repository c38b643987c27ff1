/**
 * One JSON object a line on stderr. A line names the event and the session, never what a prompt said. The only text of an agent in it is the
 * end of its stderr and the lines that are no messages, redacted and cut.
 */
export interface Log {
  readonly info: (event: string, about?: Readonly<Record<string, string | number | boolean>>) => void;
  readonly error: (event: string, error: unknown, about?: Readonly<Record<string, string | number | boolean>>) => void;
}

/** `write` gets whole lines. @default stderr */
export function createLog(write: (line: string) => void = (line) => process.stderr.write(line)): Log {
  const line = (level: string, event: string, about: object) =>
    write(`${JSON.stringify({ time: new Date().toISOString(), level, event, ...about })}\n`);
  return {
    info: (event, about = {}) => line('info', event, about),
    error: (event, error, about = {}) =>
      line('error', event, { ...about, error: error instanceof Error ? error.message : String(error) }),
  };
}
