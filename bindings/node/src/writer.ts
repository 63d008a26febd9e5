/**
 * The writing end: bytes collected in a buffer, and a sink that takes them.
 *
 * It promises that nothing accepted is lost: what a sink does not take is an error of a later call, of `close` at the
 * latest, and says how much is safely written. Waiting is needed only when the buffer is full.
 */

import { type CommandEnd, fromSystem, MillstreamError } from "./error.js";
import { bytesOf, encodeRecords, joinTexts } from "./record.js";
import { type ByteSink, MemorySink, NowhereSink } from "./sink/sink.js";
import { NodeStreamSink, type NodeWritable, WebStreamSink } from "./sink/stream.js";
import { platform } from "./text.js";

/** How much is collected before it goes out. */
const CAPACITY = 256 << 10;

/** When accepted bytes go out, short of a full buffer. */
export type FlushPolicy =
  /** When `flush` or `close` is called. */
  | "full"
  /** With each write. */
  | "each"
  /** At most so many milliseconds after they were accepted. */
  | { readonly after: number };

/** Options of every writer. */
export interface WriterOptions {
  /** The size of the buffer in bytes. */
  capacity?: number;
  flush?: FlushPolicy;
  /** What is put behind each record by `writeRecord`, `writeRecords` and pipelines: a line feed unless told otherwise. */
  delimiter?: string | Uint8Array;
  /** The name of the sink in messages. */
  name?: string;
}

/** How a writer ended. */
export interface WriterEnd {
  /** Bytes accepted, and bytes that the sink took. They are equal. */
  readonly bytes: number;
  /** How the sink's command ended. */
  readonly commands: readonly CommandEnd[];
  /** All that was written, if the sink was memory. */
  readonly memory: Uint8Array | undefined;
}

/**
 * Writes bytes and strings to a sink through a buffer.
 *
 * `write` returns nothing while there is room, and a promise when the buffer is full: `await` takes either.
 */
export class Writer implements AsyncDisposable {
  readonly #sink: ByteSink;
  readonly #capacity: number;
  readonly #flush: FlushPolicy;
  readonly #delimiter: Uint8Array;
  /** The name of the sink, for messages. */
  readonly name: string;

  #buffer: Uint8Array;
  #length = 0;
  /** Memory that can be the next buffer. */
  #spare: Uint8Array | undefined;
  /** Chunks on their way to the sink; the first is being written. */
  #queue: Uint8Array[] = [];
  #draining: Promise<void> | undefined;
  #roomForMore: (() => void)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #accepted = 0;
  #written = 0;
  #failure: MillstreamError | undefined;
  #closing: Promise<WriterEnd> | undefined;
  #abandoned = false;

  constructor(sink: ByteSink, options: WriterOptions = {}) {
    const { capacity = CAPACITY, flush = "full", delimiter = "\n" } = options;
    if (!Number.isSafeInteger(capacity) || capacity < 1) {
      throw new MillstreamError("invalid_option", { found: `a capacity of ${capacity}`, expected: "1 byte or more" });
    }
    this.#sink = sink;
    this.#capacity = capacity;
    this.#flush = flush;
    this.#delimiter = bytesOf(delimiter);
    this.#buffer = platform.allocate(capacity);
    this.name = options.name ?? sink.name;
  }

  /** Writes to a stream of somebody else's: a Node `Writable`, which is ended, or a `WritableStream`, which is closed. */
  static to(stream: NodeWritable | WritableStream<any>, options?: WriterOptions): Writer {
    return new Writer("getWriter" in stream ? new WebStreamSink(stream) : new NodeStreamSink(stream), options);
  }

  /** Keeps all of it: `close` gives it back. */
  static memory(options?: WriterOptions): Writer {
    return new Writer(new MemorySink(), options);
  }

  /** Writes to nowhere. */
  static nowhere(options?: WriterOptions): Writer {
    return new Writer(new NowhereSink(), options);
  }

  /** Bytes accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Bytes that the sink has taken so far. */
  get written(): number {
    return this.#written;
  }

  /**
   * Writes a string, as UTF-8, or bytes.
   *
   * @throws What went wrong with bytes accepted before, `closed`, `argument_invalid`.
   */
  write(data: string | Uint8Array): void | Promise<void> {
    this.#check();
    if (typeof data === "string") this.#text(data);
    else this.#bytes(bytesOf(data));
    return this.#afterWrite();
  }

  /** Writes a record and the delimiter. */
  writeRecord(record: string | Uint8Array): void | Promise<void> {
    return this.writeRecords([record]);
  }

