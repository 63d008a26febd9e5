/** Collects bytes in a buffer and passes them to a sink.
 *
 * Accepted bytes are never lost silently: if the sink does not accept bytes, a later call, at the latest `close`,
 * reports an error with the number of bytes that are safely written. Waiting is needed only when the buffer is full.
 */

import { type CommandEnd, cancelled, fromSystem, MillstreamError } from "./error.js";
import { CLOSED, IO } from "./errors.js";
import {
  checkOption,
  checkOptions,
  NUMBER,
  POSITIVE,
  type Rule,
  type Rules,
  SIGNAL,
  type Tables,
  TEXT,
  TEXT_OR_BYTES,
} from "./options.js";
import { bytesOf, encodeRecords, joinTexts } from "./record.js";
import { FLUSH_POLICY, type WriterSettings } from "./settings.js";
import { type ByteSink, MemorySink, NowhereSink, type RunningSink } from "./sink/sink.js";
import { NodeStreamSink, type NodeWritable, WebStreamSink } from "./sink/stream.js";
import { platform } from "./text.js";

/** The number of bytes that are collected before they are written. */
const CAPACITY = 256 << 10;

/** Options of every writer. */
export interface WriterOptions extends Pick<WriterSettings, "flushPolicy" | "flushDelay" | "name"> {
  /** The size of the buffer in bytes: 256 KiB by default. */
  capacity?: number | undefined;
  /** The bytes after each record from `writeRecord`, `writeRecords` and pipelines: a line feed by default. */
  delimiter?: string | Uint8Array | undefined;
  /**
   * Stops the writer when it is triggered, without waiting for the sink: later calls and those in progress fail with an
   * `AbortError`, and a file that appears only if it is complete does not appear.
   */
  signal?: AbortSignal | undefined;
}

export const WRITER_RULES: Rules<WriterOptions> = {
  capacity: POSITIVE,
  flushPolicy: FLUSH_POLICY,
  flushDelay: NUMBER,
  delimiter: TEXT_OR_BYTES,
  signal: SIGNAL,
  name: TEXT,
};

/** Options of `Writer.to`. */
export interface StreamWriterOptions extends WriterOptions, Pick<WriterSettings, "linger"> {}

/** The time in which the peer of a socket has to close its side, by default. */
const LINGER = 30_000;

const STREAM_WRITER_RULES: Tables<StreamWriterOptions> = [WRITER_RULES, { linger: NUMBER }];

const STREAM: Rule = {
  expected: "a Writable or a WritableStream",
  accepts: (value) =>
    typeof value === "object" &&
    value !== null &&
    ("getWriter" in value || ("write" in value && "end" in value && "on" in value)),
};

/** How a writer ended. */
export interface WriterEnd {
  /** The number of bytes accepted. */
  readonly bytes: number;
  /** Bytes that the sink took; for a file or descriptor, those that the system took, after encoding. */
  readonly written: number;
  /** How the sink's command ended. */
  readonly commands: readonly CommandEnd[];
  /** Everything that was written, if the sink was memory. */
  readonly memory: Uint8Array | undefined;
}

/** What a writer that has accepted data can still do when the process exits. */
export interface Exiting {
  readonly name: string;
  /** Whether the output is complete only with a trailer that `close` writes. */
  readonly endsWithTrailer: boolean;
  flush(): Promise<void>;
  /** Writes accepted bytes without waiting, and describes what is lost, or returns null. */
  endNow(): string | null;
}

/** Set for Node's sinks: it registers writers that have accepted data, and ends the remaining ones when the process
 * exits. Platforms without an exit event do not set it.
 */
export const atExit: {
  keep?: (writer: Exiting) => void;
  forget?: (writer: Exiting) => void;
  /** Registers a writer that has accepted data and whose file appears only when it is closed. */
  expectClose?: (writer: Writer, promise: Unclosed) => void;
  closed?: (promise: Unclosed) => void;
} = {};

/** A file that appears when its writer is closed. It does not refer to the writer, so that it can be collected. */
export interface Unclosed {
  readonly name: string;
  /** Whether it does not appear otherwise, unlike a FIFO. */
  vanishes(): boolean;
}

