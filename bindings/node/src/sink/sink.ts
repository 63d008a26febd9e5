/** The interfaces of sinks.
 *
 * A sink accepts complete chunks in order, one at a time, and reports at the end whether everything arrived. It does
 * not buffer.
 */

import type { CommandEnd } from "../error.js";

/** Accepts bytes. */
export interface ByteSink {
  /** The name in messages: a path or a command line. */
  readonly name: string;
  /** Accepts the chunk; when the promise has settled, the chunk's memory may be reused. */
  write(chunk: Uint8Array): Promise<void>;
  /** Waits until all chunks have left the sink, if it holds them back. */
  flush?(): Promise<void>;
  /** Finishes the sink; rejects if not everything arrived. */
  finish(): Promise<void>;
  /** Abandons the sink: a file that appears only if it is complete does not appear, and no output is completed. Errors are not
   * reported.
   *
   * With `now`, it does not wait for the other side. It may be called while another call is pending, which then may
   * never settle.
   */
  abandon(error: unknown, now?: boolean): Promise<void>;
  /** Whether the sink is a terminal. */
  readonly isTerminal?: boolean | undefined;
  /** The number of bytes that the system has accepted, if it is known more exactly than in complete chunks. */
  readonly taken?: number | undefined;
  /** Whether a failure leaves no output, as for a file that appears complete. */
  readonly vanishes?: boolean | undefined;
  /** Whether closing is useless when the process exits; then the sink is aborted. */
  readonly isNothingAtExit?: boolean | undefined;
  /** Whether closing makes a file appear, which is lost otherwise. */
  readonly losesFile?: boolean;
  /** Whether the stream needs a trailer, as compressed data does. */
  readonly endsWithTrailer?: boolean | undefined;
  /** Writes synchronously when the process exits; returns false if not all chunks, and this one, have left the sink. */
  writeSync?(chunk: Uint8Array): boolean;
  /** How its commands ended, for those that have ended. */
  commandEnds?(): readonly CommandEnd[];
}

/** Accepts the items of a pipeline. */
export interface RunningSink {
  /** Accepts items; returns a promise if the sink is full. */
  write(items: any[]): void | PromiseLike<void>;
  /** Called after the last item; returns the sink's own result. */
  finish(): Promise<unknown>;
  /**
   * Called instead of `finish` after an error: accepted items are written, but the output is not marked as complete.
   * With `now`, it does not wait.
   */
  abandon(error: unknown, now: boolean): Promise<void>;
}

/** Keeps everything in memory. */
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

  /** Everything that was written. */
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

/** Discards everything. */
export class NowhereSink implements ByteSink {
  readonly name = "nowhere";
  readonly isNothingAtExit = true;

  async write(): Promise<void> {}

  async finish(): Promise<void> {}

  async abandon(): Promise<void> {}
}
