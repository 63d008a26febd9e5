/**
 * Records out of bytes.
 *
 * A `Framer` looks at bytes and says where the records in them end. It knows no input or output and remembers nothing
 * between calls: a reader does the reading, and a framer can change between two records.
 *
 * Anybody can write one: an object with `trim` and `step`.
 */

import { TRIM_NOTHING, type Trim } from "./batch.js";
import { MillstreamError } from "./error.js";
import { platform } from "./text.js";

/** What a framer says of the bytes it was shown. */
export type Step =
  /** `input[0 .. length]` is a record, delimiter or prefix included; at least 1. */
  | { readonly length: number; readonly terminated: boolean }
  /**
   * No whole record is here yet. The first `scanned` bytes need not be looked at again, and `need` is the record's whole
   * length where that is known, else 0.
   */
  | { readonly length?: undefined; readonly scanned: number; readonly need: number };

/** Finds records in bytes. */
export interface Framer {
  /** How much of a record is not its content. */
  readonly trim: Trim;

  /**
   * Looks for the record at the front of `input`, which is not empty.
   *
   * `scanned` is what an earlier step for the same record said. `eof` says that nothing follows: then the answer is a
   * record, or a thrown `MillstreamError`.
   */
  step(input: Uint8Array, scanned: number, eof: boolean): Step;

  /**
   * Adds the ends of the whole records at the front of `input` to `ends`, at most `max`. Returns whether the last one is
   * terminated. What it throws is for the first record that is not in `ends`.
   *
   * Without this, `step` is called for each record.
   */
  batch?(input: Uint8Array, eof: boolean, max: number, ends: Ends): boolean;

  /** The byte that ends every record and is nowhere else in one, where there is such. Readers may find the ends by it. */
  readonly delimiter?: number;
}

/** A list of offsets that grows. */
export class Ends {
  array = new Uint32Array(1024);
  length = 0;

  push(end: number): void {
    if (this.length === this.array.length) {
      const longer = new Uint32Array(this.array.length * 2);
      longer.set(this.array);
      this.array = longer;
    }
    this.array[this.length++] = end;
  }
}

/** Options of framers whose records end with a delimiter. */
export interface DelimiterOptions {
  /** Whether the delimiter is part of the record. */
  keepDelimiter?: boolean;
}

/**
 * Lines: LF ends them, and a CR before it is no content either. With `keepDelimiter` both are.
 *
 * A last line without LF is a line; a CR at its end is content.
 */
export function lineFramer(options: DelimiterOptions = {}): Framer {
  const trim = options.keepDelimiter ? TRIM_NOTHING : { head: 0, tail: 1, carriageReturn: true };
  return new EndsWithByte(10, trim);
}

/**
 * Records that end with a delimiter: a byte, some bytes, or a string (its UTF-8).
 *
 * A last record without it is a record. Matches do not overlap.
 *
 * @throws `invalid_option` for a delimiter of no bytes.
 */
export function delimiter(of: number | Uint8Array | string, options: DelimiterOptions = {}): Framer {
  const bytes =
    typeof of === "number" ? Uint8Array.of(of) : typeof of === "string" ? platform.encode(of) : new Uint8Array(of);
  if (bytes.length === 0 || (typeof of === "number" && bytes[0] !== of)) {
    throw new MillstreamError("invalid_option", {
      found: typeof of === "number" ? `the delimiter ${of}` : "a delimiter of 0 bytes",
      expected: typeof of === "number" ? "a byte, 0 to 255" : "1 byte or more",
    });
  }
  const trim = options.keepDelimiter ? TRIM_NOTHING : { head: 0, tail: bytes.length, carriageReturn: false };
  return bytes.length === 1 ? new EndsWithByte(bytes[0], trim) : new EndsWithBytes(bytes, trim);
}

/** Records that end after any byte for which `ends` says so; it is asked once about each of the 256. */
export function anyOf(ends: (byte: number) => boolean, options: DelimiterOptions = {}): Framer {
  const table = Uint8Array.from({ length: 256 }, (_, byte) => Number(ends(byte)));
  return new EndsWithAny(table, options.keepDelimiter ? TRIM_NOTHING : { head: 0, tail: 1, carriageReturn: false });
}

/**
 * Records of `length` bytes. A rest is an error of kind `frame_truncated`.
 *
 * @throws `invalid_option` unless `length` is a whole number, 1 or more.
 */
