/** Readers over what every platform has: memory, iterables, web streams, blobs, responses. */

import { MillstreamError } from "./error.js";
import { type As, type ItemOf, Reader, type ReaderOptions } from "./reader.js";
import { type Chunk, ChunkSource, iterateWebStream } from "./source/chunks.js";
import { MemorySource } from "./source/memory.js";
import type { Source } from "./source/source.js";
import { platform } from "./text.js";

/** What `from` reads: its content, if it is a string or bytes; else what it delivers. */
export type Input =
  | string
  | Uint8Array
  | ArrayBuffer
  | AsyncIterable<Chunk>
  | Iterable<Chunk>
  | ReadableStream<Chunk>
  | Blob
  | Response;

/**
 * A reader over bytes: those of a string or of memory, or the chunks of an async iterable, a Node `Readable`, a
 * `ReadableStream`, a `Blob` or a `Response`.
 *
 * Nothing is decompressed. A string is the content, not a path: that is `open`.
 *
 * @throws `argument_invalid` for anything else.
 */
export function from<A extends As = "text">(input: Input, options: ReaderOptions<A> = {}): Reader<ItemOf<A>> {
  return new Reader<ItemOf<A>>(sourceOf(input), options);
}

/** The lines of anything that `from` reads, or a reader itself. */
export function lines<A extends As = "text">(
  input: Input | Reader<ItemOf<A>>,
  options: ReaderOptions<A> = {},
): Reader<ItemOf<A>> {
  return input instanceof Reader ? input : from(input, options);
}

function sourceOf(input: Input): Source {
  if (typeof input === "string") return new MemorySource(platform.encode(input));
  if (input instanceof Uint8Array) return new MemorySource(input);
  if (input instanceof ArrayBuffer) return new MemorySource(new Uint8Array(input));
  if (typeof input === "object" && input !== null) {
    if ("getReader" in input) return new ChunkSource(iterateWebStream(input), "stream");
    if ("body" in input) {
      if (input.body === null) return new MemorySource(new Uint8Array(0));
      return new ChunkSource(iterateWebStream(input.body), input.url || "response");
    }
    if ("stream" in input && typeof input.stream === "function") {
      const { name } = input as { name?: unknown };
      return new ChunkSource(iterateWebStream(input.stream()), typeof name === "string" ? name : "blob");
    }
    if (Symbol.asyncIterator in input) return new ChunkSource(input[Symbol.asyncIterator](), "iterable");
    if (Symbol.iterator in input) return new ChunkSource(input[Symbol.iterator](), "iterable");
  }
  throw new MillstreamError("argument_invalid", {
    found: input === null ? "null" : typeof input,
    expected: "a string, bytes, an iterable, a stream, a Blob or a Response",
  });
}
