/** A running stage, as `chain.ts` runs it, and the functions that it can call there. */

import type { Block } from "./block.js";
import type { Context } from "./context.js";

/** A running stage. */
export interface Step {
  /** The name of the stage in statistics. */
  readonly kind: string;
  /** Processes a block and returns the output; returns a promise only if it has to wait. */
  run(block: Block, at: Place): Block | Promise<Block>;
  /** Whether further items would be dropped. */
  readonly wantsNothing?: boolean | undefined;
  /** Called after the last block, or on an early stop. */
  finish?(): Promise<void>;
  abandon?(error: unknown, now: boolean): Promise<void>;
}

/** The position of a step, and the functions that it can call. */
export interface Place {
  readonly context: Context;
  /** The number of the stage in its pipeline. */
  readonly stage: number;
  /**
   * Called when the stage has failed for an item; returns whether to continue without it. If not, the block has to
   * end before it.
   */
  fail(block: Block, index: number, cause: unknown, item: unknown): boolean;
  /** Passes the block to this step again, after the output of the block before it has left. */
  postpone(block: Block): void;
  /** Called when this step needs no more items. */
  enough(): void;
}
