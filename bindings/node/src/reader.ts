/** Reads bytes from a source and takes records from them.
 *
 * Every byte from the source is delivered. Then the reader reports the end if the source succeeded; otherwise, it
 * reports one error, and the end after that. A record is returned as soon as it is complete. Memory is bounded by the
 * source's chunks and the longest record, which has a limit.
 *
 * ```text
 *    handed out            unread           spare capacity
 *   [ ................ | xxxxxxxxxxxxxxx | ............... ]
 *   0                 pos               end          bytes.length
 * ```
 *
 * Memory before `pos` that was returned as views is never overwritten; for strings, the memory is reused. A chunk that
 * arrives when there are no unread bytes replaces the memory; otherwise unread bytes and chunk are joined, without
 * copying the chunk if possible.
 */

import { Batch, type InvalidUtf8 } from "./batch.js";
import {
  type Header,
  RAGGED_OBJECT_RULES,
  RAGGED_RULES,
  type RaggedOptions,
  type RowFramer,
  type Rows,
} from "./csv.js";
import { type CommandEnd, cancelled, changed, fromSystem, MillstreamError, misuse } from "./error.js";
import { CLOSED, CONTENT_MISMATCH, FRAME_TRUNCATED, INTERNAL, IO, RECORD_TOO_LONG, UTF8_INVALID } from "./errors.js";
import { forgotten } from "./forgotten.js";
import {
  batchOf,
  DELIMITER_RULES,
  Ends,
  FRAMER,
  type Framer,
  type LineOf,
  type LinesFramer,
  lineFramer,
} from "./frame.js";
import { END, resumable, Turns } from "./iterate.js";
import type { JsonOptions, ValueFramer } from "./json.js";
import {
  checkOption,
  checkOptions,
  FLAG,
  FUNCTION,
  INFINITE,
  POSITIVE,
  type Rules,
  refuseTogether,
  SIGNAL,
  type Tables,
  TEXT,
  WHOLE,
} from "./options.js";
import type { ReaderSettings } from "./settings.js";
import type { Origin, Source } from "./source/source.js";
import { TEXT_BLOCK } from "./strings.js";
import { platform } from "./text.js";
import type { Trim } from "./trim.js";
import { Waits } from "./waits.js";

/** The maximum size of a batch: it fits in the processor's cache with its offsets. */
const BATCH_BYTES = 256 << 10;

/** The maximum length of a record that is joined separately from two chunks. */
const SEAM = 16 << 10;

/** The default maximum length of a record. */
const RECORD_LIMIT = 64 << 20;

/** The kinds of errors that the caller itself causes: closing does not report them again. */
const CAUSED_BY_CALLER: ReadonlySet<string> = new Set(["closed", "cancelled", "stalled", "timed_out"]);

const LF = 10;
const CR = 13;

/** The form in which records are returned. */
export type As = "text" | "bytes";

/** A record in the form `A`. */
export type ItemOf<A extends As> = A extends "bytes" ? Uint8Array : string;

/** Options of every reader. */
export interface ReaderOptions<A extends As = As>
  extends Pick<ReaderSettings, "recordLimit" | "name" | "expectRecords"> {
  /** Whether records are strings or views of bytes. */
  as?: A | undefined;
  /** The framer that finds records: lines by default. */
  framer?: Framer | undefined;
  /** Whether lines keep their LF or CRLF. */
  keepDelimiter?: boolean | undefined;
  /** What to do with bytes that are not UTF-8. */
  invalidUtf8?: InvalidUtf8 | undefined;
  /** Stops the reader when it is triggered, with an error of kind `cancelled`. */
  signal?: AbortSignal | undefined;
}

export const READER_RULES: Rules<ReaderOptions> = {
  as: ["text", "bytes"],
  framer: FRAMER,
  keepDelimiter: FLAG,
  recordLimit: [POSITIVE, INFINITE],
  invalidUtf8: ["replace", "error"],
  signal: SIGNAL,
  name: TEXT,
  expectRecords: WHOLE,
};

/** Throws unless these are valid options for a reader, or for an object that has these additional rules. */
export function checkReaderOptions<O extends ReaderOptions>(call: string, options: O, tables: Tables<O>): void {
  checkOptions(call, options, tables);
  refuseTogether(call, options as ReaderOptions, "framer", "keepDelimiter");
}

/** The position of a reader in the stream. */
export interface Position {
  /** The number of bytes taken, after decoding. */
  readonly bytes: number;
  /** The number of records taken or skipped. */
  readonly records: number;
}

/** Options of batches. */
export interface BatchOptions {
  /** The owner of a batch's memory. With `"kept"` (the default), the batch owns it. With `"reused"`, a batch is valid
   * until the next one is requested; then its memory may be overwritten, which is faster than new memory for each
   * batch.
   */
  memory?: "kept" | "reused" | undefined;
}

const BATCH_RULES: Rules<BatchOptions> = { memory: ["kept", "reused"] };

/** Items that are taken at once, and the number of the first one in the stream. */
export interface Items<T> {
  readonly items: T[];
  readonly first: number;
  /** Whether they and all earlier ones are lines. */
  readonly isText: boolean;
  /** The index of each item's record relative to `first`, if there are records that are not items. */
  readonly records: readonly number[] | undefined;
  /** The lines of records that may be several lines, if they are known. */
  readonly lineOf: LineOf | undefined;
}

