/**
 * The writing end: bytes collected in a buffer, and a sink that takes them.
 *
 * It promises that nothing accepted is lost: if the sink does not accept bytes, a later call reports an error, `close`
 * at the latest, and says how many bytes are safely written. Waiting is needed only when the buffer is full.
 */

import { type CommandEnd, fromSystem, MillstreamError } from "./error.js";
import {
  checkOption,
  checkOptions,
  either,
  number,
  type Rule,
  type Rules,
  text,
  textOrBytes,
  whole,
  word,
} from "./options.js";
import { bytesOf, encodeRecords, joinTexts } from "./record.js";
import { type ByteSink, MemorySink, NowhereSink } from "./sink/sink.js";
import { NodeStreamSink, type NodeWritable, WebStreamSink } from "./sink/stream.js";
import { platform } from "./text.js";

/** How much is collected before it is written. */
const CAPACITY = 256 << 10;

/** When accepted bytes are written, apart from `flush` and `close`. */
export type FlushPolicy =
  /** `"line"` if the sink is a terminal, `"full"` otherwise. */
  | "auto"
  /** When the buffer is full: the fastest. */
  | "full"
  /** At each line end: after a write that holds a newline, all up to it is on its way. */
  | "line"
  /** When the buffer is full, and at the latest this many milliseconds after they were accepted. */
  | number;

/** Options of every writer. */
export interface WriterOptions {
  /** The size of the buffer in bytes. */
  capacity?: number;
  /** When accepted bytes are written: `"auto"` by default. */
  flush?: FlushPolicy;
  /** The bytes after each record from `writeRecord`, `writeRecords` and pipelines: a line feed by default. */
  delimiter?: string | Uint8Array;
  /** The name of the sink in messages. */
  name?: string;
}

export const WRITER_RULES: Rules<WriterOptions> = {
  capacity: whole(1),
  flush: either(word("auto", "full", "line"), number(0)),
  delimiter: textOrBytes,
  name: text,
};

/** Options of `Writer.to`. */
export interface StreamWriterOptions extends WriterOptions {
  /**
   * How long the peer of a socket may take to close its side after we have closed ours, in milliseconds: 30,000 by
   * default. Exceeding it is an error of kind `stalled`: the peer has not confirmed the end.
   */
  linger?: number;
}

const LINGER = 30_000;

const STREAM_WRITER_RULES: Rules<StreamWriterOptions> = { ...WRITER_RULES, linger: number(0) };

const STREAM: Rule = {
  expected: "a Writable or a WritableStream",
  accepts: (value) =>
    typeof value === "object" &&
    value !== null &&
    ("getWriter" in value || ("write" in value && "end" in value && "on" in value)),
};

/** How a writer ended. */
export interface WriterEnd {
  /** Bytes accepted, and bytes that the sink took. They are equal. */
  readonly bytes: number;
  /** How the sink's command ended. */
  readonly commands: readonly CommandEnd[];
  /** Everything that was written, if the sink was memory. */
  readonly memory: Uint8Array | undefined;
}

/**
 * Set by Node's entry point: it keeps writers that have accepted something, and closes those that are left when the
 * process ends. A platform that does not say when it ends has none.
 */
export const atExit: { keep?: (writer: Writer) => void; forget?: (writer: Writer) => void } = {};

/** Aborts a writer in any state: for a pipeline that is cancelled. */
export let stopWriter: (writer: Writer, error: unknown) => Promise<void>;

/** Another owner closes this writer: it is not closed when the process ends, if that owner has not got that far. */
export let ownWriter: (writer: Writer) => void;

/** Whether its output is complete only with an end that `close` writes. */
export let endsWithTrailer: (writer: Writer) => boolean;

/** When the process ends and nothing can be awaited: writes what was accepted, and returns what is lost, or null. */
export let endWriterNow: (writer: Writer) => string | null;

/**
 * Writes bytes and strings to a sink through a buffer.
 *
 * Only `close` reports whether everything succeeded. In Node, bytes accepted by a writer that was not closed are
 * written when the process ends, except for a file, which does not appear; what cannot be written then is reported, and
 * the exit status is 1.
 *
 * `write` returns nothing while the buffer has space, and a promise when it is full: `await` takes either.
 */
export class Writer implements AsyncDisposable {
  readonly #sink: ByteSink;
  readonly #capacity: number;
  /** At each line end, after so many milliseconds, or neither. */
  readonly #flushes: "line" | number | undefined;
  /** Whether a line has ended in what is in the buffer. */
  #hasLine = false;
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
  /** Whether it is already kept for the end of the process, or need not be. */
  #isKept: boolean;

