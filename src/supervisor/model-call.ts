/** What became of the calls of a model: they count as turns, and what kept the model from answering is remembered. */

/** What kept the model from answering. */
export interface ModelTrouble {
  readonly code: 'model_unauthorized' | 'model_rate_limited' | 'model_unavailable' | 'model_request_refused';
  readonly message: string;
}

/** Calls of one prompt. */
export class ModelCalls {
  #turns = 0;
  #trouble: ModelTrouble | undefined;

  /** Calls that the model answered, that it may yet answer, or that the agent gave up. */
  get turns(): number {
    return this.#turns;
  }

  /** Why the model's side failed last; `undefined` = it answered after that, or never failed. */
  get trouble(): ModelTrouble | undefined {
    return this.#trouble;
  }

  reset(): void {
    this.#turns = 0;
    this.#trouble = undefined;
  }

  begin(): ModelCall {
    this.#turns++;
    return new TurnCall({
      answered: () => {
        this.#trouble = undefined;
      },
      failed: (trouble, answered) => {
        // An agent tries again by itself, which is no turn of its user's.
        if (!answered) this.#turns--;
        this.#trouble = trouble;
      },
    });
  }
}

/** The first event that ends a call decides who closed it: later events look the same for both sides. */
export interface ModelCall {
  /** The head of the model's answer. */
  readonly answered: (status: number) => void;
  /** The model's side broke. */
  readonly failed: (message: string) => void;
  /** All of the answer is there, or our side left: the agent hung up, or its prompt ended. */
  readonly ended: () => void;
}

/** A call that is no turn. */
export const uncounted: ModelCall = { answered: () => undefined, failed: () => undefined, ended: () => undefined };

class TurnCall implements ModelCall {
  readonly #tell: { readonly answered: () => void; readonly failed: (trouble: ModelTrouble, answered: boolean) => void };
  #answered = false;
  #over = false;

  constructor(tell: { readonly answered: () => void; readonly failed: (trouble: ModelTrouble, answered: boolean) => void }) {
    this.#tell = tell;
  }

  answered(status: number): void {
    if (this.#over) return;
    if (status >= 300) {
      this.#end({ code: troubleCode(status), message: `the model was asked and HTTP ${status} was the answer` });
      return;
    }
    this.#answered = true;
    this.#tell.answered();
  }

  failed(message: string): void {
    if (!this.#over) this.#end({ code: 'model_unavailable', message });
  }

  ended(): void {
    this.#over = true;
  }

  #end(trouble: ModelTrouble): void {
    this.#over = true;
    this.#tell.failed(trouble, this.#answered);
  }
}

function troubleCode(status: number): ModelTrouble['code'] {
  if (status === 401 || status === 403) return 'model_unauthorized';
  if (status === 429) return 'model_rate_limited';
  return status < 400 || status >= 500 ? 'model_unavailable' : 'model_request_refused';
}
