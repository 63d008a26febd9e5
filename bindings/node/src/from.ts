/** Readers for sources that every platform has: memory, iterables, web streams, blobs, responses. */

import { MillstreamError, misuse } from "./error.js";
import { INVALID_OPTION, OPEN_FAILED } from "./errors.js";
import type { Tables } from "./options.js";
import { type As, checkReaderOptions, type ItemOf, READER_RULES, Reader, type ReaderOptions } from "./reader.js";
import { DECODE, type Decode } from "./settings.js";
import { type Chunk, ChunkSource, iterateWebStream } from "./source/chunks.js";
import { MemorySource, memory } from "./source/memory.js";
import { PlainSource, type Source } from "./source/source.js";
import { platform } from "./text.js";

/** The sources that `from` reads: strings and bytes as content, and objects that deliver content. */
export type Input =
  | string
  | Uint8Array
  | ArrayBuffer
  | AsyncIterable<Chunk>
  | Iterable<Chunk>
  | ReadableStream<Chunk>
  | Blob
  | Response;

/** Options of `from` and `lines`. */
export interface FromOptions<A extends As = As> extends ReaderOptions<A> {
  /** Whether compressed memory (gzip, for example) is detected from its first bytes and decoded. The default in Node is
   * `"auto"`; the native part decodes it. In browsers, and for sources that deliver chunks, bytes are not decoded.
   */
  decode?: Decode | undefined;
}

const FROM_RULES: Tables<FromOptions> = [READER_RULES, { decode: DECODE }];

/** Returns a reader for the bytes of a string or of memory, or for the chunks of an async iterable, a Node `Readable`,
 * a `ReadableStream`, a `Blob` or a `Response`.
 *
 * A response whose status is not a success (`response.ok`) is an error of kind `open_failed`.
 * A string is the content, not a path: use `open` for a path.
 *
 * @throws `argument_invalid` for anything else.
 */
export function from<A extends As = "text">(input: Input, options: FromOptions<A> = {}): Reader<ItemOf<A>> {
  checkReaderOptions("from", options, FROM_RULES);
  return new Reader<ItemOf<A>>(sourceOf(input, options.decode !== "off"), options);
}

/** Returns the lines of any source that `from` accepts, or of a reader. */
export function lines<A extends As = "text">(
  input: Input | Reader<ItemOf<A>>,
  options: FromOptions<A> = {},
): Reader<ItemOf<A>> {
  if (!(input instanceof Reader)) return from(input, options);
  if (Object.keys(options).length === 0) return input;
  throw misuse(
    { stream: "lines", found: "options for a reader, which has its own", expected: "no options" },
    INVALID_OPTION,
  );
}

/** The source of a response with an error status, whose body is not the requested content. */
class RefusedSource extends PlainSource {
  readonly name: string;
  readonly #response: Response;

  constructor(response: Response) {
    super();
    this.name = response.url || "response";
    this.#response = response;
  }

  async read(): Promise<never> {
    await this.close();
    const { status, statusText } = this.#response;
    throw new MillstreamError(OPEN_FAILED, {
      stream: this.name,
      found: `status ${status} ${statusText}`.trim(),
      expected: "a status of 200 to 299",
    });
  }

  override async close(): Promise<void> {
    await this.#response.body?.cancel().catch(() => {});
  }
}

/** Returns the source of content.
 *
 * @internal
 */
export function sourceOf(input: Input, decodes: boolean): Source {
  if (typeof input === "string") return new MemorySource(platform.encode(input));
  if (input instanceof Uint8Array || input instanceof ArrayBuffer) {
    const bytes = input instanceof Uint8Array ? input : new Uint8Array(input);
    return (decodes ? memory.compressed?.(bytes) : undefined) ?? new MemorySource(bytes);
  }
  if (typeof input === "object" && input !== null) {
    if ("getReader" in input) return new ChunkSource(iterateWebStream(input), "stream");
    if ("body" in input) {
      if (input.ok === false) return new RefusedSource(input);
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
  throw misuse({
    found: input === null ? "null" : typeof input,
    expected: "a string, bytes, an iterable, a stream, a Blob or a Response",
  });
}
