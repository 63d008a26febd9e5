/**
 * The unit of a pipeline: many items at once, which know the records they come from.
 *
 * Stages work in place. So an array belongs to its holder, and no code keeps it after passing it on.
 */

import type { CommandEnd } from "../error.js";

/** Items, in order. */
export interface Block {
  items: any[];
  /** The number of the record that the source's block began with. */
  readonly first: number;
  /** Where these items begin among those of `origin`, or of the source's block. */
  readonly shift: number;
  /** Which items they were before stages that drop or add some; `null` where none did. */
  readonly origin: Origin | null;
  /** For a block that is being taken apart: the rest of its first item. */
  readonly rest?: Iterator<any>;
  /** For a block that is passed on in parts: the start of the next one. */
  readonly start?: number;
}

/** Item `i` after a stage was item `from[i]` before it. The memory is the stage's, for one block. */
export interface Origin {
  readonly from: Uint32Array;
  readonly shift: number;
  readonly parent: Origin | null;
}

/** An index for each item of a block, in memory that is used again for the next. */
export class Indexes {
  #memory = new Uint32Array(1024);

  atLeast(length: number): Uint32Array {
    if (this.#memory.length < length) this.#memory = new Uint32Array(2 * length);
    return this.#memory;
  }
}

/** A block as a source makes it. */
export function sourceBlock(items: any[], first: number): Block {
  return { items, first, shift: 0, origin: null };
}

/** The number of the record that an item comes from. */
export function recordOf(block: Block, index: number): number {
  let at = index + block.shift;
  for (let { origin } = block; origin !== null; origin = origin.parent) at = origin.from[at] + origin.shift;
  return block.first + at;
}

/** Delivers blocks. */
export interface BlockSource {
  /** The next block, not empty; `null` at the end. Rejects, once, after the last block of a source that failed. */
  next(): Promise<Block | null>;

  /** Ends it early. Can be repeated; reports nothing that `next` would have. */
  close(): Promise<void>;
  /** How its commands ended, those that have. */
  commandEnds?(): readonly CommandEnd[];
}

/** Part of a block: its items from `start` on, before `end`. */
export function part(block: Block, start: number, end: number): Block {
  const { items, first, shift, origin } = block;
  return { items: items.slice(start, end), first, shift: shift + start, origin };
}

/** The rest of a block: item `i` was item `from[i]` of it. */
export function descend(block: Block, items: any[], from: Uint32Array): Block {
  const { first, shift, origin } = block;
  return { items, first, shift: 0, origin: { from, shift, parent: origin } };
}
