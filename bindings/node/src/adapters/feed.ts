/**
 * Between somebody who pushes, as the writable side of a stream, and somebody who pulls, as a chain does.
 *
 * It holds one value: who pushes is called back when that was taken, and so feels how fast the other one is.
 */

/** Called when a value was taken, or is not wanted. */
type Taken = () => void;

export class Feed<T> implements AsyncIterableIterator<T> {
  #value: { readonly value: T; readonly taken: Taken } | undefined;
  #waiting: ((result: IteratorResult<T>) => void) | undefined;
  /**
   * - `open`: more may come. - `ended`: nothing more comes, but a value may be here.
   * - `closed`: nothing more is wanted; what comes is dropped, as a stream has no other way to say so.
   */
  #state: "open" | "ended" | "closed" = "open";

  /** Whether nothing more is wanted. */
  get isClosed(): boolean {
    return this.#state === "closed";
  }

  /** Gives a value, the next one only when this one was taken. */
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

  /** The next value, not asked for again before it came. */
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
