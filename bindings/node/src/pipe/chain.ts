/** Runs consecutive stages over blocks.
 *
 * This is not recursive: a loop takes a block from stage to stage, so the call stack is no deeper for 10,000 stages
 * than for one. If a stage makes two blocks out of one, the second waits on a separate stack. The chain awaits once per
 * block, and when a stage requires it.
 *
 * Blocks leave in order, and all items before a failing one leave before the error.
 */

import type { MillstreamError } from "../error.js";
import { type Block, type BlockSource, recordOf } from "./block.js";
import { type Context, stageFailed } from "./context.js";
import { isPromise } from "./loop.js";
import type { Place, Step } from "./place.js";

class PlaceInChain implements Place {
  constructor(
    readonly context: Context,
    readonly stage: number,
    readonly index: number,
    readonly chain: Chain,
  ) {}

  fail(block: Block, index: number, cause: unknown, item: unknown): boolean {
    const error = stageFailed(this.stage, recordOf(block, index), cause);
    if (this.context.goesOnWithout(item, error)) return true;
    this.chain.stop(error);
    return false;
  }

  postpone(block: Block): void {
    this.chain.postpone(block, this.index);
  }

  enough(): void {
    this.chain.enough();
  }
}

interface Waiting {
  readonly block: Block;
  readonly index: number;
}

/** A step, and the stage of the pipeline to which it belongs. */
export interface Link {
  readonly step: Step;
  readonly stage: number;
}

export class Chain implements BlockSource {
  readonly #source: BlockSource;
  readonly #steps: readonly Step[];
  readonly #places: readonly Place[];
  readonly #context: Context;
  /** The postponed blocks; the last one is the next to continue with. */
  #pile: Waiting[] = [];
  #failure: MillstreamError | undefined;
  #enough = false;
  #ended = false;

  constructor(source: BlockSource, links: readonly Link[], context: Context) {
    this.#source = source;
    this.#steps = links.map(({ step }) => step);
    this.#context = context;
    this.#places = links.map(({ stage }, index) => new PlaceInChain(context, stage, index, this));
    this.#enough = this.#steps.some((step) => step.wantsNothing);
  }

  async next(): Promise<Block | null> {
    const steps = this.#steps;
    const context = this.#context;
    for (;;) {
      const waiting = this.#pile.pop();
      let block = waiting?.block ?? (await this.#nextOfSource());
      if (block === null) return null;
      for (let index = waiting?.index ?? 0; index < steps.length; index++) {
        const began = context.stats ? performance.now() : 0;
        const length = block.items.length;
        const result = steps[index].run(block, this.#places[index]);
        block = isPromise(result) ? await context.orCancelled(result) : result;
        if (context.stats) this.#count(index, length, block.items.length, began);
        if (block.items.length === 0) break;
      }
      const isolating = context.isolate();
      if (isolating !== undefined) await context.orCancelled(isolating);
      if (block.items.length > 0) return block;
    }
  }

  async close(): Promise<void> {
    this.#ended = true;
    this.#drop();
    await this.#source.close();
  }

  /** Ends the chain after the current block. */
  stop(error: MillstreamError): void {
    this.#failure = error;
    this.#drop();
  }

  postpone(block: Block, index: number): void {
    this.#pile.push({ block, index });
  }

  /** Ends the chain after the current block. Postponed blocks come after it, so there are no others. */
  enough(): void {
    this.#enough = true;
    this.#drop();
  }

  async finishSteps(): Promise<void> {
    for (const step of this.#steps) await step.finish?.();
  }

  async abandonSteps(error: unknown, now: boolean): Promise<void> {
    for (const step of this.#steps) await step.abandon?.(error, now)?.catch(() => {});
  }

  async #nextOfSource(): Promise<Block | null> {
    if (this.#ended) return null;
    this.#context.checkSignal();
    if (this.#failure !== undefined) {
      this.#ended = true;
      throw this.#failure;
    }
    if (this.#enough) {
      this.#ended = true;
      this.#context.summary.endedEarly = true;
      await this.#source.close();
      return null;
    }
    const block = await this.#context.orCancelled(this.#source.next());
    if (block === null) this.#ended = true;
    return block;
  }

  #drop(): void {
    for (const { block } of this.#pile) block.rest?.return?.();
    this.#pile = [];
  }

  /** For a stage with two steps, the input of the first and the output of the last are counted. */
  #count(index: number, before: number, after: number, began: number): void {
    const places = this.#places;
    const { stage } = places[index];
    const statistics = this.#context.stages[stage];
    if (places[index - 1]?.stage !== stage) statistics.itemsIn += before;
    if (places[index + 1]?.stage !== stage) statistics.items += after;
    statistics.time += performance.now() - began;
  }
}