/** A view of the stream: the records of a framer in some form. */
interface View {
  readonly framer: Framer;
  readonly as: As;
  /** Makes other items of the records, such as the fields of CSV. */
  readonly split?: (batch: Batch) => Rows;
  /** The size of a batch, if most records do not become strings. */
  readonly most?: number;
}

/** Items that were taken from the bytes for a view and are not all returned yet. */
interface Block {
  readonly view: View;
  readonly items: unknown[];
  /** The number of items that have been returned. */
  index: number;
  /**
   * The position of the first item in the memory, the positions of the others relative to it, and the number of the
   * first.
   */
  readonly start: number;
  readonly offsets: Uint32Array;
  readonly first: number;
  /** The number of line ends inside earlier records, if it is known. */
  readonly inner: number | undefined;
  /** The index of each item's record, and their number, if there are records that are not items. */
  readonly records?: readonly number[] | undefined;
}

/** What a reader reads, and how: for columns. */
interface Inside {
  readonly source: Source;
  readonly framer: Framer;
  readonly recordLimit: number;
  readonly expectRecords: number | undefined;
  readonly signal: AbortSignal | undefined;
  /** The reader's position. */
  readonly origin: Origin;
}

const EMPTY = /* @__PURE__ */ new Uint8Array(0);
const NO_BLOCK: Block = {
  view: { framer: /* @__PURE__ */ lineFramer(), as: "text" },
  items: [],
  index: 0,
  start: 0,
  offsets: /* @__PURE__ */ new Uint32Array(1),
  first: 0,
  inner: 0,
};

/** Takes some records of a batch, in the reader's form. */
export type Select = (batch: Batch, as: As, invalidUtf8: InvalidUtf8) => Rows;

/** Closes sources whose reader is no longer referenced.
 *
 * @internal
 */
export const abandoned =
  typeof FinalizationRegistry === "undefined"
    ? undefined
    : /* @__PURE__ */ new FinalizationRegistry<Source>((source) => {
        if (source.isOpen) {
          const advice = "read it to its end, call `close`, or declare it with `await using`";
          forgotten.warn?.(`${source.name}: a reader was dropped before its end and never closed; ${advice}`);
        }
        source.close().catch(() => {});
      });

/** Reads a source record by record. Created by `open`, `command`, `lines` and `from`.
 *
 * If a loop ends early, the reader stays open: the next loop continues with the next record. `close` and `await using`
 * close it permanently.
 */
export class Reader<T extends string | Uint8Array = string> implements AsyncIterable<T>, AsyncDisposable {
  readonly #source: Source;
  readonly #view: View;
  readonly #recordLimit: number;
  readonly #expectRecords: number | undefined;
  readonly #invalidUtf8: InvalidUtf8;
  /** The same for values of JSON, which by default must be UTF-8. */
  readonly #jsonUtf8: InvalidUtf8;
  readonly #signal: AbortSignal | undefined;
  /** The header of CSV, after `objects` or `header` has read it. */
  readonly #header: Header = {};
  /** The name of the source, for messages. */
  readonly name: string;

  #bytes: Uint8Array = EMPTY;
  #pos = 0;
  #end = 0;
  /** Whether views of the memory have been returned. If so, the memory is not overwritten; otherwise it is reused. */
  #lent = false;
  /** Whether the reader, and not the source, owns the memory. */
  #own = false;
  /** The rest of a chunk whose start was needed to complete a record. */
  #rest: Uint8Array | undefined;
  /** The number of unread bytes that were scanned without finding the end of the first record. */
  #scanned = 0;
  /** The framer that scanned them, and its state after them. */
  #scanner: Framer | undefined;
  #inside = 0;
  /** The position of `#bytes[0]` in the stream. */
  #base = 0;
  /** The number of records before `#pos`. */
  #records = 0;
  /** Whether all of them were lines, so that their number is that of lines. */
  #isText = true;
  /** The number of line ends inside the records before `#pos`, if each of them was one or several lines. */
  #innerLines: number | undefined = 0;
  #block: Block = NO_BLOCK;
  /** The offsets of the batch that is being found; the memory is reused. */
  readonly #ends = new Ends();

  /**
   * - `open`: there may be more bytes.
   * - `ending`: there are no more bytes; when all of them are taken, the source reports whether it succeeded.
   * - `ended`: the end was reported. - `closed`: the user closed the reader before the end.
   */
  #state: "open" | "ending" | "ended" | "closed" = "open";
  /** Whether the reader is the source of a pipeline. */
  #isClaimed = false;
  /** The error that ended the reader and has been reported; closing reports it again. */
  #reported: MillstreamError | undefined;
  #unfinished: Uint8Array | undefined;
  /** An error that is due when all complete records have been returned. */
  #failure: MillstreamError | undefined;
  /** The wait for the source, until the signal is triggered or the reader is closed. */
  readonly #wait: Waits;
  /** Calls that need the source take turns. */
  readonly #turns = new Turns();

