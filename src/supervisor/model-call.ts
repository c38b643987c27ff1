/** What became of the calls of a model: they count as turns, and what kept the model from answering is remembered. */

/** What kept the model from answering. */
export interface ModelTrouble {
  readonly code:
    'model_unauthorized' | 'model_rate_limited' | 'model_unavailable' | 'model_request_refused' | 'provider_proxy_unavailable';
  readonly message: string;
}

/** Calls of one prompt. */
export class ModelCalls {
  #turns = 0;
  #underWay = 0;
  #brokeOff = false;
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
    this.#brokeOff = false;
    this.#trouble = undefined;
  }

  /** Whether the next call repeats one whose answer broke off. While another call is under way, that cannot be known. */
  get isRetry(): boolean {
    return this.#brokeOff && this.#underWay === 0;
  }

  begin(): ModelCall {
    this.#turns++;
    this.#underWay++;
    this.#brokeOff = false;
    return new TurnCall({
      answered: () => {
        this.#trouble = undefined;
      },
      failed: (trouble, answered) => {
        // An agent tries again by itself, which is no turn of its user's.
        if (!answered) this.#turns--;
        this.#brokeOff = answered;
        this.#trouble = trouble;
      },
      over: () => {
        this.#underWay--;
      },
    });
  }
}

/** The first event that ends a call decides who closed it: later events look the same for both sides. */
export interface ModelCall {
  /** The head of the model's answer. */
  readonly answered: (status: number) => void;
  /** The model's side broke. @default code: model_unavailable */
  readonly failed: (message: string, code?: ModelTrouble['code']) => void;
  /** All of the answer is there, or our side left: the agent hung up, or its prompt ended. */
  readonly ended: () => void;
}

/** A call that is no turn. */
export const uncounted: ModelCall = { answered: () => undefined, failed: () => undefined, ended: () => undefined };

interface CallListener {
  readonly answered: () => void;
  readonly failed: (trouble: ModelTrouble, answered: boolean) => void;
  /** After the last of the others. */
  readonly over: () => void;
}

class TurnCall implements ModelCall {
  readonly #listener: CallListener;
  #answered = false;
  #over = false;

  constructor(listener: CallListener) {
    this.#listener = listener;
  }

  answered(status: number): void {
    if (this.#over) return;
    if (status >= 300) {
      this.failed(`the call of the model was answered with HTTP ${status}`, troubleCode(status));
      return;
    }
    this.#answered = true;
    this.#listener.answered();
  }

  failed(message: string, code: ModelTrouble['code'] = 'model_unavailable'): void {
    if (this.#over) return;
    this.#listener.failed({ code, message }, this.#answered);
    this.ended();
  }

  ended(): void {
    if (this.#over) return;
    this.#over = true;
    this.#listener.over();
  }
}

function troubleCode(status: number): ModelTrouble['code'] {
  if (status === 401 || status === 403) return 'model_unauthorized';
  if (status === 429) return 'model_rate_limited';
  return status < 400 || status >= 500 ? 'model_unavailable' : 'model_request_refused';
}
