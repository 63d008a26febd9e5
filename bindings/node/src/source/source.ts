/** The interface of sources.
 *
 * A source delivers chunks of bytes in order, and then reports whether it succeeded. It does not know what a record is.
 */

import type { CommandEnd } from "../error.js";
import type { LineEnds } from "./line-ends.js";

/** The numbers of bytes and records before the first byte, and whether the latter is known and counts lines. */
export interface Origin {
  readonly bytes: number;
  readonly records: number;
  readonly isText: boolean;
  /** The number of line ends inside the records before it, if it is known. */
  readonly innerLines: number | undefined;
}

/** Delivers bytes. The receiver owns the memory of a chunk; the source does not use it again. */
export interface Source {
  /** Whether it holds a file, a descriptor or a command, which should be closed. */
  readonly isOpen?: boolean;
  /** The name in messages: a path or a command line. */
  readonly name: string;

  /**
   * Returns the next bytes, or `null` at the end. Rejects if the source failed. Not called again before it has
   * settled.
   */
  read(): Promise<Uint8Array | null>;

  /** The number of bytes before each chunk, in its memory, that the receiver also owns, for unread bytes. */
  readonly headroom?: number | undefined;

  /** The line ends of the last chunk, if the source searches for them. */
  readonly lineEnds?: LineEnds | undefined;

  /** Where the first byte is in a larger stream, once a read has settled. */
  readonly origin?: Origin | undefined;

  /** Returns the memory of a chunk that is no longer used. */
  reuse?(chunk: Uint8Array): void;

  /** Called after the last byte; rejects if the source failed. */
  finish(): Promise<void>;

  /** Stops the source early: closes files and stops commands. This can be repeated, and may be called while a read is
   * pending, which then settles in any way. The status of commands is not an error.
   */
  close(): Promise<void>;

  /** How its commands ended, for those that have ended. */
  commandEnds(): readonly CommandEnd[];
}

/** Defaults for methods that most sources do not need. */
export abstract class PlainSource implements Source {
  abstract readonly name: string;
  abstract read(): Promise<Uint8Array | null>;

  get headroom(): number | undefined {
    return undefined;
  }

  reuse(_chunk: Uint8Array): void {}

  finish(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  commandEnds(): readonly CommandEnd[] {
    return [];
  }
}