export function fixed(length: number): Framer {
  if (!Number.isSafeInteger(length) || length < 1) {
    throw new MillstreamError("invalid_option", { found: `a record of ${length} bytes`, expected: "1 byte or more" });
  }
  return new Fixed(length);
}

/** Options of `lengthPrefixed`. */
export interface LengthPrefixedOptions {
  /** How many bytes the length has: 4 unless told otherwise. */
  width?: 1 | 2 | 4 | 8;
  /** Which of them comes first: the highest unless told otherwise, as in most network protocols. */
  endian?: "big" | "little";
  /** What the length counts: the bytes behind it, or itself too. */
  counts?: "payload" | "itself";
}

/** Records behind their length. The length is no content. */
export function lengthPrefixed(options: LengthPrefixedOptions = {}): Framer {
  const { width = 4, endian = "big", counts = "payload" } = options;
  if (![1, 2, 4, 8].includes(width)) {
    throw new MillstreamError("invalid_option", { found: `a length of ${width} bytes`, expected: "1, 2, 4 or 8" });
  }
  return new LengthPrefixed(width, endian === "little", counts === "itself");
}

/** BSON documents that follow each other: a length that counts itself, and a zero byte at the end. All is content. */
export function documentFramer(): Framer {
  return new Bson();
}

/** The ends of all whole records, by the framer's own way or step by step. */
export function batchOf(framer: Framer, input: Uint8Array, eof: boolean, max: number, ends: Ends): boolean {
  if (framer.batch !== undefined) return framer.batch(input, eof, max, ends);
  let at = 0;
  let terminated = true;
  for (let count = 0; count < max && at < input.length; count++) {
    const step = framer.step(input.subarray(at), 0, eof);
    if (step.length === undefined) break;
    at += step.length;
    ends.push(at);
    terminated = step.terminated;
  }
  return terminated;
}

/** The step where no delimiter was found: at the end of the stream, all there is is a record. */
function unfinished(input: Uint8Array, scanned: number, eof: boolean): Step {
  return eof ? { length: input.length, terminated: false } : { scanned, need: 0 };
}

/** Adds what is behind the last delimiter as a record, if the stream ends there. */
function closeBatch(input: Uint8Array, at: number, eof: boolean, room: boolean, ends: Ends): boolean {
  const rest = eof && room && at < input.length;
  if (rest) ends.push(input.length);
  return !rest;
}

function truncated(found: number, expected: number | bigint): MillstreamError {
  const bytes = (count: number | bigint) => (Number(count) === 1 ? "1 byte" : `${count} bytes`);
  return new MillstreamError("frame_truncated", { found: bytes(found), expected: bytes(expected) });
}

class EndsWithByte implements Framer {
  constructor(
    readonly delimiter: number,
    readonly trim: Trim,
  ) {}

  step(input: Uint8Array, scanned: number, eof: boolean): Step {
    const at = platform.indexOf(input, this.delimiter, scanned);
    return at >= 0 ? { length: at + 1, terminated: true } : unfinished(input, input.length, eof);
  }

  batch(input: Uint8Array, eof: boolean, max: number, ends: Ends): boolean {
    const { delimiter } = this;
    const { indexOf } = platform;
    let at = 0;
    let count = 0;
    for (; count < max; count++) {
      const found = indexOf(input, delimiter, at);
      if (found < 0) break;
      at = found + 1;
      if (ends.length === ends.array.length) ends.push(at);
      else ends.array[ends.length++] = at;
    }
    return closeBatch(input, at, eof, count < max, ends);
  }
}

class EndsWithBytes implements Framer {
  constructor(
    readonly bytes: Uint8Array,
    readonly trim: Trim,
  ) {}

  step(input: Uint8Array, scanned: number, eof: boolean): Step {
    const at = this.#find(input, scanned);
    if (at >= 0) return { length: at + this.bytes.length, terminated: true };
    // The delimiter may have begun in the last bytes.
    return unfinished(input, Math.max(input.length - (this.bytes.length - 1), scanned, 0), eof);
  }

  batch(input: Uint8Array, eof: boolean, max: number, ends: Ends): boolean {
    let at = 0;
    let count = 0;
    for (; count < max; count++) {
      const found = this.#find(input, at);
      if (found < 0) break;
      at = found + this.bytes.length;
      ends.push(at);
    }
    return closeBatch(input, at, eof, count < max, ends);
  }

