/**
 * Many records at once: one block of bytes and the offsets of the records in it.
 *
 * A batch is plain data: record `i` is `bytes[offsets[i] .. offsets[i + 1]]`, including delimiter or length prefix, and
 * `trim` defines which part of it is content. Strings are created only on request.
 */

import { MillstreamError } from "./error.js";
import { UTF8_INVALID } from "./errors.js";
import { checkOption, TEXT_OR_BYTES } from "./options.js";
import { arrayFor, cutTexts, lastWithin, splitFirst, TEXT_BLOCK } from "./strings.js";
import { decodeStrictly, platform } from "./text.js";
import type { Trim } from "./trim.js";

/** What to do with bytes that are not UTF-8: replace them with U+FFFD, or throw an error. */
export type InvalidUtf8 = "replace" | "error";

const INVALID = ["replace", "error"];

const CR = 13;

/** Records in one block of memory. The batch owns the memory, which is never overwritten. */
export class Batch implements Iterable<Uint8Array> {
  constructor(
    /** The memory that the offsets point into. */
    readonly bytes: Uint8Array,
    /** The n + 1 ascending offsets of n records. */
    readonly offsets: Uint32Array,
    /** The part of each record that is not its content. */
    readonly trim: Trim,
    /** Whether the last record ends with its delimiter (true if records have none). All others do. */
    readonly terminated: boolean,
    /** The position of `bytes[0]` in the stream, in bytes from its start (after decoding). */
    readonly offset = 0,
    /** The number of the first record in the stream; the stream's first is 0. */
    readonly firstRecord = 0,
    /** Whether its records and all earlier ones of the stream are lines. */
    readonly isText = false,
  ) {}

  /** The line of the first record (the first is 1), if it and all earlier records of the stream are lines. */
  get firstLine(): number | undefined {
    return this.isText ? this.firstRecord + 1 : undefined;
  }

  /** The number of records. */
  get length(): number {
    return this.offsets.length - 1;
  }

  /** The content of a record, as a view into `bytes`. */
  record(index: number): Uint8Array {
    this.#check(index);
    const { start, end } = this.#content(index);
    return this.bytes.subarray(start, end);
  }

  /** All bytes of a record, as a view into `bytes`. */
  raw(index: number): Uint8Array {
    this.#check(index);
    return this.bytes.subarray(this.offsets[index], this.offsets[index + 1]);
  }

  /** The contents of all records, as views into `bytes`. */
  records(): Uint8Array[] {
    const records: Uint8Array[] = new Array(this.length);
    for (let index = 0; index < records.length; index++) {
      const { start, end } = this.#content(index);
      records[index] = this.bytes.subarray(start, end);
    }
    return records;
  }

  /** Returns the content of a record as a string. `invalid` works as for `texts`. */
  text(index: number, invalid: InvalidUtf8 = "replace"): string {
    this.#check(index);
    if (invalid !== "replace") checkOption("text", "invalid", invalid, INVALID);
    if (invalid === "error") this.#checkBlock(index, index + 1);
    const { start, end } = this.#content(index);
    return platform.decode(this.bytes, start, end);
  }

  /** Returns the contents of all records as strings.
   *
   * With `"error"`, bytes that are not UTF-8 throw an error of kind `utf8_invalid` that names the record.
   */
  texts(invalid: InvalidUtf8 = "replace"): string[] {
    checkOption("texts", "invalid", invalid, INVALID);
    const { bytes, offsets, trim, length } = this;
    // Record `i` ends before `offsets[i + 1]`.
    const span = { bytes, ends: offsets, trim };
    // The last one is handled separately if it is unterminated.
    const whole = this.terminated ? length : length - 1;
    if (whole === length && invalid === "replace") {
      const lines = splitFirst(span, 1, length + 1, offsets[0]);
      if (lines !== undefined) return lines;
    }
    const texts = arrayFor(length);
    for (let first = 0; first < length; ) {
      const last = first < whole ? lastWithin(offsets, first + 1, whole + 1, offsets[first] + TEXT_BLOCK) - 1 : length;
      if (invalid === "error") this.#checkBlock(first, last);
      if (first < whole) cutTexts(span, first + 1, last + 1, offsets[first], texts, first);
      else texts[first] = this.text(first);
      first = last;
    }
    return texts;
  }

  /** Returns the ascending indexes of the records whose content contains `what`; a string is encoded as UTF-8.
   *
   * The block is searched as a whole before single records are examined, so a block without a match costs almost
   * nothing.
   */
  matching(what: string | Uint8Array): Uint32Array {
    const { bytes, offsets, length } = this;
    checkOption("matching", "what", what ?? null, TEXT_OR_BYTES);
    const wanted = typeof what === "string" ? platform.encode(what) : what;
    if (wanted.length === 0) return Uint32Array.from({ length }, (_, index) => index);
    const found: number[] = [];
    for (let first = 0, from = offsets[0]; first < length; ) {
      const at = platform.find(bytes, wanted, from);
      if (at < 0 || at >= offsets[length]) break;
      const index = lastWithin(offsets, first, length + 1, at) - 1;
      const { start, end } = this.#content(index);
      // Otherwise the match includes a delimiter; there may be another match in the same record.
      const isContent = at >= start && at + wanted.length <= end;
      if (isContent) found.push(index);
      first = isContent ? index + 1 : index;
      from = isContent ? offsets[index + 1] : at + 1;
    }
    return Uint32Array.from(found);
  }

  /** The contents of the records, in order, as views into `bytes`. */
  [Symbol.iterator](): IterableIterator<Uint8Array> {
    return this.records().values();
  }

  /**
   * Throws for the first of these records that is not UTF-8. Returns if all records are valid (and only bytes between
   * them are not).
   */
  #checkBlock(first: number, last: number): void {
    const { bytes, offsets } = this;
    if (decodeStrictly(bytes.subarray(offsets[first], offsets[last])) !== undefined) return;
    for (let index = first; index < last; index++) {
      const { start, end } = this.#content(index);
      if (decodeStrictly(bytes.subarray(start, end)) === undefined) {
        const record = this.firstRecord + index;
        const line = this.isText ? record + 1 : undefined;
        throw new MillstreamError(UTF8_INVALID, { expected: "UTF-8", offset: this.offset + start, record, line });
      }
    }
  }

  #content(index: number): { start: number; end: number } {
    const { bytes, offsets, trim } = this;
    let start = offsets[index];
    let end = offsets[index + 1];
    if (this.terminated || index + 1 < this.length) {
      end = Math.max(end - trim.tail, start);
      if (trim.carriageReturn && end > start && bytes[end - 1] === CR) end--;
    }
    start = Math.min(start + trim.head, end);
    return { start, end };
  }

  #check(index: number): void {
    if (!(index >= 0 && index < this.length)) throw new RangeError(`record ${index} of ${this.length}`);
  }
}
