/** A command's standard output, a file, a descriptor, an object or compressed memory, which the native part reads on a
 * separate thread.
 *
 * Blocks are copied once from the thread into JavaScript's memory: changes to a batch cannot affect a block that is
 * being filled, small blocks use little memory, and no memory outlives the JavaScript environment. A command keeps the
 * process alive only while a call waits for it.
 */

import { type CommandEnd, MillstreamError } from "../error.js";
import { INTERNAL } from "../errors.js";
import type { NativeReader } from "../native.js";
import { commandEnd, nativeError, Waker } from "../native-thread.js";
import { platform } from "../text.js";
import { LineEnds } from "./line-ends.js";
import type { Origin, Source } from "./source.js";

/** The maximum size of a block in bytes: `BLOCK_BYTES` in `native/src/filler.rs`. */
const BLOCK_BYTES = 240 << 10;

/** The space before a block for the unfinished record of the previous block. */
const HEADROOM = 16 << 10;

/** Blocks of at least this size get memory in which any block fits, so that it can be reused. */
const LARGE = 16 << 10;

/** Unused memory of all sources: new memory costs more than reading its content. */
let spare: Uint8Array<ArrayBuffer> | undefined;

/** The input of a command: `CommandInput`, which is not imported, so that a bundle without commands has none. */
export interface Fed {
  readonly failure: { readonly error: unknown } | undefined;
  stop(): Promise<void>;
}

export class NativeSource implements Source {
  readonly name: string;
  /** Small blocks have no such space: copying them is cheap, and keeping them should not need more memory. */
  headroom = 0;
  readonly lineEnds = new LineEnds();
  /** Whether it is a split of a file. */
  isPart = false;
  /** Whether the plan of the split knows the number of its first line. */
  hasLineNumbers = false;
  /** The number of the first line, if the plan of the split knows it. */
  firstLine: number | undefined;
  /** Whether nothing was read, so that a thread can take all of it. */
  isFresh = true;
  readonly #start: (wake: () => void) => NativeReader;
  #reader: NativeReader | undefined;
  #ends = new Uint32Array(1024);
  readonly #waker = new Waker();

  /** What is passed on to its commands. */
  readonly #input: Fed | undefined;

  private constructor(name: string, start: (wake: () => void) => NativeReader, input?: Fed) {
    this.name = name;
    this.#start = start;
    this.#input = input;
  }

  /** A source that starts now, such as a command. */
  static started(name: string, start: (wake: () => void) => NativeReader, input?: Fed): NativeSource {
    const source = new NativeSource(name, start, input);
    source.#started();
    return source;
  }

  /** A source that the first read starts. */
  static late(name: string, start: (wake: () => void) => NativeReader): NativeSource {
    return new NativeSource(name, start);
  }

  /** Returns the native reader for a thread that takes all of it: `read` must not be called. */
  forThread(): NativeReader {
    this.isFresh = false;
    return this.#started();
  }

  async read(): Promise<Uint8Array | null> {
    this.isFresh = false;
    const reader = this.#started();
    for (;;) {
      const length = reader.front();
      if (length > 0) return this.#take(reader, length);
      if (length < 0) break;
      await this.#waker.change();
    }
    const failure = reader.failure();
    // A command that failed has delivered all its output; `finish` reports the failure.
    if (failure && !failure.command) throw nativeError(failure, this.name);
    return null;
  }

  get origin(): Origin | undefined {
    const origin = this.isPart ? this.#reader?.origin() : undefined;
    if (!origin) return undefined;
    const [bytes, records] = origin;
    const isText = bytes === 0 || this.hasLineNumbers;
    const innerLines = this.firstLine === undefined ? (isText ? 0 : undefined) : this.firstLine - records - 1;
    return { bytes, records, isText, innerLines };
  }

  get isOpen(): boolean {
    return this.#reader?.isGone() === false;
  }

  reuse(chunk: Uint8Array): void {
    if (chunk.buffer.byteLength === HEADROOM + BLOCK_BYTES) spare = new Uint8Array(chunk.buffer as ArrayBuffer);
  }

  async finish(): Promise<void> {
    await this.#input?.stop();
    if (this.#input?.failure !== undefined) throw this.#input.failure.error;
    const failure = this.#reader?.failure();
    if (failure) throw nativeError(failure, this.name);
  }

  async close(): Promise<void> {
    this.isFresh = false;
    const reader = this.#reader;
    if (reader === undefined) return;
    reader.stop();
    while (!reader.isGone()) await this.#waker.change();
    await this.#input?.stop();
  }

  commandEnds(): readonly CommandEnd[] {
    return this.#reader?.ends().map(commandEnd) ?? [];
  }

  #started(): NativeReader {
    this.#reader ??= this.#start(this.#waker.wake);
    return this.#reader;
  }

  #take(reader: NativeReader, length: number): Uint8Array {
    const lines = reader.lines();
    if (lines > this.#ends.length) this.#ends = new Uint32Array(lines * 2);
    this.headroom = length < LARGE ? 0 : HEADROOM;
    let memory: Uint8Array;
    if (this.headroom === 0) {
      memory = platform.allocate(length);
    } else {
      // Its length is 0 if it was transferred.
      memory = spare !== undefined && spare.length > 0 ? spare : platform.allocate(HEADROOM + BLOCK_BYTES);
      spare = undefined;
    }
    const chunk = memory.subarray(this.headroom, this.headroom + length);
    if (!reader.take(chunk, this.#ends)) {
      throw new MillstreamError(INTERNAL, { stream: this.name, found: `a block of more than ${length} bytes` });
    }
    this.lineEnds.set(this.#ends.subarray(0, lines));
    return chunk;
  }
}