/**
 * Writes bytes and strings to a sink through a buffer.
 *
 * Only `close` reports whether everything succeeded. In Node, bytes accepted by a writer that was not closed are
 * written when the process exits, except for a file, which does not appear. Bytes that cannot be written then are
 * reported, and the exit status is 1.
 *
 * `write` returns `undefined` while the buffer has space, and a promise when it is full; `await` works with both.
 */
export class Writer implements AsyncDisposable {
  readonly #sink: ByteSink;
  readonly #capacity: number;
  /** When to flush: at each line end, after this many milliseconds, or neither. */
  readonly #flushes: "line" | number | undefined;
  /** Whether the buffer contains the end of a line. */
  #hasLine = false;
  readonly #delimiter: Uint8Array;
  /** The name of the sink, for messages. */
  readonly name: string;

  #buffer: Uint8Array;
  #length = 0;
  /** Memory that can be the next buffer. */
  #spare: Uint8Array | undefined;
  /** Chunks in transit to the sink; the first is being written. */
  #queue: Uint8Array[] = [];
  #draining: Promise<void> | undefined;
  /** Whether the sink is flushed after these chunks. */
  #isFlushing = false;
  #waitingForSpace: (() => void)[] = [];
  readonly #signal: AbortSignal | undefined;
  /** Ends the waits in progress when the signal is triggered. */
  readonly #waits = new Set<(error: unknown) => void>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #accepted = 0;
  #written = 0;
  #failure: MillstreamError | undefined;
  #closing: Promise<WriterEnd> | undefined;
  #abandoned = false;
  /** Whether the writer is registered for the exit of the process, or need not be. */
  #isKept: boolean;
  readonly #exiting: Exiting;
  #unclosed: Unclosed | undefined;

  constructor(sink: ByteSink, options: WriterOptions = {}) {
    const { capacity = CAPACITY, flushPolicy = "auto", flushDelay, delimiter = "\n" } = options;
    this.#sink = sink;
    this.#isKept = sink.isNothingAtExit === true;
    this.#capacity = capacity;
    const isByLine = flushPolicy === "line" || (flushPolicy === "auto" && sink.isTerminal);
    this.#flushes = flushDelay ?? (isByLine ? "line" : undefined);
    this.#delimiter = bytesOf(delimiter);
    this.#buffer = platform.allocate(capacity);
    this.name = options.name ?? sink.name;
    this.#exiting = {
      name: this.name,
      endsWithTrailer: sink.endsWithTrailer === true,
      flush: () => this.flush(),
      endNow: () => this.#endNow(),
    };
    this.#signal = options.signal;
    if (this.#signal?.aborted) this.#cancel();
    else this.#signal?.addEventListener("abort", this.#cancel);
  }

  /** Writes to another stream: a Node `Writable`, which is ended, or a `WritableStream`, which is closed. */
  static to(stream: NodeWritable | WritableStream<any>, options: StreamWriterOptions = {}): Writer {
    checkOption("Writer.to", "stream", stream ?? null, STREAM);
    checkOptions("Writer.to", options, STREAM_WRITER_RULES);
    const { linger = LINGER } = options;
    return new Writer("getWriter" in stream ? new WebStreamSink(stream) : new NodeStreamSink(stream, linger), options);
  }

  /** Keeps everything in memory: `close` returns it. */
  static memory(options: WriterOptions = {}): Writer {
    checkOptions("Writer.memory", options, [WRITER_RULES]);
    return new Writer(new MemorySink(), options);
  }

  /** Discards everything. */
  static nowhere(options: WriterOptions = {}): Writer {
    checkOptions("Writer.nowhere", options, [WRITER_RULES]);
    return new Writer(new NowhereSink(), options);
  }

  /** The number of bytes accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /**
   * The number of bytes that the sink has accepted so far; for a file, a descriptor or a command, those that the system
   * has accepted, after encoding. It advances when a block of up to `capacity` bytes has been written, not within one.
   */
  get written(): number {
    return this.#sink.taken ?? this.#written;
  }

