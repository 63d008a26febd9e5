/** Waits that end early when a signal is triggered or a call interrupts them. */

import { cancelled } from "./error.js";

export class Waits {
  /** The signal has one listener for all of them, because many would be reported as a leak. */
  readonly #rejects = new Set<(error: unknown) => void>();

  /** `error` creates the error of the waits that the signal ends. */
  constructor(
    readonly signal: AbortSignal | undefined,
    readonly error: (signal: AbortSignal) => unknown = cancelled,
  ) {}

  /** Waits for a promise. Its result is ignored if the wait has ended before. */
  until<T>(promise: PromiseLike<T>): Promise<T> {
    const { signal } = this;
    const rejects = this.#rejects;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) reject(this.error(signal));
      if (rejects.size === 0) signal?.addEventListener("abort", this.#abort);
      rejects.add(reject);
      Promise.resolve(promise)
        .then(resolve, reject)
        .then(() => {
          rejects.delete(reject);
          if (rejects.size === 0) signal?.removeEventListener("abort", this.#abort);
        });
    });
  }

  /** Ends the waits in progress. */
  interrupt(error: unknown): void {
    for (const reject of this.#rejects) reject(error);
  }

  readonly #abort = (): void => this.interrupt(this.error(this.signal!));
}
