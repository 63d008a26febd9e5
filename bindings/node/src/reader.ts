/**
 * The reading end: bytes from a source, out of which records are taken.
 *
 * It promises: every byte that the source delivered is delivered; then the end, if the source succeeded, or one error that
 * says how it failed, and a plain end after that. A record is handed out as soon as it is there. Memory is bounded by the
 * source's chunks and the longest record, which has a limit.
 *
 * ```text
 *    handed out            unread           room to grow into
 *   [ ................ | xxxxxxxxxxxxxxx | ............... ]
 *   0                 pos               end          bytes.length
 * ```
 *
 * What was handed out in front of `pos` as views is never written again; of strings, the memory is used again. A chunk that
 * comes when nothing is unread takes the place of the memory; otherwise unread bytes and chunk are joined, without copying
 * the chunk if that can be.
 */

import { Batch, type InvalidUtf8, isPlainLines } from "./batch.js";
import { type CommandEnd, cancelled, fromSystem, MillstreamError } from "./error.js";
import { batchOf, Ends, type Framer, lineFramer } from "./frame.js";
import type { Source } from "./source/source.js";
import { arrayFor, cutsPay, cutTexts, lastWithin, splitLines, TEXT_BLOCK } from "./strings.js";
import { platform } from "./text.js";

/** How much of the unread bytes one batch covers at most: what fits the processor's cache with its offsets. */
const BATCH_BYTES = 256 << 10;

/** The longest record that is put together by itself from two chunks. */
const SEAM = 16 << 10;

/** The longest record, unless told otherwise. */
const RECORD_LIMIT = 64 << 20;

const LF = 10;

/** What a record is to the user. */
export type As = "text" | "bytes";

/** A record as `A` says. */
export type ItemOf<A extends As> = A extends "bytes" ? Uint8Array : string;

/** Options of every reader. */
export interface ReaderOptions<A extends As = As> {
  /** Records as strings, or as views of bytes. */
  as?: A;
  /** Where records end: at line ends unless told otherwise. */
  framer?: Framer;
  /** Whether lines keep their LF or CRLF. */
  keepDelimiter?: boolean;
  /** The longest record in bytes, delimiter included; longer ones are an error of kind `record_too_long`. */
  recordLimit?: number;
  /** What becomes of bytes that are no UTF-8. */
  invalidUtf8?: InvalidUtf8;
  /** Ends the reader when it is triggered, by an error of kind `cancelled`. */
  signal?: AbortSignal;
  /** The name of the source in messages. */
  name?: string;
}

/** Where a reader is, from the start of the stream. */
export interface Position {
  /** Bytes taken, after decoding. */
  readonly bytes: number;
  /** Records taken or skipped. */
  readonly records: number;
}

/** Options of batches. */
export interface BatchOptions {
  /**
   * Whose the memory of a batch is. `"kept"` unless told otherwise: the batch's own. With `"reused"` a batch is good until
   * the next one is asked for; then its memory may be written again, which is faster than to have new memory for each.
   */
  memory?: "kept" | "reused";
}

/** Items taken at once, and the number of the first in its stream. */
export interface Items<T> {
  readonly items: T[];
  readonly first: number;
}

/** One way to look at the stream: records of this framer, as this. */
interface View {
  readonly framer: Framer;
  readonly as: As;
}

/** Items that were taken from the bytes for a view, and not all handed out yet. */
interface Block {
  readonly view: View;
  readonly items: unknown[];
  /** How many have been handed out. */
  index: number;
  /** Where the first begins in the memory, and its number. */
  readonly start: number;
  readonly first: number;
}

const EMPTY = new Uint8Array(0);
const NO_BLOCK: Block = { view: { framer: lineFramer(), as: "text" }, items: [], index: 0, start: 0, first: 0 };

/** For `pipe`: the next items at once, `null` at the end. */
export let takeItems: <T extends string | Uint8Array>(reader: Reader<T>) => Promise<Items<T> | null>;

/** For `matching`: the same of records that contain something, and which of those from `first` on they are. */
export let takeMatching: <T extends string | Uint8Array>(
  reader: Reader<T>,
  what: Uint8Array,
) => Promise<(Items<T> & { readonly from: Uint32Array }) | null>;

