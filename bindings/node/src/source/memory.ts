/** A source of bytes in memory. */

import { PlainSource } from "./source.js";

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
