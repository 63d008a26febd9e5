/**
 * `asyncMap`: calls under way while others are, across blocks. It is a source for the stages behind it.
 *
 * Begun and not handed on are at most twice as many items as may be under way, so that one that takes long does not make
 * the others wait at once, and a slow sink stops everything.
 */

import { type Block, type BlockSource, recordOf } from "./block.js";
import { type Context, stageFailed } from "./context.js";

/** One item on its way. */
interface Slot {
  readonly item: unknown;
  readonly record: number;
  value: unknown;
  state: "running" | "done" | "failed";
}

export class AsyncMapped implements BlockSource {
  /** What is begun and not handed on, in order of the items. */
  #slots: Slot[] = [];
  #running = 0;
  #block: Block | null = null;
  #index = 0;
  /** The upstream: whether it was asked, whether it has more, what went wrong with it. */
  #asked = false;
  #upstreamEnded = false;
  #upstreamFailure: { error: unknown } | undefined;
  #failure: unknown;
  #ended = false;
  #wake: () => void = () => {};

  constructor(
    readonly upstream: BlockSource,
    readonly f: (item: any) => any,
    readonly concurrency: number,
    readonly ordered: boolean,
    readonly stage: number,
    readonly context: Context,
  ) {}

  async next(): Promise<Block | null> {
    for (;;) {
      if (this.#ended) return null;
      this.#begin();
      const before = this.#slots.length;
      const ready = this.#takeReady();
      const isolating = this.context.isolate();
      if (isolating !== undefined) await this.context.orCancelled(isolating);
      if (ready.length > 0) return this.#asBlock(ready);
      // Failed ones have gone: there is room for others, and some may have settled meanwhile.
      if (this.#failure === undefined && this.#slots.length < before) continue;
      if (this.#failure !== undefined && (this.ordered || this.#running === 0)) {
        this.#ended = true;
        throw this.#failure;
      }
      if (this.#slots.length === 0 && this.#upstreamEnded && this.#block === null) {
        this.#ended = true;
        if (this.#upstreamFailure !== undefined) throw this.#upstreamFailure.error;
        return null;
      }
      await this.context.orCancelled(
        new Promise<void>((resolve) => {
          this.#wake = resolve;
        }),
      );
    }
  }

  async close(): Promise<void> {
    this.#ended = true;
    this.#slots = [];
    this.#block = null;
    this.#wake();
    await this.upstream.close();
  }

  /** Begins as many as may be. */
  #begin(): void {
    while (this.#failure === undefined && this.#running < this.concurrency && this.#hasRoom()) {
      if (this.#block === null) {
        this.#ask();
        return;
      }
      this.#beginOne(this.#block, this.#index++);
      if (this.#index === this.#block.items.length) this.#block = null;
    }
  }

  #hasRoom(): boolean {
    return this.#slots.length < 2 * this.concurrency;
  }

  #beginOne(block: Block, index: number): void {
    const slot: Slot = { item: block.items[index], record: recordOf(block, index), value: undefined, state: "running" };
    this.#slots.push(slot);
    this.#running++;
    let result: unknown;
    try {
      result = this.f(slot.item);
    } catch (error) {
      this.#settle(slot, "failed", error);
      return;
    }
    Promise.resolve(result).then(
      (value) => this.#settle(slot, "done", value),
      (error) => this.#settle(slot, "failed", error),
    );
  }

  #settle(slot: Slot, state: "done" | "failed", value: unknown): void {
    this.#running--;
    slot.state = state;
    slot.value = value;
    this.#wake();
  }

  #ask(): void {
    if (this.#asked || this.#upstreamEnded) return;
    this.#asked = true;
    this.upstream.next().then(
      (block) => {
        this.#asked = false;
        this.#upstreamEnded = block === null;
        this.#block = block;
        this.#index = 0;
        this.#wake();
      },
      (error) => {
        this.#asked = false;
        this.#upstreamEnded = true;
        this.#upstreamFailure = { error };
        this.#wake();
      },
    );
  }

  /** Takes what can be handed on: in order, or whatever is done. */
  #takeReady(): Slot[] {
    const ready: Slot[] = [];
    const waiting: Slot[] = [];
    for (const slot of this.#slots) {
      const isNext = this.ordered ? waiting.length === 0 && this.#failure === undefined : true;
      if (slot.state === "running" || !isNext) waiting.push(slot);
      else if (slot.state === "done") ready.push(slot);
      else this.#fail(slot);
    }
    this.#slots = waiting;
    return ready;
  }

  #fail(slot: Slot): void {
    const error = stageFailed(this.stage, slot.record, slot.value);
    if (!this.context.goesOnWithout(slot.item, error)) this.#failure ??= error;
  }

  #asBlock(ready: Slot[]): Block {
    let first = ready[0].record;
    for (const { record } of ready) first = Math.min(first, record);
    const from = Uint32Array.from(ready, ({ record }) => record - first);
    if (this.context.stats) {
      const statistics = this.context.stages[this.stage];
      statistics.recordsOut += ready.length;
      statistics.recordsIn += ready.length;
    }
    return { items: ready.map(({ value }) => value), first, shift: 0, origin: { from, shift: 0, parent: null } };
  }
}
