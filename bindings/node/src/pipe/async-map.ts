/** `asyncMap` makes overlapping calls across blocks. It is a source for the stages after it.
 *
 * The number of items that are started and not passed on is at most twice the concurrency, so that a slow call does not
 * immediately make the others wait, and a slow sink stops everything. When a call ends, the next one starts immediately.
 * The consumer is woken when the number of results reaches the concurrency, or in the next turn of the event loop.
 */

import { type Block, type BlockSource, Indexes, recordOf, type Source } from "./block.js";
import { type Run, stageFailed } from "./run.js";
import { nextTurn } from "./source.js";

/** One item in progress. It is reused, because attaching handlers to a promise costs as much as the promise. */
class Slot {
  item: unknown;
  record = 0;
  of: Source | undefined;
  value: unknown;
  state: "running" | "done" | "failed" = "running";
  readonly fulfilled: (value: unknown) => void;
  readonly rejected: (error: unknown) => void;

  constructor(settled: (slot: Slot) => void) {
    this.fulfilled = (value) => {
      this.value = value;
      this.state = "done";
      settled(this);
    };
    this.rejected = (error) => {
      this.value = error;
      this.state = "failed";
      settled(this);
    };
  }
}

export class AsyncMapped implements BlockSource {
  /** If ordered, the items that are started and not passed on, starting at `#head`; otherwise those that have ended. */
  #slots: Slot[] = [];
  #head = 0;
  /** The free slots. */
  #free: Slot[] = [];
  #running = 0;
  /** The number of items that are started and not passed on. */
  #begun = 0;
  /** The number of items that have ended since the consumer was woken. */
  #ended = 0;
  /** The records and the indexes of the items that are passed on next, in reused memory. */
  readonly #records: number[] = [];
  readonly #indexes = new Indexes();
  #block: Block | null = null;
  #index = 0;
  /** The state of the upstream: whether a block was requested, whether it has more, and its error. */
  #asked = false;
  #upstreamEnded = false;
  #upstreamFailure: { error: unknown } | undefined;
  #failure: unknown;
  #closed = false;
  /**
   * The consumer that waits for a block. It needs no extra promise: the chain after it ends the wait on cancellation.
   */
  #asker: { resolve(block: Block | null): void; reject(error: unknown): void } | undefined;
  #willWake = false;
  /** The number of times the consumer was woken. */
  #woken = 0;
  #beginning = false;

  constructor(
    readonly upstream: BlockSource,
    readonly f: (item: any) => any,
    readonly concurrency: number,
    readonly ordered: boolean,
    readonly stage: number,
    readonly run: Run,
  ) {}

  next(): Promise<Block | null> {
    return new Promise((resolve, reject) => {
      this.#asker = { resolve, reject };
      this.#serve();
    });
  }

