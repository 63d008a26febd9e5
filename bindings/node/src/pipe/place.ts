/** A stage at work, as `chain.ts` runs it, and what it can ask for there. */

import type { Block } from "./block.js";
import type { Context } from "./context.js";

/** A stage at work. */
export interface Step {
  /** What it is, for statistics. */
  readonly kind: string;
  /** Takes a block and gives what comes out; a promise only where something has to be awaited. */
  run(block: Block, at: Place): Block | Promise<Block>;
  /** Whether nothing that could come would be handed on. */
  readonly wantsNothing?: boolean;
  /** After the last block, or early. */
  finish?(): Promise<void>;
  abandon?(error: unknown, now: boolean): Promise<void>;
}

/** Where a step stands, and what it can ask for. */
export interface Place {
  readonly context: Context;
  /** The number of the stage in its pipeline. */
  readonly stage: number;
  /** The stage has failed for an item: whether to continue without it. If not, the block has to end before it. */
  fail(block: Block, index: number, cause: unknown, item: unknown): boolean;
  /** The block comes to this step again, when what was made of its predecessor has left. */
  postpone(block: Block): void;
  /** Nothing more is wanted by this step. */
  enough(): void;
}
