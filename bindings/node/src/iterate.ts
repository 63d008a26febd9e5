/** Iteration that another loop can continue after an early exit. */

/** The end of an iteration. */
export const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** An iterator whose `return` does not close what it iterates over. */
export function resumable<I>(next: () => Promise<IteratorResult<I>>): AsyncIterableIterator<I> {
  return {
    next,
    return: (value?: unknown) => Promise.resolve({ done: true as const, value }),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Runs one call at a time: a call that is made while another one waits runs after it. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  take<R>(call: () => Promise<R>): Promise<R> {
    const result = this.#last.then(call);
    this.#last = result.catch(() => {});
    return result;
  }
}
