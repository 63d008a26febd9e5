/**
 * Between a producer that pushes, such as the writable side of a stream, and a consumer that pulls, such as a chain.
 *
 * It holds one value: the producer is called back when it has been taken, which slows it down to the speed of the
 * consumer.
 */

/** Called when a value was taken, or is not wanted. */
type Taken = () => void;

export class Feed<T> implements AsyncIterableIterator<T> {
  #value: { readonly value: T; readonly taken: Taken } | undefined;
  #waiting: ((result: IteratorResult<T>) => void) | undefined;
  /**
   * - `open`: more may come. - `ended`: nothing more comes, but a value may be here.
   * - `closed`: nothing more is wanted; further values are dropped, since a stream cannot refuse them.
   */
  #state: "open" | "ended" | "closed" = "open";

  /** Whether nothing more is wanted. */
  get isClosed(): boolean {
    return this.#state === "closed";
  }

  /** Passes a value on; the next one is passed on only after this one has been taken. */
  push(value: T, taken: Taken): void {
    const waiting = this.#waiting;
    if (this.#state === "closed") {
      taken();
    } else if (waiting === undefined) {
      this.#value = { value, taken };
    } else {
      this.#waiting = undefined;
      waiting({ done: false, value });
      taken();
    }
  }

  /** Nothing more comes. */
  end(): void {
    if (this.#state === "open") this.#state = "ended";
    this.#waiting?.(END);
    this.#waiting = undefined;
  }

  /** The next value; not called again before it arrived. */
  next(): Promise<IteratorResult<T>> {
    const next = this.#value;
    if (next !== undefined) {
      this.#value = undefined;
      next.taken();
      return Promise.resolve({ done: false, value: next.value });
    }
    if (this.#state !== "open") return Promise.resolve(END);
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** Nothing more is wanted. */
  return(): Promise<IteratorResult<T>> {
    this.#state = "closed";
    this.#waiting?.(END);
    this.#waiting = undefined;
    this.#value?.taken();
    this.#value = undefined;
    return Promise.resolve(END);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };
