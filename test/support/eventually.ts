import { limit } from './pace.js';

const patience = 20_000;

/** Waits until something is true; fails after twenty seconds on a quiet machine. For what happens on a connection, where no clock can be held still. */
export async function eventually(condition: () => boolean): Promise<void> {
  const end = performance.now() + limit(patience);
  while (!condition()) {
    if (performance.now() > end) throw new Error(`never true: ${condition.toString()}`);
    await pause(5);
  }
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Asks until there is an answer: a supervisor opens its port anew after the delivery. After the same time the last error is thrown. */
export async function eventuallyAnswers<T>(ask: () => T | Promise<T>): Promise<T> {
  for (const end = performance.now() + limit(patience); performance.now() < end;) {
    try {
      return await ask();
    } catch {
      await pause(50);
    }
  }
  return ask();
}
