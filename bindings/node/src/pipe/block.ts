/** The unit of a pipeline: many items at once, with the records that they come from.
 *
 * Stages work in place. So the holder owns an array, and no code keeps an array after passing it on.
 */

import type { CommandEnd, ErrorDetails } from "../error.js";
import type { LineOf } from "../frame.js";

/** The source of records, for the place of errors. */
export interface Source {
  readonly stream: string;
  /** Whether record `i` is line `i + 1`. */
  readonly isText: boolean;
  /** Returns the line of a record, if records of these blocks may be several lines. */
  readonly lineOf?: LineOf | undefined;
}

/** Items, in order. */
export interface Block {
  items: any[];
  /** The source of the records, if it is one reader. */
  readonly of?: Source | undefined;
  /** The number of the first record in the source's block. */
  readonly first: number;
  /** The position of these items in `origin`, or in the source's block. */
  readonly shift: number;
  /** The indexes of the items before stages that drop or add items; `null` if there was no such stage. */
  readonly origin: Origin | null;
  /** For a block whose items are being expanded: the rest of its first item. */
  readonly rest?: Iterator<any> | undefined;
  /** For a block that is passed on in parts: the start of the next part. */
  readonly start?: number | undefined;
}

/** Item `i` after a stage was item `from[i]` before it. The stage owns the memory, which is valid for one block. */
export interface Origin {
  readonly from: Uint32Array;
  readonly shift: number;
  readonly parent: Origin | null;
}

/** An index for each item of a block, in memory that is reused for the next block. */
export class Indexes {
  #memory = new Uint32Array(1024);

  atLeast(length: number): Uint32Array {
    if (this.#memory.length < length) this.#memory = new Uint32Array(2 * length);
    return this.#memory;
  }
}

/** Creates a block of a source. */
export function sourceBlock(items: any[], first: number, of?: Source): Block {
  return { items, of, first, shift: 0, origin: null };
}

/** Returns the number of the record that an item comes from. */
export function recordOf(block: Block, index: number): number {
  let at = index + block.shift;
  for (let { origin } = block; origin !== null; origin = origin.parent) at = origin.from[at] + origin.shift;
  return block.first + at;
}

/** Returns the place of a record of a block, for errors. */
export function placeOf(record: number, of: Source | undefined): ErrorDetails {
  return { stream: of?.stream || undefined, record, line: of?.isText ? record + 1 : of?.lineOf?.(record) };
}

/** Delivers blocks. */
export interface BlockSource {
  /**
   * Returns the next block, which is not empty, or `null` at the end. If the source failed, rejects once after the
   * last block.
   */
  next(): Promise<Block | null>;

  /** Stops the source early. This can be repeated, and does not report errors that `next` would report. `error` is the
   * reason, for the sinks of a pipeline. */
  close(error?: unknown): Promise<void>;
  /** How its commands ended, for those that have ended. */
  commandEnds?(): readonly CommandEnd[];
}

/** Returns the part of a block from `start` to before `end`. */
export function part(block: Block, start: number, end: number): Block {
  const { items, of, first, shift, origin } = block;
  return { items: items.slice(start, end), of, first, shift: shift + start, origin };
}

/** Returns a block of the remaining items: item `i` was item `from[i]`. */
export function descend(block: Block, items: any[], from: Uint32Array): Block {
  const { of, first, shift, origin } = block;
  return { items, of, first, shift: 0, origin: { from, shift, parent: origin } };
}
