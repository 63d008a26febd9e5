/** Finds records in bytes.
 *
 * A `Framer` finds where the records in a block of bytes end. It does no input or output and keeps no state between
 * calls: the reader does the I/O, and the framer can change between two records.
 *
 * You can write your own framer: an object with `trim` and `step`.
 */

import { type Core, core, errorOf } from "./core.js";
import { misuse } from "./error.js";
import { INVALID_OPTION } from "./errors.js";
import { checkOption, checkOptions, FLAG, FUNCTION, type Rule, type Rules, range, TEXT_OR_BYTES } from "./options.js";
import { ENDIAN, type Endian, PREFIX_COUNTS, type PrefixCounts } from "./settings.js";
import { platform } from "./text.js";
import { TRIM_NOTHING, type Trim } from "./trim.js";

/** The result of a framer for some bytes. */
export type Step =
  /** `input[0 .. length]` is a record, delimiter or prefix included; at least 1. */
  | { readonly length: number; readonly terminated: boolean }
  /** No complete record is available yet. The first `scanned` bytes need not be scanned again, and `need` is the
   * record's full length if known, otherwise 0. `state` is the framer's own state after the scanned bytes, such as
   * "inside quotes": 0 by default.
   */
  | {
      readonly length?: undefined;
      readonly scanned: number;
      readonly need: number;
      readonly state?: number | undefined;
    };

/** Finds records in bytes. */
export interface Framer {
  /** The part of a record that is not its content. */
  readonly trim: Trim;

  /** Finds the record at the front of `input`, which is not empty.
   *
   * `scanned` and `state` are the result of an earlier step for the same record. If the reader skips the record, it drops
   * the scanned bytes; then `scanned` is 0 and `state` is still theirs. `eof` means that no bytes follow; then `step`
   * returns a record or throws a `MillstreamError`, whose `offset` is counted from the front of `input`.
   */
  step(input: Uint8Array, scanned: number, eof: boolean, state?: number): Step;

  /** Adds the ends of at most `max` complete records at the front of `input` to `ends`. Returns whether the last one is
   * terminated. A thrown error refers to the first record that is not in `ends`.
   *
   * Without this method, `step` is called for each record.
   */
  batch?(input: Uint8Array, eof: boolean, max: number, ends: Ends): boolean;

  /**
   * The byte that ends every record and does not occur within records, if there is one. Readers may use it to find
   * the ends.
   */
  readonly delimiter?: number | undefined;

  /** Whether each record is one line, so that errors name the line. A framer whose `delimiter` is a line feed finds lines. */
  readonly findsLines?: boolean | undefined;
}

/** Returns the line of the record with this number. */
export type LineOf = (record: number) => number;

/** A framer whose records may be several lines.
 *
 * @internal
 */
export interface LinesFramer extends Framer {
  /** Returns the number of line ends inside the first `count` records of the last batch. */
  linesInBatch(count: number): number;
  /** Returns the number of line ends inside the records at these offsets. */
  linesInside(bytes: Uint8Array, offsets: Uint32Array): number;
  /** Returns a function that returns the line of a record at these offsets. The first of them has this number and line, and
   * there are this many line ends inside all of them. It is valid when the bytes are not.
   */
  linesOf(bytes: Uint8Array, offsets: Uint32Array, first: number, line: number, inside: number): LineOf;
  /** Returns the number of line ends in the bytes, and the column after them in the last line. */
  placeAfter(bytes: Uint8Array): { lines: number; column: number };
}

/** A growable list of offsets. */
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

  /** Adds all of these offsets.
   *
   * @internal
   */
  append(more: Uint32Array): void {
    const length = this.length + more.length;
    if (length > this.array.length) {
      const longer = new Uint32Array(Math.max(length, this.array.length * 2));
      longer.set(this.array);
      this.array = longer;
    }
    this.array.set(more, this.length);
    this.length = length;
  }
}

/** Options of framers whose records end with a delimiter. */
export interface DelimiterOptions {
  /** Whether the delimiter is part of the record. */
  keepDelimiter?: boolean | undefined;
}

export const DELIMITER_RULES: Rules<DelimiterOptions> = { keepDelimiter: FLAG };

/** The rule for framers, which users can write. */
export const FRAMER: Rule = {
  expected: "a framer: an object with trim and step",
  accepts: (value) =>
    typeof value === "object" && value !== null && typeof value.step === "function" && "trim" in value,
};

/** Records are lines. LF ends them; LF and a CR before it are not content, except with `keepDelimiter`.
 *
 * A last line without LF is a line; a CR at its end is content.
 */
export function lineFramer(options: DelimiterOptions = {}): Framer {
  checkOptions("lineFramer", options, [DELIMITER_RULES]);
  const trim = options.keepDelimiter ? TRIM_NOTHING : { head: 0, tail: 1, carriageReturn: true };
  return endsWith(Uint8Array.of(10), trim);
}

/** Records end with a delimiter: a byte, some bytes, or a string, which is encoded as UTF-8.
 *
 * A last record without a delimiter is delivered too. Matches do not overlap.
 *
 * @throws `invalid_option` for an empty delimiter.
 */
export function delimiter(of: number | Uint8Array | string, options: DelimiterOptions = {}): Framer {
  checkOption("delimiter", "of", of ?? null, [TEXT_OR_BYTES, range(0, 255)]);
  checkOptions("delimiter", options, [DELIMITER_RULES]);
  const bytes =
    typeof of === "number" ? Uint8Array.of(of) : typeof of === "string" ? platform.encode(of) : new Uint8Array(of);
  if (bytes.length === 0) {
    throw misuse({ found: "a delimiter of 0 bytes", expected: "1 byte or more" }, INVALID_OPTION);
  }
  const trim = options.keepDelimiter ? TRIM_NOTHING : { head: 0, tail: bytes.length, carriageReturn: false };
  return endsWith(bytes, trim);
}