  static {
    stopWriter = (writer, error) => writer.#stop(error);
    ownWriter = (writer) => {
      writer.#isKept = true;
      atExit.forget?.(writer);
    };
    endsWithTrailer = (writer) => writer.#sink.endsWithTrailer === true;
    endWriterNow = (writer) => writer.#endNow();
  }

  constructor(sink: ByteSink, options: WriterOptions = {}) {
    const { capacity = CAPACITY, flush = "auto", delimiter = "\n" } = options;
    this.#sink = sink;
    this.#isKept = sink.isNothingAtExit === true;
    this.#capacity = capacity;
    if (flush === "auto") this.#flushes = sink.isTerminal ? "line" : undefined;
    else this.#flushes = flush === "full" ? undefined : flush;
    this.#delimiter = bytesOf(delimiter);
    this.#buffer = platform.allocate(capacity);
    this.name = options.name ?? sink.name;
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
    checkOptions("Writer.memory", options, WRITER_RULES);
    return new Writer(new MemorySink(), options);
  }

  /** Writes to nowhere. */
  static nowhere(options: WriterOptions = {}): Writer {
    checkOptions("Writer.nowhere", options, WRITER_RULES);
    return new Writer(new NowhereSink(), options);
  }

  /** Bytes accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Bytes that the sink has taken so far; for a file or descriptor, those that the system has taken, after encoding. */
  get written(): number {
    return this.#sink.taken ?? this.#written;
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

  /** Waits until the sink has taken everything that was accepted. */
  async flush(): Promise<void> {
    this.#check();
    this.#sendBuffer();
    await this.#draining;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /**
   * Writes what is left and ends the sink: only this reports whether everything succeeded. Can be called again, with
   * the same answer.
   *
   * A file appears, a command gets the end of its input and its status counts.
   */
  close(): Promise<WriterEnd> {
    this.#closing ??= this.#close().finally(() => atExit.forget?.(this));
    return this.#closing;
  }

  /**
   * Gives up: accepted bytes are written as far as possible, but a file that would appear complete does not appear.
   * Reports nothing.
   */
  async abandon(error: unknown = undefined): Promise<void> {
    if (this.#abandoned) return;
    if (this.#closing !== undefined) {
      await this.#closing.catch(() => {});
      return;
    }
    this.#abandoned = true;
    atExit.forget?.(this);
    this.#stopTimer();
    if (this.#failure === undefined) {
      this.#sendBuffer();
      await this.#draining;
    }
    await this.#sink.abandon(error).catch(() => {});
  }

  /** Gives up without waiting for the sink: what it has not taken is dropped. */
  async #stop(error: unknown): Promise<void> {
    this.#abandoned = true;
    atExit.forget?.(this);
    this.#stopTimer();
    this.#failure ??= this.#failed(error);
    this.#length = 0;
    this.#wake();
    await this.#sink.abandon(error, true).catch(() => {});
  }

  #endNow(): string | null {
    if (this.#sink.endsWithTrailer) return "its compressed data has no end";
    const isIdle = this.#draining === undefined && this.#closing === undefined;
    if (isIdle && this.#sink.writeSync?.(this.#buffer.subarray(0, this.#length))) return null;
    return isIdle && this.#length === 0 ? null : `${this.#accepted - this.#written} bytes were not written`;
  }

  #failed(error: unknown): MillstreamError {
    const written = this.#sink.vanishes ? undefined : this.written;
    return fromSystem(error, "io", { stream: this.name, written });
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
      this.#failure = this.#failed(error);
      throw this.#failure;
    }
    return {
      bytes: this.#accepted,
      commands: this.#sink.commandEnds?.() ?? [],
      memory: this.#sink instanceof MemorySink ? this.#sink.bytes() : undefined,
    };
  }

  #check(): void {
    if (this.#failure !== undefined) {
      // The caller has been told.
      atExit.forget?.(this);
      throw this.#failure;
    }
    if (this.#closing !== undefined || this.#abandoned) throw new MillstreamError("closed", { stream: this.name });
  }

  #keep(): void {
    if (this.#isKept) return;
    this.#isKept = true;
    atExit.keep?.(this);
  }

  #text(text: string): void {
    this.#keep();
    if (this.#flushes === "line" && text.includes("\n")) this.#hasLine = true;
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
    if (this.#hasLine) this.#sendBuffer();
    else if (typeof flushes === "number" && this.#length > 0) this.#timer ??= setTimeout(this.#late, flushes);
    // One chunk on its way while the next is collected is what makes it quick; more is too much.
    if (this.#queue.length > 1) return this.#room();
  }

  /** Waits until at most one chunk is on its way. An error meanwhile is reported by the next call. */
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
    while (this.#queue.length > 0 && this.#failure === undefined) {
      const chunk = this.#queue[0];
      try {
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
    const waiting = this.#roomForMore;
    this.#roomForMore = [];
    for (const resolve of waiting) resolve();
  }
}
