/** Says on standard error how far a command with much work is, every two seconds, and nothing in the first two. */
export class Progress {
  readonly #write: (line: string) => void;
  readonly #now: () => number;
  #next = every;

  constructor(write: (line: string) => void, now: () => number) {
    this.#write = write;
    this.#now = now;
  }

  /**
   * Cheap when nothing is due: `text` is asked for only then.
   *
   * @param much whether the work is large; little work is silent on a slow machine, too
   */
  readonly at = (much: boolean, text: () => string): void => {
    if (!much) return;
    const now = this.#now();
    if (now < this.#next) return;
    this.#next = now + every;
    this.#write(`${text()}\n`);
  };
}

/** In milliseconds. */
const every = 2000;

/** Of this process; time counts from its start. */
export const progress = new Progress(
  (line) => process.stderr.write(line),
  () => performance.now(),
);