/** Sources whose reader nobody holds any more are closed. */
const abandoned =
  typeof FinalizationRegistry === "undefined"
    ? undefined
    : new FinalizationRegistry<Source>((source) => void source.close().catch(() => {}));

/**
 * Reads a source record by record. Made by `open`, `command`, `lines` and `from`.
 *
 * A loop that is left early leaves the reader as it is: the next loop goes on with the next record. `close` ends it for
 * good, as does `await using`.
 */
export class Reader<T extends string | Uint8Array = string> implements AsyncIterable<T>, AsyncDisposable {
  readonly #source: Source;
  readonly #view: View;
  readonly #recordLimit: number;
  readonly #invalidUtf8: InvalidUtf8;
  readonly #signal: AbortSignal | undefined;
  /** The name of the source, for messages. */
  readonly name: string;

  #bytes: Uint8Array = EMPTY;
  #pos = 0;
  #end = 0;
  /** Whether views of the memory are with the user: then it stays as it is. Else it is written again. */
  #lent = false;
  /** Whether the memory is ours, and not the source's. */
  #own = false;
  /** Behind each line feed of the memory, where its source has looked. */
  #lineEnds: Uint32Array | undefined;
  /** How far in front of what its source has looked at. */
  #lineShift = 0;
  /** Which of them is the first behind `#lineStart`: of use while that is `#pos`. */
  #lineIndex = 0;
  #lineStart = 0;
  /** The rest of a chunk whose beginning was needed to complete a record. */
  #rest: Uint8Array | undefined;
  /** How many of the unread bytes hold no end of the first record. */
  #scanned = 0;
  /** Where in the stream `#bytes[0]` is. */
  #base = 0;
  /** How many records are in front of `#pos`. */
  #records = 0;
  #block: Block = NO_BLOCK;
  /** The offsets of the batch that is being found; the memory stays. */
  readonly #ends = new Ends();

  /**
   * - `open`: there may be more bytes.
   * - `ending`: there are no more; whether the source succeeded is asked when all of them are taken.
   * - `ended`: that was reported. - `closed`: by the user, before that.
   */
  #state: "open" | "ending" | "ended" | "closed" = "open";
  /** An error that is due when all whole records have been handed out. */
  #failure: MillstreamError | undefined;
  /** Ends what is waited for. */
  #interrupt: (error: unknown) => void = () => {};
  /** Calls that need the source take turns. */
  #turn: Promise<unknown> = Promise.resolve();

  static {
    takeItems = (reader) => reader.#inTurn(() => reader.#takeItems());
    takeMatching = (reader, what) => reader.#inTurn(() => reader.#takeMatching(what));
  }

  constructor(source: Source, options: ReaderOptions = {}) {
    const { as = "text", keepDelimiter = false, recordLimit = RECORD_LIMIT, invalidUtf8 = "replace" } = options;
    if (!(recordLimit >= 1)) {
      throw new MillstreamError("invalid_option", { found: `a record limit of ${recordLimit}`, expected: "1 or more" });
    }
    this.#source = source;
    this.#view = { framer: options.framer ?? lineFramer({ keepDelimiter }), as };
    this.#recordLimit = recordLimit;
    this.#invalidUtf8 = invalidUtf8;
    this.#signal = options.signal;
    this.name = options.name ?? source.name;
    abandoned?.register(this, source, this);
  }

