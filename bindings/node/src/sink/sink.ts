/**
 * Where bytes go.
 *
 * A sink takes whole chunks in order, one at a time, and reports at the end whether everything arrived. It holds
 * nothing back.
 */

import type { CommandEnd } from "../error.js";

/** Takes bytes. */
export interface ByteSink {
  /** For messages: a path, a command line. */
  readonly name: string;
  /** Takes the chunk: when the promise has settled, its memory may be used again. */
  write(chunk: Uint8Array): Promise<void>;
  /** Ends it: rejects if not everything arrived. */
  finish(): Promise<void>;
  /**
   * Gives up: what would appear complete does not appear, and nothing is completed. Reports nothing.
   *
   * With `now` it waits for nothing that another side has to do first; it may be called while another call is pending, which
   * then may never settle.
   */
  abandon(error: unknown, now?: boolean): Promise<void>;
  /** Whether it is a terminal. */
  readonly isTerminal?: boolean;
  /** How many bytes the system has taken, where that is known more exactly than by whole chunks. */
  readonly taken?: number;
  /** Whether nothing of it is left if it fails, as for a file that appears complete. */
  readonly vanishes?: boolean;
  /** Whether closing it when the process ends is useless: then it is aborted. */
  readonly isNothingAtExit?: boolean;
  /** Whether it has to write an end of its stream, as compressed data has. */
  readonly endsWithTrailer?: boolean;
  /** Writes immediately, when the process ends; false if that is impossible. */
  writeSync?(chunk: Uint8Array): boolean;
  /** How its commands ended, those that have. */
  commandEnds?(): readonly CommandEnd[];
}

/** Keeps all of it. */
export class MemorySink implements ByteSink {
  readonly name = "memory";
  readonly isNothingAtExit = true;
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
  readonly isNothingAtExit = true;

  async write(): Promise<void> {}

  async finish(): Promise<void> {}

  async abandon(): Promise<void> {}
}