  /**
   * Writes a string, as UTF-8, or bytes.
   *
   * @throws The error for bytes that were accepted before, `closed`, `argument_invalid`.
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

  /** Writes records, each with the delimiter after it. */
  writeRecords(records: readonly (string | Uint8Array)[]): void | Promise<void> {
    this.#check();
    if (records.every((record) => typeof record === "string")) {
      this.#text(joinTexts(records as string[], this.#delimiter));
    } else {
      this.#bytes(encodeRecords(records, this.#delimiter));
    }
    return this.#afterWrite();
  }

  /** Waits until the sink has received all accepted bytes. */
  async flush(): Promise<void> {
    this.#check();
    this.#flushBuffer();
    await this.#orStopped(this.#draining);
    this.#checkFailure();
  }

  /** Writes the remaining bytes and finishes the sink. Only this reports whether everything succeeded. It can be called
   * again with the same result.
   *
   * A file appears now; a command gets the end of its input and must succeed.
   */
  close(): Promise<WriterEnd> {
    this.#closing ??= (this.#orStopped(this.#close()) as Promise<WriterEnd>).finally(() => this.#forget());
    return this.#closing;
  }

  /** Aborts the writer: accepted bytes are written where possible, but a file
   * that appears only if it is complete does not appear. Errors are not reported.
   */
  async abort(error: unknown = undefined): Promise<void> {
    if (this.#abandoned) return;
    if (this.#closing !== undefined) {
      await this.#closing.catch(() => {});
      return;
    }
    this.#abandoned = true;
    this.#forget();
    this.#stopTimer();
    if (this.#failure === undefined) {
      this.#sendBuffer();
      await this.#draining;
    }
    await this.#sink.abandon(error).catch(() => {});
  }

  /** Aborts without waiting for the sink; bytes that it has not accepted are dropped. */
  async #stop(error: unknown): Promise<void> {
    this.#abandoned = true;
    this.#forget();
    this.#stopTimer();
    this.#failure ??= this.#failed(error);
    this.#length = 0;
    this.#wake();
    for (const reject of this.#waits) reject(this.#failure);
    await this.#sink.abandon(error, true).catch(() => {});
  }

  readonly #cancel = (): void => void this.#stop(cancelled(this.#signal!));

  /** Waits for a call of the sink, which may never settle once the writer was stopped. */
  async #orStopped<R>(pending: Promise<R> | undefined): Promise<R | undefined> {
    if (pending === undefined || this.#signal === undefined) return pending;
    let interrupt: (error: unknown) => void = () => {};
    const stopped = new Promise<never>((_, reject) => {
      interrupt = reject;
    });
    this.#waits.add(interrupt);
    try {
      return await Promise.race([pending, stopped]);
    } finally {
      this.#waits.delete(interrupt);
    }
  }

  #forget(): void {
    atExit.forget?.(this.#exiting);
    if (this.#unclosed !== undefined) atExit.closed?.(this.#unclosed);
    this.#signal?.removeEventListener("abort", this.#cancel);
  }

  #endNow(): string | null {
    if (this.#sink.endsWithTrailer) return "its compressed data has no end";
    const isIdle = this.#draining === undefined && this.#closing === undefined;
    const wrote = isIdle ? this.#sink.writeSync?.(this.#buffer.subarray(0, this.#length)) : false;
    if (wrote ?? this.#length === 0) return null;
    return `${this.#accepted - this.written} bytes were not written`;
  }

  #failed(error: unknown): MillstreamError {
    const written = this.#sink.vanishes ? undefined : this.written;
    return fromSystem(error, IO, { stream: this.name, written });
  }

  /** The sink of a pipeline, which then owns the writer: it need not be ended when the process exits.
   *
   * @internal
   */
  asSink(): RunningSink {
    this.#isKept = true;
    atExit.forget?.(this.#exiting);
    return {
      write: (items) => this.writeRecords(items),
      finish: () => this.close(),
      abandon: (error, now) => (now ? this.#stop(error) : this.abort()),
    };
  }

  /** Aborts the writer unless it was closed. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.abort();
  }

  async #close(): Promise<WriterEnd> {
    if (this.#abandoned) throw this.#failure ?? new MillstreamError(CLOSED, { stream: this.name });
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
      this.#failure = this.#failed(error);
      throw this.#failure;
    }
    return {
      bytes: this.#accepted,
      written: this.written,
      commands: this.#sink.commandEnds?.() ?? [],
      memory: this.#sink instanceof MemorySink ? this.#sink.bytes() : undefined,
    };
  }

  #checkFailure(): void {
    if (this.#failure === undefined) return;
    // The caller knows now that the output is incomplete.
    this.#forget();
    throw this.#failure;
  }

  #check(): void {
    this.#checkFailure();
    if (this.#closing !== undefined || this.#abandoned) throw new MillstreamError(CLOSED, { stream: this.name });
  }

  #keep(): void {
    if (this.#isKept) {
      if (this.#unclosed === undefined && this.#sink.losesFile) {
        const { name } = this;
        const sink = this.#sink;
        this.#unclosed = { name, vanishes: () => sink.vanishes === true };
        atExit.expectClose?.(this, this.#unclosed);
      }
      return;
    }
    this.#isKept = true;
    atExit.keep?.(this.#exiting);
  }

  #text(text: string): void {
    this.#keep();
    if (this.#flushes === "line" && text.includes("\n")) this.#hasLine = true;
    // A code unit becomes at most three bytes.
    if (text.length * 3 <= this.#capacity - this.#length) {
      const length = platform.encodeInto(text, this.#buffer, this.#length);
      this.#length += length;
      this.#accepted += length;
    } else {
      this.#bytes(platform.encode(text));
    }
  }

  #bytes(bytes: Uint8Array): void {
    this.#keep();
    this.#accepted += bytes.length;
    for (let at = 0; at < bytes.length; ) {
      const length = Math.min(bytes.length - at, this.#capacity - this.#length);
      this.#buffer.set(bytes.subarray(at, at + length), this.#length);
      this.#length += length;
      at += length;
      if (this.#length === this.#capacity) this.#sendBuffer();
    }
    if (this.#flushes === "line" && platform.indexOf(bytes, 10, 0) >= 0) this.#hasLine = true;
  }

  #afterWrite(): void | Promise<void> {
    const flushes = this.#flushes;
    if (this.#hasLine) this.#flushBuffer();
    else if (typeof flushes === "number" && this.#length > 0) this.#timer ??= setTimeout(this.#late, flushes);
    // For speed, one chunk is in transit while the next is collected; more would use too much memory.
    if (this.#queue.length > 1) return this.#space();
  }

  /** Waits until at most one chunk is in transit. The next call reports an error that occurs in the meantime. */
  #space(): Promise<void> {
    return new Promise((resolve) => {
      this.#waitingForSpace.push(resolve);
    });
  }

  readonly #late = (): void => {
    this.#timer = undefined;
    this.#flushBuffer();
  };

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #flushBuffer(): void {
    this.#sendBuffer();
    this.#isFlushing = this.#sink.flush !== undefined;
    if (this.#isFlushing) this.#draining ??= this.#drain();
  }

  #sendBuffer(): void {
    this.#stopTimer();
    this.#hasLine = false;
    if (this.#length === 0) return;
    this.#queue.push(this.#buffer.subarray(0, this.#length));
    this.#buffer = this.#spare ?? platform.allocate(this.#capacity);
    this.#spare = undefined;
    this.#length = 0;
    this.#draining ??= this.#drain();
  }

  /** Passes chunk after chunk to the sink. Never rejects. */
  async #drain(): Promise<void> {
    while ((this.#queue.length > 0 || this.#isFlushing) && this.#failure === undefined) {
      const chunk = this.#queue.at(0);
      try {
        if (chunk === undefined) {
          this.#isFlushing = false;
          await this.#sink.flush?.();
          continue;
        }
        await this.#sink.write(chunk);
        this.#written += chunk.length;
        if (chunk.buffer.byteLength === this.#capacity) this.#spare = new Uint8Array(chunk.buffer);
      } catch (error) {
        this.#failure ??= this.#failed(error);
      }
      this.#queue.shift();
      if (this.#queue.length <= 1) this.#wake();
    }
    this.#draining = undefined;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waitingForSpace;
    this.#waitingForSpace = [];
    for (const resolve of waiting) resolve();
  }
}
