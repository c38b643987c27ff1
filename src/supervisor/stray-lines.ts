import { fitBytes } from '../lib/text.js';

/** Lines of one agent that are skipped. The next one ends its connection. */
export const mostStrayLines = 100;
/** Bytes of a line that are logged or quoted. */
const longestShown = 200;

/** Lines on an agent's standard output that are no JSON-RPC messages: a banner, a line of a log. A bounded number is skipped. */
export class StrayLines {
  readonly #redact: (text: string) => string;
  #count = 0;
  #first = '';

  /** `redact`: takes secrets out of a text. */
  constructor(redact: (text: string) => string) {
    this.#redact = redact;
  }

  /** The first line, redacted and cut. */
  get first(): string {
    return this.#first;
  }

  /** Counts a line and returns it redacted and cut; `undefined` = it is one too many. */
  skip(line: string): string | undefined {
    if (this.#count >= mostStrayLines) return undefined;
    const shown = fitBytes(this.#redact(line), longestShown, '…');
    if (this.#count++ === 0) this.#first = shown;
    return shown;
  }
}
