/** Connects a producer that pushes, such as the writable side of a stream, to a consumer that pulls, such as a chain.
 *
 * A feed holds one value. The producer is called back when the value has been taken, which limits it to the speed of
 * the consumer.
 */

/** Called when a value was taken or dropped. */
type Taken = () => void;

export class Feed<T> implements AsyncIterableIterator<T> {
  #value: { readonly value: T; readonly taken: Taken } | undefined;
  #waiting: ((result: IteratorResult<T>) => void) | undefined;
  /** - `open`: more values may arrive. - `ended`: no more values arrive, but one may be waiting.
   * - `closed`: the consumer needs no more values; further ones are dropped, because a stream cannot refuse them.
   */
  #state: "open" | "ended" | "closed" = "open";

  /** Whether the consumer needs no more values. */
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

  /** The producer has no more values. */
  end(): void {
    if (this.#state === "open") this.#state = "ended";
    this.#waiting?.(END);
    this.#waiting = undefined;
  }

  /** Returns the next value; not called again before it has arrived. */
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

  /** The consumer needs no more values. */
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