function endsWith(bytes: Uint8Array, trim: Trim): Framer {
  const only = bytes.length === 1 ? bytes[0] : undefined;
  return new CoreFramer((core) => core.call.delimiter(core.put(bytes)), trim, bytes.length, only);
}

/** Records end after any byte for which `ends` returns true; it is called once for each of the 256 bytes. */
export function anyOf(ends: (byte: number) => boolean, options: DelimiterOptions = {}): Framer {
  checkOption("anyOf", "ends", ends ?? null, FUNCTION);
  checkOptions("anyOf", options, [DELIMITER_RULES]);
  const table = Uint8Array.from({ length: 256 }, (_, byte) => Number(ends(byte)));
  const select = (core: Core) => {
    core.put(table);
    core.call.any_of();
  };
  return new CoreFramer(select, options.keepDelimiter ? TRIM_NOTHING : { head: 0, tail: 1, carriageReturn: false }, 1);
}

/** Records have `length` bytes. An incomplete last record is an error of kind `frame_truncated`.
 *
 * @throws `invalid_option` unless `length` is a whole number, 1 or more and less than 2³².
 */
export function fixed(length: number): Framer {
  if (!Number.isSafeInteger(length) || length < 1 || length > MOST_FIXED) {
    const expected = length < 1 ? "1 byte or more" : "less than 4 GiB";
    throw misuse({ found: `a record of ${length} bytes`, expected }, INVALID_OPTION);
  }
  return new CoreFramer((core) => core.call.fixed(length), TRIM_NOTHING, 0);
}

/** The length of the longest record whose end can be stored as an offset. */
const MOST_FIXED = 2 ** 32 - 1;

/** Options of `lengthPrefixed`. */
export interface LengthPrefixedOptions {
  /** The number of bytes of the length: 4 by default. */
  width?: 1 | 2 | 4 | 8 | undefined;
  /** The byte order: by default `"little"`, the lowest byte first. Most network protocols use `"big"`. */
  endian?: Endian | undefined;
  /** Whether the length counts only the bytes after it, or also its own bytes. */
  counts?: PrefixCounts | undefined;
}

const PREFIX_RULES: Rules<LengthPrefixedOptions> = {
  width: { expected: "1, 2, 4 or 8", accepts: (value) => [1, 2, 4, 8].includes(value) },
  endian: ENDIAN,
  counts: PREFIX_COUNTS,
};

/** Records are preceded by their length. The length is not content. */
export function lengthPrefixed(options: LengthPrefixedOptions = {}): Framer {
  checkOptions("lengthPrefixed", options, [PREFIX_RULES]);
  const { width = 4, endian = "little", counts = "payload" } = options;
  const select = (core: Core) => core.call.length_prefixed(width, endian === "big", counts === "itself");
  return new CoreFramer(select, { head: width, tail: 0, carriageReturn: false }, 0);
}

/** Records are BSON documents: a length that counts itself, and a zero byte at the end. All bytes are content. */
export function documentFramer(): Framer {
  return new CoreFramer((core) => core.call.documents(), TRIM_NOTHING, 0);
}

/** Finds the ends of all complete records, with the framer's own method or step by step. */
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

const LF = 10;

/** The number of bytes that one call examines if the end of a record can be anywhere. */
const WINDOW = 256 << 10;

/** A number of bytes that is sufficient for every length prefix. */
const HEAD = 8;

/** A framer of the core. It examines a copy of the bytes.
 *
 * @internal
 */
export class CoreFramer implements Framer {
  constructor(
    /** Selects this framer in the core. */
    readonly select: (core: Core) => void,
    readonly trim: Trim,
    /** The maximum size of a delimiter: 0 if records have a length. */
    readonly tail: number,
    readonly delimiter?: number,
    readonly findsLines = delimiter === LF,
  ) {}

  step(input: Uint8Array, scanned: number, eof: boolean, state = 0): Step {
    const core = this.core();
    // A length is at the front; the end of other records is after the scanned bytes.
    let start = this.tail > 0 ? scanned : 0;
    let end = start + (this.tail > 0 ? WINDOW + this.tail : HEAD);
    for (;;) {
      const isAll = end >= input.length;
      const found = core.call.step(core.put(input.subarray(start, end)), eof && isAll, 0, state);
      if (found === 3) {
        // Its error may refer to the bytes before these.
        if (start > 0) core.call.step(core.put(input), eof, start, state);
        throw errorOf(core.reply());
      }
      const length = core.call.step_length();
      if (found > 0) return { length: start + length, terminated: found === 2 };
      const passed = core.call.step_scanned() >>> 0;
      state = core.call.step_state();
      if (isAll || (length > input.length && !eof)) {
        return { scanned: length > 0 ? input.length : start + passed, need: length, state };
      }
      if (length > 0) {
        end = length;
      } else {
        start += passed;
        end = start + WINDOW + this.tail;
      }
    }
  }

  batch(input: Uint8Array, eof: boolean, max: number, ends: Ends): boolean {
    const core = this.core();
    const found = core.call.batch(core.put(input), eof, Math.min(max, 0xffffffff));
    ends.append(core.words(core.call.ends(), found >>> 1));
    return (found & 1) === 1;
  }

  /** Returns the core, in which this framer is selected. */
  protected core(): Core {
    const current = core();
    if (current.framer !== this) {
      this.select(current);
      current.framer = this;
    }
    return current;
  }
}
