/**
 * The sink of a chain that somebody reads from: the readable side of an adapter.
 *
 * It hands on no more than there is room for, and the chain waits. The end, or an error, is the adapter's to report, when all
 * of the pipeline has ended.
 */

import type { Summary } from "../pipe/context.js";
import type { RunningSink, Sink } from "../pipe/sink.js";
import { bytesOf, encodeRecords } from "../record.js";
import { isObjects, type OutputOptions } from "./options.js";

const LINE_FEED = Uint8Array.of(10);

/** Hands on a chunk; whether there is room for another. */
type Put = (chunk: unknown) => boolean;

export class Outlet implements RunningSink {
  readonly #put: Put;
  readonly #encode: ((items: any[]) => Uint8Array) | undefined;
  #hasRoom: boolean;
  /** More was asked for since the last chunk. */
  #asked = false;
  #waiting: (() => void) | undefined;

  constructor(put: Put, hasRoom: boolean, options: OutputOptions) {
    this.#put = put;
    this.#hasRoom = hasRoom;
    const delimiter = options.delimiter === undefined ? LINE_FEED : bytesOf(options.delimiter);
    if (!isObjects(options.output, "output")) this.#encode = (items) => encode(items, delimiter);
  }

  /** This outlet as the last part of a pipeline. */
  get sink(): Sink<any, Summary> {
    return { sink: () => ({ running: this, result: (summary) => summary }) };
  }

  /** More is wanted. */
  ask(): void {
    this.#asked = true;
    this.#hasRoom = true;
    this.#waiting?.();
    this.#waiting = undefined;
  }

  write(items: any[]): void | Promise<void> {
    if (this.#encode === undefined) return this.#handOn(items, 0);
    const chunk = this.#encode(items);
    // Records without content and without a delimiter: in Node, an empty chunk is one that nobody asks for more after.
    if (chunk.length > 0) return this.#handOn([chunk], 0);
  }

  async finish(): Promise<void> {}

  async abandon(): Promise<void> {}

  #handOn(chunks: any[], start: number): void | Promise<void> {
    for (let index = start; index < chunks.length; index++) {
      if (!this.#hasRoom) return this.#later(chunks, index);
      this.#asked = false;
      // Who takes it may ask for more before it returns.
      this.#hasRoom = this.#put(chunks[index]) || this.#asked;
    }
  }

  async #later(chunks: any[], index: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting = resolve;
    });
    await this.#handOn(chunks, index);
  }
}

function encode(items: any[], delimiter: Uint8Array): Uint8Array {
  // Whole records that are one piece of bytes already are not copied.
  if (items.length === 1 && delimiter.length === 0 && items[0] instanceof Uint8Array) return items[0];
  return encodeRecords(items, delimiter);
}
