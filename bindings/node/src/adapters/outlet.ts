/**
 * The sink of a chain with a consumer: the readable side of an adapter.
 *
 * The outlet passes on only as much as the consumer has space for; the chain waits. The adapter reports the end, or an
 * error, when the whole pipeline has ended.
 */

import type { Sink } from "../pipe/sink.js";
import type { Summary } from "../pipe/types.js";
import { bytesOf, encodeRecords } from "../record.js";
import type { RunningSink } from "../sink/sink.js";
import { isObjects, type OutputOptions } from "./options.js";

const LINE_FEED = /* @__PURE__ */ Uint8Array.of(10);

/** Passes on a chunk; returns whether there is space for another. */
type Put = (chunk: unknown) => boolean;

export class Outlet implements RunningSink {
  readonly #put: Put;
  readonly #encode: ((items: any[]) => Uint8Array) | undefined;
  #hasRoom: boolean;
  /** Whether more was requested since the last chunk. */
  #asked = false;
  #waiting: (() => void) | undefined;

  constructor(put: Put, hasRoom: boolean, options: OutputOptions) {
    this.#put = put;
    this.#hasRoom = hasRoom;
    const delimiter = options.delimiter === undefined ? LINE_FEED : bytesOf(options.delimiter);
    if (!isObjects(options.output)) this.#encode = (items) => encode(items, delimiter);
  }

  /** Returns this outlet as the last part of a pipeline. */
  get sink(): Sink<any, Summary> {
    return { sink: () => ({ running: this, result: (summary) => summary }) };
  }

  /** The consumer requests more. */
  ask(): void {
    this.#asked = true;
    this.#hasRoom = true;
    this.#waiting?.();
    this.#waiting = undefined;
  }

  write(items: any[]): void | Promise<void> {
    if (this.#encode === undefined) return this.#handOn(items, 0);
    const chunk = this.#encode(items);
    // Records without content and without a delimiter: in Node, no more is requested after an empty chunk.
    if (chunk.length > 0) return this.#handOn([chunk], 0);
  }

  async finish(): Promise<void> {}

  async abandon(): Promise<void> {}

  #handOn(chunks: any[], start: number): void | Promise<void> {
    for (let index = start; index < chunks.length; index++) {
      if (!this.#hasRoom) return this.#later(chunks, index);
      this.#asked = false;
      // The consumer may request more before it returns.
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
  // Complete records that are one piece of bytes already are not copied.
  if (items.length === 1 && delimiter.length === 0 && items[0] instanceof Uint8Array) return items[0];
  return encodeRecords(items, delimiter);
}