  #find(input: Uint8Array, start: number): number {
    const { bytes } = this;
    const last = input.length - bytes.length;
    for (let at = start; at <= last; at++) {
      at = platform.indexOf(input, bytes[0], at);
      if (at < 0 || at > last) return -1;
      let matched = 1;
      while (matched < bytes.length && input[at + matched] === bytes[matched]) matched++;
      if (matched === bytes.length) return at;
    }
    return -1;
  }
}

class EndsWithAny implements Framer {
  constructor(
    readonly table: Uint8Array,
    readonly trim: Trim,
  ) {}

  step(input: Uint8Array, scanned: number, eof: boolean): Step {
    for (let at = scanned; at < input.length; at++) {
      if (this.table[input[at]] === 1) return { length: at + 1, terminated: true };
    }
    return unfinished(input, input.length, eof);
  }
}

class Fixed implements Framer {
  readonly trim = TRIM_NOTHING;

  constructor(readonly length: number) {}

  step(input: Uint8Array, _scanned: number, eof: boolean): Step {
    if (input.length >= this.length) return { length: this.length, terminated: true };
    if (eof) throw truncated(input.length, this.length);
    return { scanned: input.length, need: this.length };
  }

  batch(input: Uint8Array, eof: boolean, max: number, ends: Ends): boolean {
    const { length } = this;
    let at = 0;
    for (let count = 0; count < max; count++) {
      if (at + length > input.length) {
        if (eof && at < input.length) throw truncated(input.length - at, length);
        break;
      }
      at += length;
      ends.push(at);
    }
    return true;
  }
}

class LengthPrefixed implements Framer {
  readonly trim: Trim;

  constructor(
    readonly width: 1 | 2 | 4 | 8,
    readonly little: boolean,
    readonly itself: boolean,
  ) {
    this.trim = { head: width, tail: 0, carriageReturn: false };
  }

  step(input: Uint8Array, _scanned: number, eof: boolean): Step {
    const { width } = this;
    if (input.length < width) {
      if (eof) throw truncated(input.length, width);
      // All of the prefix is still needed, so none of it may be dropped.
      return { scanned: 0, need: 0 };
    }
    const value = this.#value(input);
    if (this.itself && value < width) {
      const expected = `${width} or more, as it counts its own bytes`;
      throw new MillstreamError("length_invalid", { found: `the length ${value}`, expected });
    }
    // A length that no number can hold exactly is more than any input, so that its last digits do not matter.
    const total = this.itself ? Number(value) : Number(value) + width;
    if (total <= input.length) return { length: total, terminated: true };
    if (eof) throw truncated(input.length, this.itself ? value : BigInt(value) + BigInt(width));
    return { scanned: input.length, need: total };
  }

  #value(input: Uint8Array): number | bigint {
    const view = new DataView(input.buffer, input.byteOffset, this.width);
    switch (this.width) {
      case 1:
        return view.getUint8(0);
      case 2:
        return view.getUint16(0, this.little);
      case 4:
        return view.getUint32(0, this.little);
      case 8:
        return view.getBigUint64(0, this.little);
    }
  }
}

/** The smallest document: its length and its terminator. */
const LEAST_DOCUMENT = 5;

class Bson implements Framer {
  readonly trim = TRIM_NOTHING;

  step(input: Uint8Array, _scanned: number, eof: boolean): Step {
    if (input.length < 4) {
      if (eof) throw truncated(input.length, 4);
      return { scanned: 0, need: 0 };
    }
    const length = new DataView(input.buffer, input.byteOffset, 4).getInt32(0, true);
    if (length < LEAST_DOCUMENT) {
      const expected = "a document's length, 5 or more";
      throw new MillstreamError("length_invalid", { found: `the length ${length}`, expected });
    }
    if (length > input.length) {
      if (eof) throw truncated(input.length, length);
      return { scanned: input.length, need: length };
    }
    const last = input[length - 1];
    if (last !== 0) {
      const found = `byte 0x${last.toString(16).padStart(2, "0")} as the last of a document`;
      throw new MillstreamError("document_invalid", { found, expected: "a zero byte" });
    }
    return { length, terminated: true };
  }
}
