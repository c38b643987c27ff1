/** The answer of a prompt, from the text that its agent sends piece by piece. */

/** One piece of text, as an agent sends it. */
export interface AnswerPiece {
  readonly text: string;
  /** The agent marks it as its final answer. */
  readonly final: boolean;
  /** Id of its message; all pieces of one message have the same. `undefined` = the agent names no messages, or this is a notice. */
  readonly message: string | undefined;
}

/**
 * The answer is the last complete message: of those marked as final, if there are any. Pieces without an id are one message, which counts
 * only where no message has an id. What a model call said before it broke off is no part of it once the agent asks again.
 *
 * Facts: Codex repeats a broken-off answer from its beginning, under the same id or another; before that it announces the retry. A message
 * that is followed by a tool call is complete.
 */
export class AnswerText {
  readonly #marked = new Messages();
  readonly #other = new Messages();
  #size = 0;

  /** Characters of all pieces, of dropped ones too. */
  get size(): number {
    return this.#size;
  }

  get text(): string {
    return this.#marked.last === '' ? this.#other.last : this.#marked.last;
  }

  add({ text, final, message }: AnswerPiece): void {
    this.#size += text.length;
    (final ? this.#marked : this.#other).add(text, message);
  }

  /** The agent called a tool: what it said until now is complete. */
  complete(): void {
    this.#marked.keep();
    this.#other.keep();
  }

  /** The agent asks the model again: what it said since the last complete message is dropped. `false` = it said nothing. */
  retry(): boolean {
    const dropped = [this.#marked.drop(), this.#other.drop()];
    return dropped.includes(true);
  }
}

/** Keeps as much as the answer can need, however many messages there are. */
class Messages {
  /** The message before the current one. */
  #before = '';
  #current: Growing | undefined;
  #id = '';
  readonly #unnamed = new Growing();

  get last(): string {
    const named = this.#current?.text ?? '';
    if (named !== '') return named;
    return this.#before === '' ? this.#unnamed.text : this.#before;
  }

  add(text: string, id: string | undefined): void {
    if (id === undefined) {
      this.#unnamed.text += text;
      return;
    }
    if (!this.#current || this.#id !== id) {
      if (this.#current && this.#current.text !== '') this.#before = this.#current.text;
      this.#current = new Growing();
      this.#id = id;
    }
    this.#current.text += text;
  }

  keep(): void {
    this.#unnamed.keep();
    this.#current?.keep();
  }

  drop(): boolean {
    const dropped = [this.#unnamed.drop(), this.#current?.drop() ?? false];
    return dropped.includes(true);
  }
}

class Growing {
  text = '';
  #kept = 0;

  keep(): void {
    this.#kept = this.text.length;
  }

  drop(): boolean {
    const dropped = this.text.length > this.#kept;
    this.text = this.text.slice(0, this.#kept);
    return dropped;
  }
}
