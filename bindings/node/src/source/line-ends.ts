/** The line ends that a source has found in its last chunk, so that the reader need not search for them. */

import { lastWithin } from "../strings.js";
import { platform } from "../text.js";

const LF = 10;

/** The start of no line. */
const NOWHERE = -1;

export class LineEnds {
  /** The positions after each line feed of the chunk. */
  #ends = new Uint32Array(0);
  /** The position of the chunk in the reader's memory. */
  #shift = 0;
  /** The position in the reader's memory at which the line that ends at `#ends[#index]` begins. */
  #start = NOWHERE;
  #index = 0;

  /** Called by the source: the positions after each line feed of the chunk that it returns. */
  set(ends: Uint32Array<ArrayBuffer>): void {
    this.#ends = ends;
  }

  /** The reader's memory is the last chunk after this many unread bytes. The line ends can be used if no line ends in
   * these bytes.
   */
  begin(memory: Uint8Array, unread: number): void {
    const first = unread === 0 || this.#ends.length === 0 ? -1 : platform.indexOf(memory, LF, 0);
    this.#start = this.#ends.length === 0 || (first >= 0 && first < unread) ? NOWHERE : 0;
    this.#shift = unread;
    this.#index = 0;
  }

  /** The reader's memory is not the last chunk any more. */
  forget(): void {
    this.#start = NOWHERE;
  }

  /** Returns whether it is known that no line that begins at `start` ends in the memory. */
  hasNone(start: number): boolean {
    return this.#start === start && this.#index === this.#ends.length;
  }

  /** Takes the next lines if they begin at `start`: the offsets of at most this many bytes, or of one line that is longer. */
  take(start: number, most: number): Uint32Array | undefined {
    if (this.#start !== start || this.#index === this.#ends.length) return undefined;
    const ends = this.#ends;
    const first = this.#index;
    const shift = this.#shift - start;
    const last = lastWithin(ends, first, ends.length, most - shift);
    const offsets = new Uint32Array(last - first + 1);
    for (let index = first; index < last; index++) offsets[index - first + 1] = ends[index] + shift;
    this.#index = last;
    this.#start = start + offsets[last - first];
    return offsets;
  }
}