  /** Writes records, each with the delimiter behind it. */
  writeRecords(records: readonly (string | Uint8Array)[]): void | Promise<void> {
    this.#check();
    if (records.every((record) => typeof record === "string")) {
      this.#text(joinTexts(records as string[], this.#delimiter));
    } else {
      this.#bytes(encodeRecords(records, this.#delimiter));
    }
    return this.#afterWrite();
  }

  /** Waits until the sink has taken everything that was accepted. */
  async flush(): Promise<void> {
    this.#check();
    this.#sendBuffer();
    await this.#draining;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /**
   * Writes what is left and ends the sink: only this says whether all went well. Can be called again, with the same answer.
   *
   * A file appears, a command gets its end of input and its status counts.
   */
  close(): Promise<WriterEnd> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /**
   * Gives up: what was accepted goes out as far as it can, but a file that is to appear whole does not appear. Reports nothing.
   */
  async abandon(error: unknown = undefined): Promise<void> {
    if (this.#abandoned) return;
    if (this.#closing !== undefined) {
      await this.#closing.catch(() => {});
      return;
    }
    this.#abandoned = true;
    this.#stopTimer();
    if (this.#failure === undefined) {
      this.#sendBuffer();
      await this.#draining;
    }
    await this.#sink.abandon(error).catch(() => {});
  }

  /** Gives up unless it was closed. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.abandon();
  }

  async #close(): Promise<WriterEnd> {
    if (this.#abandoned) throw new MillstreamError("closed", { stream: this.name });
    this.#stopTimer();
    this.#sendBuffer();
    await this.#draining;
    const failure = this.#failure;
    if (failure !== undefined) {
      await this.#sink.abandon(failure).catch(() => {});
      throw failure;
    }
    try {
      await this.#sink.finish();
    } catch (error) {
      this.#failure = fromSystem(error, "io", { stream: this.name, written: this.#written });
      throw this.#failure;
    }
    return {
      bytes: this.#accepted,
      commands: this.#sink.commandEnds?.() ?? [],
      memory: this.#sink instanceof MemorySink ? this.#sink.bytes() : undefined,
    };
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#closing !== undefined || this.#abandoned) throw new MillstreamError("closed", { stream: this.name });
  }

  #text(text: string): void {
    // A code unit becomes three bytes at most.
    if (text.length * 3 <= this.#capacity - this.#length) {
      const length = platform.encodeInto(text, this.#buffer, this.#length);
      this.#length += length;
      this.#accepted += length;
    } else {
      this.#bytes(platform.encode(text));
    }
  }

  #bytes(bytes: Uint8Array): void {
    this.#accepted += bytes.length;
    for (let at = 0; at < bytes.length; ) {
      const length = Math.min(bytes.length - at, this.#capacity - this.#length);
      this.#buffer.set(bytes.subarray(at, at + length), this.#length);
      this.#length += length;
      at += length;
      if (this.#length === this.#capacity) this.#sendBuffer();
    }
  }

  #afterWrite(): void | Promise<void> {
    if (this.#flush === "each") this.#sendBuffer();
    else if (this.#flush !== "full" && this.#length > 0) this.#timer ??= setTimeout(this.#late, this.#flush.after);
    // One chunk on its way while the next is collected is what makes it quick; more is too much.
    if (this.#queue.length > 1) return this.#room();
  }

  /** Waits until at most one chunk is on its way. What goes wrong meanwhile is for the next call. */
  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#roomForMore.push(resolve);
    });
  }

  readonly #late = (): void => {
    this.#timer = undefined;
    this.#sendBuffer();
  };

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #sendBuffer(): void {
    this.#stopTimer();
    if (this.#length === 0) return;
    this.#queue.push(this.#buffer.subarray(0, this.#length));
    this.#buffer = this.#spare ?? platform.allocate(this.#capacity);
    this.#spare = undefined;
    this.#length = 0;
    this.#draining ??= this.#drain();
  }

  /** Gives chunk after chunk to the sink. Never rejects. */
  async #drain(): Promise<void> {
    while (this.#queue.length > 0 && this.#failure === undefined) {
      const chunk = this.#queue[0];
      try {
        await this.#sink.write(chunk);
        this.#written += chunk.length;
        if (chunk.buffer.byteLength === this.#capacity) this.#spare = new Uint8Array(chunk.buffer);
      } catch (error) {
        this.#failure = fromSystem(error, "io", { stream: this.name, written: this.#written });
      }
      this.#queue.shift();
      if (this.#queue.length <= 1) this.#wake();
    }
    this.#draining = undefined;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#roomForMore;
    this.#roomForMore = [];
    for (const resolve of waiting) resolve();
  }
}
