/**
 * Where bytes come from.
 *
 * A source delivers chunks of bytes in order, and then reports whether it succeeded. It does not know what a record is.
 */

import type { CommandEnd } from "../error.js";

/** Delivers bytes. The memory of a chunk belongs to the receiver: the source does not touch it again. */
export interface Source {
  /** For messages: a path, a command line. */
  readonly name: string;

  /** The next bytes, `null` at their end. Rejects if the source failed. Not called again before it has settled. */
  read(): Promise<Uint8Array | null>;

  /** How many bytes before each chunk, in its memory, also belong to the receiver: for what it has not used yet. */
  readonly headroom?: number;

  /** After each line feed of the chunk that was read last, if the source has searched for them. Valid until the next read. */
  readonly lineEnds?: Uint32Array;

  /** Gives the memory of a chunk back, when it is no longer used. */
  reuse?(chunk: Uint8Array): void;

  /** Called after the last byte: rejects if the source failed. */
  finish(): Promise<void>;

  /**
   * Ends it early, without a trace: closes what is open, stops what runs. Can be repeated, and may be called while a
   * read is pending, which then ends somehow. How its commands end is not an error.
   */
  close(): Promise<void>;

  /** How its commands ended, those that have. */
  commandEnds(): readonly CommandEnd[];
}

/** Parts of a source that most of them do not need. */
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