  /** Answers a waiting consumer, if there is an answer. */
  #serve(): void {
    const asker = this.#asker;
    if (asker === undefined) return;
    this.#asker = undefined;
    for (;;) {
      if (this.#closed) {
        asker.resolve(null);
        return;
      }
      this.#begin();
      const before = this.#begun;
      const ready = this.#takeReady();
      // The upstream is read while these items continue.
      this.#begin();
      const isolating = this.run.isolate();
      if (isolating !== undefined) {
        const goOn = () => {
          if (ready !== null) {
            asker.resolve(ready);
          } else {
            this.#asker = asker;
            this.#serve();
          }
        };
        isolating.then(goOn, asker.reject);
        return;
      }
      if (ready !== null) {
        asker.resolve(ready);
        return;
      }
      if (this.#failure !== undefined && (this.ordered || this.#running === 0)) {
        this.#closed = true;
        asker.reject(this.#failure);
        return;
      }
      // Failed items were removed, and others may have ended in the meantime.
      if (this.#failure === undefined && this.#begun !== before) continue;
      if (this.#begun === 0 && this.#upstreamEnded && this.#block === null) {
        this.#closed = true;
        if (this.#upstreamFailure !== undefined) asker.reject(this.#upstreamFailure.error);
        else asker.resolve(null);
        return;
      }
      this.#asker = asker;
      return;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#slots = [];
    this.#free = [];
    this.#block = null;
    this.#wakeUp();
    await this.upstream.close();
  }

  /** Starts as many items as allowed. */
  #begin(): void {
    // A call that ends immediately re-enters this function; the outer loop starts the next one.
    if (this.#beginning) return;
    this.#beginning = true;
    while (
      this.#failure === undefined &&
      !this.#closed &&
      this.#running < this.concurrency &&
      this.#begun < 2 * this.concurrency
    ) {
      if (this.#block === null) {
        this.#ask();
        break;
      }
      this.#beginOne(this.#block, this.#index++);
      if (this.#block !== null && this.#index === this.#block.items.length) this.#block = null;
    }
    this.#beginning = false;
  }

  #beginOne(block: Block, index: number): void {
    const slot = this.#free.pop() ?? new Slot(this.#settled);
    slot.item = block.items[index];
    slot.record = recordOf(block, index);
    slot.of = block.of;
    slot.state = "running";
    if (this.ordered) this.#slots.push(slot);
    this.#running++;
    this.#begun++;
    let result: unknown;
    try {
      result = this.f(slot.item);
    } catch (error) {
      slot.rejected(error);
      return;
    }
    Promise.resolve(result).then(slot.fulfilled, slot.rejected);
  }

  readonly #settled = (slot: Slot): void => {
    this.#running--;
    if (!this.ordered) this.#slots.push(slot);
    this.#begin();
    this.#ended++;
    if (this.#ended >= this.concurrency || this.#running === 0) this.#wakeUp();
    else if (!this.#willWake) this.#wakeNextTurn();
  };

  #wakeNextTurn(): void {
    this.#willWake = true;
    const before = this.#woken;
    nextTurn(() => {
      this.#willWake = false;
      if (this.#woken === before) this.#wakeUp();
      // The available results have arrived only since then.
      else if (this.#ended > 0) this.#wakeNextTurn();
    });
  }

  #wakeUp(): void {
    this.#ended = 0;
    this.#woken++;
    this.#serve();
  }

  #ask(): void {
    if (this.#asked || this.#upstreamEnded) return;
    this.#asked = true;
    this.upstream.next().then(this.#came, this.#brokeOff);
  }

  readonly #came = (block: Block | null): void => {
    this.#asked = false;
    this.#upstreamEnded = block === null;
    this.#block = block;
    this.#index = 0;
    this.#begin();
    if (block === null) this.#wakeUp();
  };

  readonly #brokeOff = (error: unknown): void => {
    this.#asked = false;
    this.#upstreamEnded = true;
    this.#upstreamFailure = { error };
    this.#wakeUp();
  };

  /** Takes the results that can be passed on: in order, or all that have ended. */
  #takeReady(): Block | null {
    const slots = this.#slots;
    const items: unknown[] = [];
    const records = this.#records;
    records.length = 0;
    let head = this.#head;
    // Merged sources have records of their own.
    let of = slots[head]?.of;
    for (; head < slots.length; head++) {
      const slot = slots[head];
      // Unless results are ordered, a failed item does not hold back others that have ended.
      if (this.ordered && (slot.state === "running" || this.#failure !== undefined)) break;
      this.#begun--;
      if (slot.state === "done") {
        items.push(slot.value);
        records.push(slot.record);
        if (slot.of !== of) of = undefined;
      } else if (this.#failure === undefined) {
        this.#fail(slot);
      }
      slot.item = undefined;
      slot.value = undefined;
      this.#free.push(slot);
    }
    if (head === slots.length) {
      slots.length = 0;
      head = 0;
    } else if (head >= 2 * this.concurrency) {
      slots.splice(0, head);
      head = 0;
    }
    this.#head = head;
    return items.length === 0 ? null : this.#asBlock(items, records, of);
  }

  #fail(slot: Slot): void {
    const error = stageFailed(this.stage, slot.record, slot.of, slot.value);
    if (!this.run.goesOnWithout(slot.item, error)) this.#failure ??= error;
  }

  #asBlock(items: unknown[], records: readonly number[], of: Source | undefined): Block {
    const { length } = items;
    const from = this.#indexes.atLeast(length);
    let first = records[0];
    if (!this.ordered) for (const record of records) first = Math.min(first, record);
    for (let index = 0; index < length; index++) from[index] = records[index] - first;
    if (this.run.stats) {
      const statistics = this.run.stages[this.stage];
      statistics.items += length;
      statistics.itemsIn += length;
    }
    return { items, of, first, shift: 0, origin: { from, shift: 0, parent: null } };
  }
}