  /** Where the reader is: behind the last record that was handed out. */
  get position(): Position {
    const { view, items, index, start, first } = this.#block;
    if (index === items.length) return { bytes: this.#base + this.#pos, records: this.#records };
    return { bytes: this.#base + start + this.#lengthOf(view.framer, start, index), records: first + index };
  }

  /** How the commands of the source ended, those that have. */
  get commandEnds(): readonly CommandEnd[] {
    return this.#source.commandEnds();
  }

  /** The records, as the options say: strings of lines unless told otherwise. */
  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    return this.#iterate<T>(this.#view);
  }

  /** The lines that are left, as strings. */
  lines(options: { keepDelimiter?: boolean } = {}): AsyncIterableIterator<string> {
    return this.#iterate<string>({ framer: lineFramer(options), as: "text" });
  }

  /** The records that are left, found by this framer; as the reader's options say unless told otherwise. */
  records(framer: Framer): AsyncIterableIterator<T>;
  records<A extends As>(framer: Framer, options: { as: A }): AsyncIterableIterator<ItemOf<A>>;
  records(framer: Framer, options: { as?: As } = {}): AsyncIterableIterator<string | Uint8Array> {
    return this.#iterate({ framer, as: options.as ?? this.#view.as });
  }

  /**
   * The records that are left, in batches of bytes with offsets: for speed.
   *
   * A batch covers at most 256 KiB unless its first record is longer, and what has arrived, so that none waits for others.
   */
  batches(framer: Framer = this.#view.framer, options: BatchOptions = {}): AsyncIterableIterator<Batch> {
    const next = () => this.nextBatch(framer, options);
    return resumable(async () => {
      const batch = await next();
      return batch === null ? END : { done: false, value: batch };
    });
  }

  /** The next batch, `null` at the end. */
  nextBatch(framer: Framer = this.#view.framer, options: BatchOptions = {}): Promise<Batch | null> {
    return this.#inTurn(async () => {
      this.#giveBack();
      const batch = await this.#takeBatch(framer);
      if (options.memory !== "reused") this.#lent = true;
      return batch;
    });
  }

  /** Skips a record, whatever its length: true, or false if there was none. For one that is `record_too_long`. */
  skipRecord(): Promise<boolean> {
    return this.#inTurn(() => {
      this.#giveBack();
      return this.#skip(this.#view.framer);
    });
  }

  /**
   * Ends the reader: closes its source, stops its command (1 s after its output was closed by SIGTERM, after another by
   * SIGKILL) and waits until it has gone. Can be repeated.
   *
   * Rejects if the source had failed by itself before.
   */
  async close(): Promise<readonly CommandEnd[]> {
    if (this.#state === "open" || this.#state === "ending") this.#state = "closed";
    this.#forget();
    this.#interrupt(new MillstreamError("closed", { stream: this.name }));
    abandoned?.unregister(this);
    try {
      await this.#source.close();
    } catch (error) {
      throw fromSystem(error, "io", { stream: this.name });
    }
    return this.#source.commandEnds();
  }

  /** Closes it, and reports nothing. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch(() => {});
  }

  /** One thing at a time: who calls while another call waits for bytes comes after it. */
  #inTurn<R>(call: () => Promise<R>): Promise<R> {
    const result = this.#turn.then(call);
    this.#turn = result.catch(() => {});
    return result;
  }

  #iterate<I>(view: View): AsyncIterableIterator<I> {
    const refill = async (): Promise<IteratorResult<I>> => {
      for (;;) {
        const { block } = this.#current(view);
        if (block !== undefined) return { done: false, value: block.items[block.index++] as I };
        if (!(await this.#inTurn(() => this.#refill(view)))) return END;
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

  /** Takes the next block for this view, if the last one is used up. False at the end. */
  async #refill(view: View): Promise<boolean> {
    if (this.#current(view).block !== undefined) return true;
    this.#giveBack();
    return this.#takeBlock(view);
  }

  async #takeItems<I>(): Promise<Items<I> | null> {
    if (!(await this.#refill(this.#view))) return null;
    const { items, index, first } = this.#block;
    this.#block = NO_BLOCK;
    return { items: (index === 0 ? items : items.slice(index)) as I[], first: first + index };
  }

  async #takeMatching<I>(what: Uint8Array): Promise<(Items<I> & { from: Uint32Array }) | null> {
    this.#giveBack();
    const { framer, as } = this.#view;
    for (;;) {
      const batch = await this.#takeBatch(framer);
      if (batch === null) return null;
      const from = batch.matching(what);
      if (from.length === 0) continue;
      if (as === "bytes") this.#lent = true;
      const items = as === "text" ? this.#textsOf(batch, from) : Array.from(from, (index) => batch.record(index));
      if (items.length > 0) return { items: items as I[], first: batch.firstRecord, from };
    }
  }

  async #takeBlock(view: View): Promise<boolean> {
    const { framer, as } = view;
    const fast =
      as === "text" &&
      this.#invalidUtf8 === "replace" &&
      this.#recordLimit >= TEXT_BLOCK &&
      isPlainLines(framer.delimiter, framer.trim);
    for (;;) {
      this.#complainIfStopped();
      if (fast) {
        if (this.#takeLines(view)) return true;
        if (this.#state === "open") {
          await this.#fill(framer);
          continue;
        }
      }
      const first = this.#records;
      const batch = await this.#takeBatch(framer);
      if (batch === null) return false;
      if (as === "bytes") this.#lent = true;
      const items = as === "text" ? this.#texts(batch) : batch.records();
      if (items.length === 0) continue;
      this.#block = { view, items, index: 0, start: this.#pos - batch.offsets[batch.length], first };
      return true;
    }
  }

  /** Whole lines as strings without offsets, if there are any. */
  #takeLines(view: View): boolean {
    const start = this.#pos;
    const { items, end } = (cutsPay() ? this.#linesAtKnownEnds(view.framer) : undefined) ?? this.#linesOfBlock();
    if (items.length === 0) return false;
    this.#block = { view, items, index: 0, start, first: this.#records };
    this.#take(end - start, items.length);
    return true;
  }

  #linesOfBlock(): { items: string[]; end: number } {
    const end = this.#endOfLines();
    return { items: end === 0 ? [] : splitLines(this.#bytes, this.#pos, end), end };
  }

  /** The same where the source has found the ends. */
  #linesAtKnownEnds({ trim }: Framer): { items: string[]; end: number } | undefined {
    const ends = this.#knownEnds();
    if (ends === undefined) return undefined;
    const first = this.#lineIndex;
    const shift = this.#lineShift;
    const start = this.#pos;
    const last = lastWithin(ends, first, ends.length, start + TEXT_BLOCK - shift);
    const end = ends[last - 1] + shift;
    if (end - start > this.#recordLimit && last === first + 1) this.#tooLong(end - start);
    const items = arrayFor(last - first);
    cutTexts({ bytes: this.#bytes, ends, shift, trim }, first, last, start, items, 0);
    this.#lineIndex = last;
    this.#lineStart = end;
    return { items, end };
  }

  /** Where lines end, from `#lineIndex` on, if that is known of those at `#pos`. */
  #knownEnds(): Uint32Array | undefined {
    const ends = this.#lineEnds;
    if (ends === undefined || this.#pos !== this.#lineStart || this.#lineIndex === ends.length) return undefined;
    return ends;
  }

  /** Where the whole lines end that are to be made into strings at once; 0 if there is none. */
  #endOfLines(): number {
    const bytes = this.#bytes;
    const start = this.#pos;
    const unread = this.#end - start;
    if (unread === this.#scanned) return 0;
    if (this.#scanned === 0) {
      const last = bytes.lastIndexOf(LF, start + Math.min(unread, TEXT_BLOCK) - 1);
      if (last >= start) return last + 1;
      this.#scanned = Math.min(unread, TEXT_BLOCK);
    }
    // The first line is not all here, or long.
    const first = platform.indexOf(bytes, LF, start + this.#scanned);
    const found = first >= 0 && first < this.#end;
    const length = found ? first + 1 - start : unread;
    if (length > this.#recordLimit) this.#tooLong(length);
    if (found) return first + 1;
    this.#scanned = unread;
    return 0;
  }

  /** The strings of a batch; those before one that is no UTF-8, if that is an error. */
  #texts(batch: Batch): string[] {
    try {
      return batch.texts(this.#invalidUtf8);
    } catch (error) {
      const good = this.#endAt(error, batch);
      return new Batch(batch.bytes, batch.offsets.slice(0, good + 1), batch.trim, true).texts();
    }
  }

  /** The strings of some of its records, likewise. */
  #textsOf(batch: Batch, indexes: Uint32Array): string[] {
    const texts: string[] = [];
    try {
      for (const index of indexes) texts.push(batch.text(index, this.#invalidUtf8));
    } catch (error) {
      this.#endAt(error, batch);
    }
    return texts;
  }

  /** Nothing is a record any more from one on that is no UTF-8: its index. */
  #endAt(error: unknown, batch: Batch): number {
    const failure = fromSystem(error, "utf8_invalid", { stream: this.name });
    this.#failure = failure;
    this.#state = "ending";
    this.#end = this.#pos;
    return (failure.record ?? batch.firstRecord) - batch.firstRecord;
  }

  async #takeBatch(framer: Framer): Promise<Batch | null> {
    for (;;) {
      this.#complainIfStopped();
      if (this.#pos < this.#end) {
        const batch = this.#frame(framer);
        if (batch !== undefined) return batch;
      }
      if (this.#state !== "open") {
        await this.#finish();
        return null;
      }
      await this.#fill(framer);
    }
  }

  /** The whole records at the front of what is unread. Throws what is wrong with the first. */
  #frame(framer: Framer): Batch | undefined {
    const known = framer.delimiter === LF ? this.#frameKnown(framer) : undefined;
    if (known !== undefined) return known;
    const eof = this.#state === "ending" && this.#failure === undefined;
    const unread = this.#bytes.subarray(this.#pos, this.#end);
    if (unread.length > BATCH_BYTES || this.#scanned > 0) {
      // The first record may be long: step by step, so that nothing is looked at twice.
      if (!this.#step(framer, unread, eof)) return undefined;
    }
    const limited = unread.length > BATCH_BYTES;
    const ends = this.#ends;
    ends.length = 0;
    ends.push(0);
    let terminated = true;
    let wrong: unknown;
    try {
      const part = limited ? unread.subarray(0, BATCH_BYTES) : unread;
      terminated = batchOf(framer, part, eof && !limited, Number.POSITIVE_INFINITY, ends);
    } catch (error) {
      wrong = error;
    }
    if (ends.length === 1) {
      if (wrong !== undefined) this.#fail(wrong);
      // One record that is longer than a batch, or none.
      const step = this.#step(framer, unread, eof);
      if (!step) return undefined;
      ends.push(step.length);
      terminated = step.terminated;
    }
    const good = this.#withinLimit(ends.array, ends.length);
    if (good === 0) this.#tooLong(ends.array[1]);
    const offsets = ends.array.slice(0, good + 1);
    const length = offsets[good];
    const bytes = this.#bytes.subarray(this.#pos, this.#pos + length);
    const last = terminated || good + 1 < ends.length;
    const batch = new Batch(bytes, offsets, framer.trim, last, this.#base + this.#pos, this.#records);
    this.#take(length, good);
    return batch;
  }

  /** The lines of memory in which the source has found them. */
  #frameKnown(framer: Framer): Batch | undefined {
    const ends = this.#knownEnds();
    if (ends === undefined) return undefined;
    const start = this.#pos;
    const first = this.#lineIndex;
    const count = ends.length - first;
    const offsets = new Uint32Array(count + 1);
    const shift = this.#lineShift - start;
    for (let index = 0; index < count; index++) offsets[index + 1] = ends[first + index] + shift;
    if (this.#withinLimit(offsets, offsets.length) < count) return undefined;
    const length = offsets[count];
    const bytes = this.#bytes.subarray(start, start + length);
    const batch = new Batch(bytes, offsets, framer.trim, true, this.#base + start, this.#records);
    this.#take(length, count);
    this.#lineIndex = ends.length;
    return batch;
  }

  /** How many records there are before one that is too long. */
  #withinLimit(array: Uint32Array, length: number): number {
    if (array[length - 1] <= this.#recordLimit) return length - 1;
    for (let index = 1; index < length; index++) {
      if (array[index] - array[index - 1] > this.#recordLimit) return index - 1;
    }
    return length - 1;
  }

  /** The first record, if it is there as a whole. */
  #step(framer: Framer, unread: Uint8Array, eof: boolean): { length: number; terminated: boolean } | undefined {
    let step: ReturnType<Framer["step"]>;
    try {
      step = framer.step(unread, this.#scanned, eof);
    } catch (error) {
      this.#fail(error);
    }
    if (step.length !== undefined) return step;
    const { scanned, need } = step;
    this.#scanned = scanned;
    if (need > this.#recordLimit || unread.length > this.#recordLimit) this.#tooLong(Math.max(need, unread.length));
    return undefined;
  }

  #take(length: number, records: number): void {
    this.#pos += length;
    this.#records += records;
    this.#scanned = 0;
  }

  /** Reads one chunk behind what is unread, or notices the end. */
  async #fill(framer: Framer): Promise<void> {
    // They are those of the last read.
    this.#lineEnds = undefined;
    const rest = this.#rest;
    if (rest !== undefined) {
      this.#rest = undefined;
      this.#append(rest, framer);
      // Those are of the whole chunk.
      this.#lineEnds = undefined;
      return;
    }
    let chunk: Uint8Array | null;
    try {
      chunk = await this.#interruptible(this.#source.read());
    } catch (error) {
      const begun = this.#base + this.#end > 0;
      this.#failure = fromSystem(error, "io", {
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

  #append(chunk: Uint8Array, framer: Framer): void {
    const unread = this.#end - this.#pos;
    if (unread === 0) {
      this.#release();
      // Not a Buffer, whose `slice` is another one: records are the same from every source.
      const isPlain = Object.getPrototypeOf(chunk) === Uint8Array.prototype;
      this.#use(isPlain ? chunk : new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length), chunk.length);
      this.#lookedAt(0);
    } else if (unread <= (this.#source.headroom ?? 0)) {
      const joined = new Uint8Array(chunk.buffer, chunk.byteOffset - unread, unread + chunk.length);
      joined.set(this.#bytes.subarray(this.#pos, this.#end));
      this.#release();
      this.#use(joined, joined.length);
      this.#lookedAt(unread);
    } else if (!this.#lent || !this.#complete(chunk, framer)) {
      this.#join(chunk);
    }
  }

  /** Memory with so many unread bytes at its beginning takes the place of the one there was. */
  #use(bytes: Uint8Array, length: number): void {
    this.#base += this.#pos;
    this.#bytes = bytes;
    this.#pos = 0;
    this.#end = length;
    this.#own = false;
    this.#lent = false;
    this.#lineEnds = undefined;
  }

  /** The source has looked at the memory behind so many bytes: of use if no line ends in those. */
  #lookedAt(shift: number): void {
    const { lineEnds } = this.#source;
    if (lineEnds === undefined || lineEnds.length === 0) return;
    const first = shift === 0 ? -1 : platform.indexOf(this.#bytes, LF, 0);
    if (first >= 0 && first < shift) return;
    this.#lineEnds = lineEnds;
    this.#lineShift = shift;
    this.#lineIndex = 0;
    this.#lineStart = 0;
  }

  /** The memory is not needed any more. */
  #release(): void {
    if (!this.#own && !this.#lent) this.#source.reuse?.(this.#bytes);
  }

  /** Copies the chunk behind what is unread. */
  #join(chunk: Uint8Array): void {
    const unread = this.#end - this.#pos;
    const needed = unread + chunk.length;
    if (this.#own && !this.#lent && needed <= this.#bytes.length) {
      this.#bytes.copyWithin(0, this.#pos, this.#end);
      this.#base += this.#pos;
      this.#pos = 0;
      this.#end = unread;
    } else if (!this.#own || this.#end + chunk.length > this.#bytes.length) {
      // Twice as much as needed where a record does not end, so that a long one is not copied for each chunk; and where the
      // memory is used again, so that the next chunk fits.
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

  /** Joins what is unread with only as much of the chunk as ends the record; the rest need not be copied. */
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

  /** Something of the source's that ends, for us, when the signal is triggered or the reader closed. */
  #interruptible<R>(promise: Promise<R>): Promise<R> {
    const signal = this.#signal;
    return new Promise((resolve, reject) => {
      const abort = () => reject(this.#cancel(signal!));
      signal?.addEventListener("abort", abort, { once: true });
      this.#interrupt = reject;
      promise.then(resolve, reject).finally(() => signal?.removeEventListener("abort", abort));
    });
  }

  #cancel(signal: AbortSignal): MillstreamError {
    const error = cancelled(signal, { stream: this.name });
    this.#state = "ended";
    this.#forget();
    this.#source.close().catch(() => {});
    return error;
  }

  #complainIfStopped(): void {
    if (this.#state === "closed") throw new MillstreamError("closed", { stream: this.name });
    if (this.#signal?.aborted && this.#state !== "ended") throw this.#cancel(this.#signal);
  }

  /** All is taken: the end if the source succeeded, else its error, once. */
  async #finish(): Promise<void> {
    if (this.#state === "ended") {
      this.#reportFailure();
      return;
    }
    if (this.#state === "closed") throw new MillstreamError("closed", { stream: this.name });
    this.#state = "ended";
    abandoned?.unregister(this);
    const failed = this.#failure;
    const { position } = this;
    this.#release();
    this.#forget();
    if (failed !== undefined) {
      this.#failure = undefined;
      await this.#source.close().catch(() => {});
      throw failed.offset === undefined ? failed : failed.at({ record: position.records });
    }
    try {
      await this.#interruptible(this.#source.finish());
    } catch (error) {
      throw fromSystem(error, "io", { stream: this.name });
    }
  }

  #reportFailure(): void {
    const failed = this.#failure;
    this.#failure = undefined;
    if (failed !== undefined) throw failed;
  }

  /** The error of bytes that can be no record: reported, and the end. */
  #fail(error: unknown): never {
    const place = { stream: this.name, offset: this.#base + this.#pos, record: this.#records };
    this.#state = "ended";
    this.#forget();
    this.#source.close().catch(() => {});
    throw fromSystem(error, "internal", place);
  }

  /** Reported until the record is skipped. */
  #tooLong(length: number): never {
    throw new MillstreamError("record_too_long", {
      stream: this.name,
      offset: this.#base + this.#pos,
      record: this.#records,
      found: `${length} bytes${length > this.#end - this.#pos ? "" : " or more"}`,
      expected: `at most ${this.#recordLimit}`,
    });
  }

  async #skip(framer: Framer): Promise<boolean> {
    let some = false;
    for (;;) {
      this.#complainIfStopped();
      const eof = this.#state !== "open";
      if (this.#pos < this.#end) {
        some = true;
        let step: ReturnType<Framer["step"]>;
        try {
          step = framer.step(
            this.#bytes.subarray(this.#pos, this.#end),
            this.#scanned,
            eof && this.#failure === undefined,
          );
        } catch (error) {
          this.#fail(error);
        }
        if (step.length !== undefined) {
          this.#take(step.length, 1);
          return true;
        }
        const { scanned, need } = step;
        if (need > 0) return this.#skipBytes(need, framer);
        // What holds no end can go.
        this.#take(scanned, 0);
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

  /** Skips a record of announced length, which need not fit into memory. */
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
        this.#fail(new MillstreamError("frame_truncated", { found, expected: `${length} bytes` }));
      }
      this.#complainIfStopped();
      await this.#fill(framer);
    }
    this.#records++;
    return true;
  }

  /** Puts items that were taken and not handed out back, for another way to look at them. */
  #giveBack(): void {
    const { view, items, index, start, first } = this.#block;
    this.#block = NO_BLOCK;
    if (index === items.length) return;
    this.#pos = start + this.#lengthOf(view.framer, start, index);
    this.#records = first + index;
    this.#scanned = 0;
  }

  /** How many bytes so many records have. */
  #lengthOf(framer: Framer, start: number, records: number): number {
    if (records === 0) return 0;
    const ends = new Ends();
    batchOf(framer, this.#bytes.subarray(start, this.#end), false, records, ends);
    return ends.array[ends.length - 1];
  }

  /** Nothing more is handed out. */
  #forget(): void {
    this.#base += this.#pos;
    this.#bytes = EMPTY;
    this.#rest = undefined;
    this.#pos = 0;
    this.#end = 0;
    this.#scanned = 0;
    this.#block = NO_BLOCK;
  }
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** An iterator whose loops can be left and gone on with: `return` ends nothing. */
function resumable<I>(next: () => Promise<IteratorResult<I>>): AsyncIterableIterator<I> {
  return {
    next,
    return: (value?: unknown) => Promise.resolve({ done: true as const, value }),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
