/** A source of bytes in memory. */

import { PlainSource, type Source } from "./source.js";

/** Set by Node's entry point: returns a source for compressed memory, and `undefined` for other memory. */
export const memory: { compressed?: (bytes: Uint8Array) => Source | undefined } = {};

export class MemorySource extends PlainSource {
  readonly name = "";
  #bytes: Uint8Array | null;

  constructor(bytes: Uint8Array) {
    super();
    this.#bytes = bytes.length === 0 ? null : bytes;
  }

  async read(): Promise<Uint8Array | null> {
    const bytes = this.#bytes;
    this.#bytes = null;
    return bytes;
  }
}
