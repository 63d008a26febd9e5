/**
 * Where bytes go.
 *
 * A sink takes chunks whole and in order, one at a time, and says at the end whether all is where it belongs. It holds
 * nothing back.
 */

import type { CommandEnd } from "../error.js";

/** Takes bytes. */
export interface ByteSink {
  /** For messages: a path, a command line. */
  readonly name: string;
  /** Takes the chunk: when the promise has settled, its memory may be used again. */
  write(chunk: Uint8Array): Promise<void>;
  /** Ends it: rejects if not all of it is where it belongs. */
  finish(): Promise<void>;
  /** Gives up: what was to appear whole does not appear. Reports nothing. */
  abandon(error: unknown): Promise<void>;
  /** How its commands ended, those that have. */
  commandEnds?(): readonly CommandEnd[];
}

/** Keeps all of it. */
export class MemorySink implements ByteSink {
  readonly name = "memory";
  #chunks: Uint8Array[] = [];
  #length = 0;

  async write(chunk: Uint8Array): Promise<void> {
    // A Buffer's `slice` would not copy.
    this.#chunks.push(new Uint8Array(chunk));
    this.#length += chunk.length;
  }

  async finish(): Promise<void> {}

  async abandon(): Promise<void> {}

  /** All that was written. */
  bytes(): Uint8Array {
    const all = new Uint8Array(this.#length);
    let at = 0;
    for (const chunk of this.#chunks) {
      all.set(chunk, at);
      at += chunk.length;
    }
    return all;
  }
}

/** Keeps none of it. */
export class NowhereSink implements ByteSink {
  readonly name = "nowhere";

  async write(): Promise<void> {}

  async finish(): Promise<void> {}

  async abandon(): Promise<void> {}
}