  /** For pipelines: claims the reader. Each reader can be the source of only one pipeline.
   *
   * @internal
   */
  static claim(reader: Reader<any>): boolean {
    if (reader.#isClaimed || reader.#state === "ended") return false;
    reader.#isClaimed = true;
    return true;
  }

  /** For columns: returns what the reader would read, and how. `closes` closes it, but not the source.
   *
   * @internal
   */
  static inside(reader: Reader<any>, closes = false): Inside {
    reader.#giveBack();
    if (closes) {
      reader.#state = "closed";
      abandoned?.unregister(reader);
    }
    return {
      source: reader.#source,
      framer: reader.#view.framer,
      recordLimit: reader.#recordLimit,
      expectRecords: reader.#expectRecords,
      signal: reader.#signal,
      origin: { ...reader.position, isText: reader.#isText, innerLines: reader.#innerLines },
    };
  }

  /** For pipelines: takes the next items at once; `null` at the end.
   *
   * @internal
   */
  static takeItems<T extends string | Uint8Array>(reader: Reader<T>, select?: Select): Promise<Items<T> | null> {
    return reader.#turns.take(() => reader.#takeItems(select));
  }

  constructor(source: Source, options: ReaderOptions = {}) {
    const { as = "text", keepDelimiter = false, recordLimit = RECORD_LIMIT, invalidUtf8 = "replace" } = options;
    this.#source = source;
    this.#view = { framer: options.framer ?? lineFramer({ keepDelimiter }), as };
    this.#recordLimit = recordLimit;
    this.#expectRecords = options.expectRecords;
    this.#invalidUtf8 = invalidUtf8;
    this.#jsonUtf8 = options.invalidUtf8 ?? "error";
    this.#signal = options.signal;
    this.#wait = new Waits(options.signal, (signal) => this.#cancel(signal));
    this.name = options.name ?? source.name;
    abandoned?.register(this, source, this);
  }

  /** The position of the reader: after the last record that was returned. */
  get position(): Position {
    const { items, index, start, offsets, first, records } = this.#block;
    if (index === items.length) return { bytes: this.#base + this.#pos, records: this.#records };
    const at = records?.[index] ?? index;
    return { bytes: this.#base + start + offsets[at], records: first + at };
  }

  /** How the commands of the source ended, for those that have ended so far. */
  get commandEnds(): readonly CommandEnd[] {
    return this.#source.commandEnds();
  }

  /**
   * The bytes after the last complete record of a source that failed. They are not a record, because the source did not
   * finish it. The error reports their number.
   */
  get unfinished(): Uint8Array | undefined {
    return this.#unfinished;
  }

  /** Iterates over the records, as defined by the options: by default, lines as strings. */
  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    return this.#iterate<T>(this.#view);
  }

  /** Iterates over the remaining lines as strings. */
  lines(options: { keepDelimiter?: boolean | undefined } = {}): AsyncIterableIterator<string> {
    checkOptions("lines", options, [DELIMITER_RULES]);
    return this.#iterate<string>({ framer: lineFramer(options), as: "text" });
  }

  /** Iterates over the remaining records of this framer; the reader's options are the defaults. */
  records(framer: Framer): AsyncIterableIterator<T>;
  records<A extends As>(framer: Framer, options: { as: A }): AsyncIterableIterator<ItemOf<A>>;
  records(framer: Framer, options: { as?: As | undefined } = {}): AsyncIterableIterator<string | Uint8Array> {
    checkOption("records", "framer", framer ?? null, FRAMER);
    checkOptions("records", options, [{ as: READER_RULES.as }]);
    return this.#iterate({ framer, as: options.as ?? this.#view.as });
  }

  /** Iterates over the remaining records of CSV, each as an array of its fields, for a reader with `framer: csv()`.
   *
   * Blank lines and comments are not records. With `as: "bytes"`, fields are bytes. Once the header has been read, by
   * `header` or by `objects`, a record with another number of fields is an error of kind `field_count_mismatch`.
   *
   * @throws `argument_invalid` for other readers.
   */
  rows(options: RaggedOptions = {}): AsyncIterableIterator<T[]> {
    return this.#iterate(this.#viewOfRows("rows", options, false));
  }

  /** Returns the names of the header of CSV, for a reader with `framer: csv()`.
   *
   * The header is the first record. If it has not been read, by this or by `objects`, the next record is taken as the header.
   * Without a record, there are no names.
   *
   * @throws `argument_invalid` for other readers.
   */
  async header(): Promise<readonly string[]> {
    const header = this.#header;
    const view = this.#viewOfRows("header", {}, false);
    return this.#turns.take(async () => {
      if (header.names === undefined && (await this.#refill(view))) {
        const block = this.#block;
        header.names = view.framer.namesOf(block.items[block.index++] as T[]);
      }
      return header.names ?? [];
    });
  }

  /** Iterates over the remaining records of CSV, each as an object with the header's names, for a reader with `framer:
   * csv()`.
   *
   * The header is the first record, which the reader keeps for later loops. If names are equal, the object has the last
   * of their fields. A record with another number of fields is an error of kind `field_count_mismatch`. Blank lines and
   * comments are not records. With `as: "bytes"`, fields are bytes, but names are strings.
   *
   * @throws `argument_invalid` for other readers; `invalid_option` for `ragged: "collect"`.
   */
  objects(options: RaggedOptions = {}): AsyncIterableIterator<{ [name: string]: T }> {
    return this.#iterate(this.#viewOfRows("objects", options, true));
  }

  /** Iterates over the remaining records of JSON as values, for a reader with `framer: jsonLines()` or with `jsonElements`.
   *
   * Blank lines are not records. Text that is not a value is an error of kind `json_invalid`, and text that is not UTF-8 one
   * of kind `utf8_invalid`, unless the reader has `invalidUtf8: "replace"`; no record follows such an error.
   *
   * @throws `argument_invalid` for other readers.
   */
  json<V = any>(options: JsonOptions = {}): AsyncIterableIterator<V> {
    checkOptions("json", options, [{ parse: FUNCTION }]);
    const { parse = JSON.parse } = options;
    const framer = this.#framerOf<ValueFramer>("json", "values", "JSON", "jsonLines(), or with jsonElements");
    const split = (batch: Batch) => framer.values(batch, (text) => parse(text), this.#jsonUtf8);
    return this.#iterate({ framer, as: "text", split });
  }

  #viewOfRows(call: string, given: RaggedOptions, asObjects: boolean): View & { readonly framer: RowFramer } {
    checkOptions(call, given, [asObjects ? RAGGED_OBJECT_RULES : RAGGED_RULES]);
    const framer = this.#framerOf<RowFramer>(call, "split", "CSV", "csv()");
    const { as } = this.#view;
    const options = {
      isText: as === "text",
      invalidUtf8: this.#invalidUtf8,
      header: this.#header,
      asObjects,
      ragged: given.ragged,
    };
    return { framer, as, split: (batch) => framer.split(batch, options) };
  }

  /** Returns the framer if it has this method, which those of the format have. */
  #framerOf<F extends Framer>(call: string, method: keyof F & string, format: string, expected: string): F {
    const { framer } = this.#view;
    if (method in framer) return framer as F;
    const found = `a reader of records that are not ${format}`;
    throw misuse({ stream: call, found, expected: `a reader with framer: ${expected}` });
  }

  /** Iterates over the remaining records in batches of bytes with offsets, which is fastest.
   *
   * A batch covers at most 256 KiB, unless its first record is longer. It contains only data that has arrived, so no
   * record waits for others.
   */
  batches(framer: Framer = this.#view.framer, options: BatchOptions = {}): AsyncIterableIterator<Batch> {
    checkOption("batches", "framer", framer, FRAMER);
    checkOptions("batches", options, [BATCH_RULES]);
    const next = () => this.#nextBatch(framer, options);
    return resumable(async () => {
      const batch = await next();
      return batch === null ? END : { done: false, value: batch };
    });
  }

  /** Returns the next batch, or `null` at the end. */
  async nextBatch(framer: Framer = this.#view.framer, options: BatchOptions = {}): Promise<Batch | null> {
    checkOption("nextBatch", "framer", framer, FRAMER);
    checkOptions("nextBatch", options, [BATCH_RULES]);
    return this.#nextBatch(framer, options);
  }

  #nextBatch(framer: Framer, options: BatchOptions): Promise<Batch | null> {
    return this.#turns.take(async () => {
      this.#giveBack();
      const batch = await this.#takeBatch(framer);
      if (options.memory !== "reused") this.#lent = true;
      return batch;
    });
  }

  /** Skips a record of any length and returns true, or false if there is none. Use this after `record_too_long`. */
  skipRecord(): Promise<boolean> {
    return this.#turns.take(() => {
      this.#giveBack();
      return this.#skip(this.#view.framer);
    });
  }

  /** Closes the reader and its source, stops its command (SIGTERM 1 s after its output was closed, SIGKILL after
   * another second) and waits until it has ended. This can be repeated.
   *
   * If a source was not read to its end, its success is not checked; the result reports how its commands ended. If an
   * error ended reading, it is reported again, unless it was the caller's signal or time limit.
   */
  async close(): Promise<readonly CommandEnd[]> {
    if (this.#state === "open" || this.#state === "ending") this.#state = "closed";
    this.#forget();
    this.#wait.interrupt(new MillstreamError(CLOSED, { stream: this.name }));
    abandoned?.unregister(this);
    try {
      await this.#source.close();
    } catch (error) {
      throw fromSystem(error, IO, { stream: this.name });
    }
    if (this.#reported !== undefined) throw this.#reported;
    return this.#source.commandEnds();
  }

  /** Closes the reader without reporting errors. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch(() => {});
  }

  #iterate<I>(view: View): AsyncIterableIterator<I> {
    const refill = async (): Promise<IteratorResult<I>> => {
      for (;;) {
        const { block } = this.#current(view);
        if (block !== undefined) return { done: false, value: block.items[block.index++] as I };
        if (!(await this.#turns.take(() => this.#refill(view)))) return END;
      }
    };
    return resumable(() => {
      const block = this.#block;
      if (block.view === view && block.index < block.items.length) {
        return Promise.resolve({ done: false, value: block.items[block.index++] as I });
      }
      return refill();
    });
  }

  #current(view: View): { block?: Block } {
    const block = this.#block;
    return block.view === view && block.index < block.items.length ? { block } : {};
  }

  /** Takes the next block for this view if the last one is used up. Returns false at the end. */
  async #refill(view: View): Promise<boolean> {
    if (this.#current(view).block !== undefined) return true;
    this.#giveBack();
    return this.#takeBlock(view);
  }

  async #takeItems<I>(select?: Select): Promise<Items<I> | null> {
    let view = this.#view;
    if (select !== undefined) {
      const { framer, as } = view;
      view = { framer, as, split: (batch) => select(batch, as, this.#invalidUtf8), most: BATCH_BYTES };
    }
    if (!(await this.#refill(view))) return null;
    const { items, index, start, offsets, first, inner, records } = this.#block;
    this.#block = NO_BLOCK;
    const left = (index === 0 ? items : items.slice(index)) as I[];
    const { framer } = view;
    let lineOf: LineOf | undefined;
    if (hasLines(framer) && inner !== undefined) {
      const bytes = this.#bytes.subarray(start, start + offsets[offsets.length - 1]);
      lineOf = framer.linesOf(bytes, offsets, first, first + inner + 1, this.#innerLines! - inner);
    }
    return { items: left, first: first + index, isText: this.#isText, records, lineOf };
  }

  async #takeBlock(view: View): Promise<boolean> {
    const { framer, as } = view;
    for (;;) {
      const inner = this.#innerLines;
      const batch = await this.#takeBatch(framer, view.most ?? (as === "text" ? TEXT_BLOCK : BATCH_BYTES));
      if (batch === null) return false;
      const rows = view.split?.(batch);
      const items = rows?.items ?? (as === "text" ? this.#texts(batch) : batch.records());
      const { offsets, firstRecord: first } = batch;
      const start = this.#pos - offsets[batch.length];
      if (rows?.error !== undefined) this.#endAt(rows.error, batch);
      if (items.length === 0) continue;
      if (as === "bytes") this.#lent = true;
      this.#block = { view, items, index: 0, start, offsets, first, inner, records: rows?.records };
      return true;
    }
  }

  /** Returns the strings of a batch; if invalid UTF-8 is an error, only those before it. */
  #texts(batch: Batch): string[] {
    try {
      return batch.texts(this.#invalidUtf8);
    } catch (error) {
      const good = this.#endAt(error, batch);
      return new Batch(batch.bytes, batch.offsets.slice(0, good + 1), batch.trim, true).texts();
    }
  }

  /** Handles a record that is not UTF-8: it and the following ones are not returned. Returns its index. */
  #endAt(error: unknown, batch: Batch): number {
    const failure = fromSystem(error, UTF8_INVALID, { stream: this.name });
    const index = (failure.record ?? batch.firstRecord) - batch.firstRecord;
    this.#failure = this.#withLine(failure, batch, index);
    this.#state = "ending";
    this.#end = this.#pos;
    return index;
  }

  /** Adds the line and the column to the error of a record of the last batch, if the record may be several lines. */
  #withLine(error: MillstreamError, { bytes, offsets, offset }: Batch, index: number): MillstreamError {
    if (!hasLines(this.#scanner) || error.offset === undefined) return error;
    const before = bytes.subarray(offsets[index], error.offset - offset);
    const inner = this.#scanner.linesInside(bytes, offsets.subarray(index));
    return changed(error, this.#lineAfter(before, error.record! - inner));
  }

  /** Returns the line and the column after these bytes of a record that may be several lines, if they are known. */
  #lineAfter(bytes: Uint8Array, record: number): { line?: number; column?: number } {
    if (!hasLines(this.#scanner) || this.#innerLines === undefined) return {};
    const { lines, column } = this.#scanner.placeAfter(bytes);
    return { line: record + this.#innerLines + lines + 1, column };
  }

  /** Makes this framer scan the unread bytes from their start if another one has scanned them. */
  #scanWith(framer: Framer): void {
    const findsLines = framer.findsLines ?? framer.delimiter === LF;
    this.#isText &&= findsLines;
    if (!findsLines && !hasLines(framer)) this.#innerLines = undefined;
    if (this.#scanner === framer) return;
    this.#scanner = framer;
    this.#scanned = 0;
    this.#inside = 0;
  }

  /** Returns the next records in a batch of at most this many bytes, unless the first record is longer. */
  async #takeBatch(framer: Framer, most = BATCH_BYTES): Promise<Batch | null> {
    this.#scanWith(framer);
    for (;;) {
      this.#complainIfStopped();
      if (this.#pos < this.#end) {
        const batch = this.#frame(framer, most);
        if (batch !== undefined) return batch;
      }
      if (this.#state !== "open") {
        await this.#finish();
        return null;
      }
      await this.#fill(framer);
    }
  }

  /** Returns the complete records at the front of the unread bytes. Throws the error of the first one. */
  #frame(framer: Framer, most: number): Batch | undefined {
    const known = framer.delimiter === LF ? this.#frameKnown(framer, most) : undefined;
    if (known !== undefined) return known;
    const eof = this.#state === "ending" && this.#failure === undefined;
    if (!eof && framer.delimiter === LF && this.#source.lineEnds?.hasNone(this.#pos)) {
      this.#checkLength(framer.trim, this.#pos, this.#end, false);
      this.#scanned = this.#end - this.#pos;
      return undefined;
    }
    const unread = this.#bytes.subarray(this.#pos, this.#end);
    // The first record is long; its start is not scanned again.
    const isLong = this.#scanned > SEAM;
    let step = isLong ? this.#step(framer, unread, eof) : undefined;
    if (isLong && !step) return undefined;
    const limited = unread.length > most;
    const ends = this.#ends;
    ends.length = 0;
    ends.push(0);
    let terminated = true;
    try {
      const part = limited ? unread.subarray(0, most) : unread;
      terminated = batchOf(framer, part, eof && !limited, Number.POSITIVE_INFINITY, ends);
    } catch (error) {
      if (ends.length === 1) this.#fail(error);
    }
    const isBatch = ends.length > 1;
    if (!isBatch) {
      // There is one record that is longer than a batch, or none.
      step ??= this.#step(framer, unread, eof);
      if (!step) return undefined;
      ends.push(step.length);
      terminated = step.terminated;
    }
    const good = this.#withinLimit(framer.trim, ends.array, ends.length, terminated);
    if (good === 0) this.#tooLong(this.#contentOf(framer.trim, this.#pos, this.#pos + ends.array[1], true));
    const offsets = ends.array.slice(0, good + 1);
    const length = offsets[good];
    const bytes = this.#bytes.subarray(this.#pos, this.#pos + length);
    const last = terminated || good + 1 < ends.length;
    const batch = new Batch(bytes, offsets, framer.trim, last, this.#base + this.#pos, this.#records, this.#isText);
    this.#take(length, good);
    if (hasLines(framer)) this.#countLines(isBatch ? framer.linesInBatch(good) : framer.linesInside(bytes, offsets));
    return batch;
  }

  /** Returns the lines of a block whose line ends the source has found. */
  #frameKnown(framer: Framer, most: number): Batch | undefined {
    const start = this.#pos;
    const offsets = this.#source.lineEnds?.take(start, most);
    if (offsets === undefined) return undefined;
    const count = offsets.length - 1;
    if (this.#withinLimit(framer.trim, offsets, offsets.length, true) < count) return undefined;
    const length = offsets[count];
    const bytes = this.#bytes.subarray(start, start + length);
    const batch = new Batch(bytes, offsets, framer.trim, true, this.#base + start, this.#records, this.#isText);
    this.#take(length, count);
    return batch;
  }

  /** Returns the number of records before one that is too long. */
  #withinLimit(trim: Trim, ends: Uint32Array, length: number, terminated: boolean): number {
    if (ends[length - 1] <= this.#recordLimit) return length - 1;
    for (let index = 1; index < length; index++) {
      if (ends[index] - ends[index - 1] <= this.#recordLimit) continue;
      const isWhole = terminated || index + 1 < length;
      const start = this.#pos + ends[index - 1];
      if (this.#contentOf(trim, start, this.#pos + ends[index], isWhole) > this.#recordLimit) return index - 1;
    }
    return length - 1;
  }

  /** Returns the number of bytes of a record that are its content. */
  #contentOf({ head, tail, carriageReturn }: Trim, start: number, end: number, terminated: boolean): number {
    let last = end;
    if (terminated) {
      last -= tail;
      if (carriageReturn && last > start && this.#bytes[last - 1] === CR) last--;
    }
    return Math.max(last - start - head, 0);
  }

  /**
   * Reports a record that is too long. A record that has not ended yet is reported only if it is certain to be too
   * long.
   */
  #checkLength(trim: Trim, start: number, end: number, ended: boolean): void {
    if (end - start <= this.#recordLimit) return;
    // Some of the last bytes may be the start of its delimiter, and the byte before it a carriage return.
    const open = ended ? 0 : Math.max(trim.tail - 1, 0) + Number(trim.carriageReturn);
    const length = this.#contentOf(trim, start, end - open, ended);
    if (length > this.#recordLimit) this.#tooLong(length);
  }

  /** Returns the first record if it is complete. */
  #step(framer: Framer, unread: Uint8Array, eof: boolean): { length: number; terminated: boolean } | undefined {
    let step: ReturnType<Framer["step"]>;
    try {
      step = framer.step(unread, this.#scanned, eof, this.#inside);
    } catch (error) {
      this.#fail(error);
    }
    if (step.length !== undefined) return step;
    const { scanned, need, state = 0 } = step;
    this.#scanned = scanned;
    this.#inside = state;
    const { trim } = framer;
    if (need > 0) {
      if (need - trim.head - trim.tail > this.#recordLimit) this.#tooLong(need - trim.head - trim.tail);
    } else {
      this.#checkLength(trim, this.#pos, this.#end, false);
    }
    return undefined;
  }

  #take(length: number, records: number): void {
    this.#pos += length;
    this.#records += records;
    this.#scanned = 0;
    this.#inside = 0;
  }

  /** Adds the number of line ends inside records that were taken. */
  #countLines(inner: number): void {
    if (this.#innerLines !== undefined) this.#innerLines += inner;
  }

  /** Reads one chunk after the unread bytes, or detects the end. */
  async #fill(framer: Framer): Promise<void> {
    const { lineEnds } = this.#source;
    lineEnds?.forget();
    const rest = this.#rest;
    if (rest !== undefined) {
      this.#rest = undefined;
      this.#append(rest, framer);
      // The line ends belong to the whole chunk.
      lineEnds?.forget();
      return;
    }
    let chunk: Uint8Array | null;
    try {
      chunk = await this.#wait.until(this.#source.read());
      this.#begin();
      // The rest is a record only if the source succeeded, because a source that failed did not finish it.
      if (chunk === null) await this.#wait.until(this.#source.finish());
    } catch (error) {
      this.#begin();
      const begun = this.#base + this.#end > 0;
      this.#failure = fromSystem(error, IO, {
        stream: this.name,
        offset: begun ? this.#base + this.#end : undefined,
      });
      this.#state = this.#state === "open" ? "ending" : this.#state;
      return;
    }
    if (this.#state !== "open") return;
    if (chunk === null) this.#state = "ending";
    else this.#append(chunk, framer);
  }

  /** Before the first byte: counts from the source's origin. */
  #begin(): void {
    const origin = this.#source.origin;
    if (origin === undefined || this.#base + this.#end > 0) return;
    this.#base = origin.bytes;
    this.#records = origin.records;
    this.#isText &&= origin.isText;
    if (this.#innerLines !== undefined) this.#innerLines = origin.innerLines;
  }

  #append(chunk: Uint8Array, framer: Framer): void {
    const unread = this.#end - this.#pos;
    if (unread === 0) {
      this.#release();
      // This is not a Buffer, whose `slice` differs, so that records are the same from every source.
      const isPlain = Object.getPrototypeOf(chunk) === Uint8Array.prototype;
      this.#use(isPlain ? chunk : new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length), chunk.length);
      this.#source.lineEnds?.begin(this.#bytes, 0);
    } else if (unread <= (this.#source.headroom ?? 0)) {
      const joined = new Uint8Array(chunk.buffer, chunk.byteOffset - unread, unread + chunk.length);
      joined.set(this.#bytes.subarray(this.#pos, this.#end));
      this.#release();
      this.#use(joined, joined.length);
      this.#source.lineEnds?.begin(this.#bytes, unread);
    } else if (!this.#lent || !this.#complete(chunk, framer)) {
      this.#join(chunk);
    }
  }

  /** Replaces the memory with one that has this many unread bytes at its start. */
  #use(bytes: Uint8Array, length: number): void {
    this.#base += this.#pos;
    this.#bytes = bytes;
    this.#pos = 0;
    this.#end = length;
    this.#own = false;
    this.#lent = false;
    this.#source.lineEnds?.forget();
  }

  /** Releases the memory, which is not needed any more. */
  #release(): void {
    if (!this.#own && !this.#lent) this.#source.reuse?.(this.#bytes);
  }

  /** Copies the chunk after the unread bytes. */
  #join(chunk: Uint8Array): void {
    const unread = this.#end - this.#pos;
    const needed = unread + chunk.length;
    if (this.#own && !this.#lent && needed <= this.#bytes.length) {
      this.#bytes.copyWithin(0, this.#pos, this.#end);
      this.#base += this.#pos;
      this.#pos = 0;
      this.#end = unread;
    } else if (!this.#own || this.#end + chunk.length > this.#bytes.length) {
      // Allocates twice as much as needed in two cases: if a record is incomplete, so that a long record is not copied
      // for each chunk, and if the memory is reused, so that the next chunk fits.
      const longer = platform.allocate(this.#scanned > 0 || !this.#lent ? needed * 2 : needed);
      longer.set(this.#bytes.subarray(this.#pos, this.#end));
      this.#release();
      this.#use(longer, unread);
      this.#own = true;
    }
    this.#bytes.set(chunk, this.#end);
    this.#end += chunk.length;
    this.#source.reuse?.(chunk);
  }

  /** Joins the unread bytes with only as much of the chunk as completes the record; the rest need not be copied. */
  #complete(chunk: Uint8Array, framer: Framer): boolean {
    if (framer.delimiter === undefined) return false;
    const at = platform.indexOf(chunk, framer.delimiter, 0) + 1;
    const unread = this.#end - this.#pos;
    if (at === 0 || unread + at > SEAM) return false;
    const record = new Uint8Array(unread + at);
    record.set(this.#bytes.subarray(this.#pos, this.#end));
    record.set(chunk.subarray(0, at), unread);
    this.#use(record, record.length);
    this.#own = true;
    if (at < chunk.length) this.#rest = chunk.subarray(at);
    return true;
  }

  #cancel(signal: AbortSignal): MillstreamError {
    const error = cancelled(signal, { stream: this.name });
    this.#state = "ended";
    this.#forget();
    this.#source.close().catch(() => {});
    return error;
  }

  #complainIfStopped(): void {
    if (this.#state === "closed") throw new MillstreamError(CLOSED, { stream: this.name });
    if (this.#signal?.aborted && this.#state !== "ended") throw this.#cancel(this.#signal);
  }

  /** Called when everything is taken: reports the end if the source succeeded, otherwise its error, once. */
  async #finish(): Promise<void> {
    if (this.#state === "ended") {
      const cause = this.#failure;
      this.#failure = undefined;
      if (cause !== undefined) throw cause;
      return;
    }
    if (this.#state === "closed") throw new MillstreamError(CLOSED, { stream: this.name });
    this.#state = "ended";
    abandoned?.unregister(this);
    const failed = this.#failure;
    const { position } = this;
    if (failed !== undefined && this.#end > this.#pos) this.#unfinished = this.#bytes.slice(this.#pos, this.#end);
    this.#release();
    this.#forget();
    if (failed === undefined) {
      const expected = this.#expectRecords ?? position.records;
      if (position.records === expected) return;
      const found = `the end after ${position.records} records`;
      const place = { stream: this.name, offset: position.bytes };
      throw this.#report(new MillstreamError(CONTENT_MISMATCH, { ...place, found, expected: `${expected} records` }));
    }
    this.#failure = undefined;
    await this.#source.close().catch(() => {});
    const { records } = position;
    // The failure of a command is not in a line, unless it cut one short.
    const hasPlace = failed.offset !== undefined && (failed.command === undefined || this.#unfinished !== undefined);
    const error = hasPlace ? failed.at({ record: records, line: this.#place().line }) : failed;
    throw this.#report(this.#unfinished === undefined ? error : withUnfinished(error, this.#unfinished));
  }

  /** Stores an error that closing reports again, unless the caller caused it. */
  #report(error: MillstreamError): MillstreamError {
    if (!CAUSED_BY_CALLER.has(error.kind)) this.#reported = error;
    return error;
  }

  /** Reports the error of bytes that cannot be a record, and ends the reader. */
  #fail(error: unknown): never {
    const place = this.#place();
    if (error instanceof MillstreamError && error.offset !== undefined) {
      const before = this.#bytes.subarray(this.#pos, this.#pos + error.offset);
      error = changed(error, { offset: place.offset + error.offset, ...this.#lineAfter(before, place.record) });
    }
    this.#state = "ended";
    this.#forget();
    this.#source.close().catch(() => {});
    throw this.#report(fromSystem(error, INTERNAL, place));
  }

  /** The place of the next record. The line is set if it is known. */
  #place() {
    const record = this.#records;
    const line = this.#isText ? record + 1 : this.#lineAfter(EMPTY, record).line;
    return { stream: this.name, offset: this.#base + this.#pos, record, line };
  }

  /** Throws the error for a record that is too long, until the record is skipped. */
  #tooLong(length: number): never {
    throw new MillstreamError(RECORD_TOO_LONG, {
      ...this.#place(),
      found: `${length} bytes${length > this.#end - this.#pos ? "" : " or more"}`,
      expected: `at most ${this.#recordLimit}`,
    });
  }

  async #skip(framer: Framer): Promise<boolean> {
    this.#scanWith(framer);
    let some = false;
    for (;;) {
      this.#complainIfStopped();
      const eof = this.#state !== "open";
      if (this.#pos < this.#end) {
        const unread = this.#bytes.subarray(this.#pos, this.#end);
        let step: ReturnType<Framer["step"]>;
        try {
          step = framer.step(unread, this.#scanned, eof && this.#failure === undefined, this.#inside);
        } catch (error) {
          // The start of the line may have been dropped.
          if (some) this.#innerLines = undefined;
          this.#fail(error);
        }
        some = true;
        if (step.length !== undefined) {
          this.#take(step.length, 1);
          if (hasLines(framer)) this.#countLines(framer.linesInside(unread, Uint32Array.of(0, step.length)));
          return true;
        }
        const { scanned, need, state = 0 } = step;
        if (need > 0) return this.#skipBytes(need, framer);
        // Bytes without the end of a record can be dropped.
        this.#take(scanned, 0);
        if (hasLines(framer)) this.#countLines(framer.placeAfter(unread.subarray(0, scanned)).lines);
        this.#inside = state;
      }
      if (eof) {
        if (some && this.#failure === undefined) {
          this.#records++;
          return true;
        }
        await this.#finish();
        return false;
      }
      await this.#fill(framer);
    }
  }

  /** Skips a record of known length, which need not fit in memory. */
  async #skipBytes(length: number, framer: Framer): Promise<boolean> {
    let left = length;
    for (;;) {
      const here = Math.min(left, this.#end - this.#pos);
      this.#take(here, 0);
      left -= here;
      if (left === 0) break;
      if (this.#state !== "open") {
        if (this.#failure !== undefined) await this.#finish();
        const found = `${length - left} bytes`;
        this.#fail(new MillstreamError(FRAME_TRUNCATED, { found, expected: `${length} bytes` }));
      }
      this.#complainIfStopped();
      await this.#fill(framer);
    }
    this.#records++;
    return true;
  }

  /** Puts back items that were taken and not returned, for another view. */
  #giveBack(): void {
    const { view, items, index, start, offsets, first, records } = this.#block;
    this.#block = NO_BLOCK;
    if (index === items.length) return;
    const at = records?.[index] ?? index;
    if (hasLines(view.framer)) {
      this.#countLines(-view.framer.linesInside(this.#bytes.subarray(start), offsets.subarray(at)));
    }
    this.#pos = start + offsets[at];
    this.#records = first + at;
    this.#scanned = 0;
    this.#inside = 0;
  }

  /** Drops all remaining bytes. */
  #forget(): void {
    this.#base += this.#pos;
    this.#bytes = EMPTY;
    this.#rest = undefined;
    this.#pos = 0;
    this.#end = 0;
    this.#scanned = 0;
    this.#inside = 0;
    this.#block = NO_BLOCK;
  }
}

function hasLines(framer: Framer | undefined): framer is LinesFramer {
  return framer !== undefined && "linesInside" in framer;
}

/** The number of bytes of an unfinished record that a message shows. */
const SHOWN = 40;

/** Returns the error with the bytes of an incomplete record. */
function withUnfinished(error: MillstreamError, rest: Uint8Array): MillstreamError {
  const shown = JSON.stringify(platform.decode(rest, 0, Math.min(rest.length, SHOWN)));
  const bytes = `${rest.length} byte${rest.length === 1 ? "" : "s"} of an unfinished record, ${shown}`;
  const found = rest.length > SHOWN ? `${bytes}...` : bytes;
  return changed(error, { found: error.found === undefined ? found : `${error.found}, and ${found}` });
}
