/**
 * Chunks of bytes or strings from other code: async iterables, including Node's Readable, and web streams.
 */

import { misuse } from "../error.js";
import { platform } from "../text.js";
import { PlainSource } from "./source.js";

/** A piece of a byte stream. */
export type Chunk = Uint8Array | ArrayBuffer | ArrayBufferView | string;

export class ChunkSource extends PlainSource {
  #iterator: AsyncIterator<unknown> | Iterator<unknown>;
  /** The first half of a character that was split between two strings. */
  #half = "";
  #ended = false;
  #pending = false;

  constructor(
    iterator: AsyncIterator<unknown> | Iterator<unknown>,
    readonly name: string,
  ) {
    super();
    this.#iterator = iterator;
  }

  async read(): Promise<Uint8Array | null> {
    while (!this.#ended) {
      this.#pending = true;
      let result: IteratorResult<unknown>;
      try {
        result = await this.#iterator.next();
      } catch (error) {
        this.#ended = true;
        throw error;
      } finally {
        this.#pending = false;
      }
      if (result.done) {
        this.#ended = true;
        // Half a character without its other half is encoded as U+FFFD.
        if (this.#half !== "") return platform.encode(this.#half);
        break;
      }
      const bytes = this.#bytes(result.value);
      if (bytes.length > 0) return bytes;
    }
    return null;
  }

  override async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    const done = this.#iterator.return?.();
    // An async generator that is waiting can end only when its wait is over, so this must not wait for it.
    if (this.#pending) Promise.resolve(done).catch(() => {});
    else await done;
  }

  #bytes(chunk: unknown): Uint8Array {
    if (chunk instanceof Uint8Array) return chunk;
    if (typeof chunk === "string") {
      const text = this.#half + chunk;
      const last = text.charCodeAt(text.length - 1);
      const cut = last >= 0xd800 && last < 0xdc00;
      this.#half = cut ? text.slice(-1) : "";
      return platform.encode(cut ? text.slice(0, -1) : text);
    }
    if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk);
    if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    this.#ended = true;
    this.#iterator.return?.();
    throw misuse({
      stream: this.name,
      found: `a chunk of type ${chunk === null ? "null" : typeof chunk}`,
      expected: "bytes or a string",
    });
  }
}

/**
 * Iterates over the chunks of a web stream; ending early cancels it. Also works on platforms whose streams are not
 * iterable.
 */
export function iterateWebStream<T>(stream: ReadableStream<T>): AsyncIterator<T> {
  const reader = stream.getReader();
  return {
    next: () => reader.read() as Promise<IteratorResult<T>>,
    async return() {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}
