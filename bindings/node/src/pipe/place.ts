/** A running stage, as `chain.ts` runs it, and the functions that it can call there. */

import type { Block } from "./block.js";
import type { Run } from "./run.js";

/** A running stage. */
export interface Step {
  /** The name of the stage in statistics. */
  readonly kind: string;
  /** Processes a block and returns the output; returns a promise only if it has to wait. */
  run(block: Block, at: Place): Block | Promise<Block>;
  /** Whether further items would be dropped. */
  readonly wantsNothing?: boolean | undefined;
}

/** The position of a step, and the functions that it can call. */
export interface Place {
  readonly run: Run;
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
