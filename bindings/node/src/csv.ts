/** Finds records of CSV and splits them into fields. `docs/csv.md` defines the format. */

import type { Batch, InvalidUtf8 } from "./batch.js";
import type { Core } from "./core.js";
import { MillstreamError, misuse } from "./error.js";
import { FIELD_COUNT_MISMATCH, INVALID_OPTION, UTF8_INVALID } from "./errors.js";
import { CoreFramer, type Framer, type LineOf, type LinesFramer } from "./frame.js";
import { type Check, checkOptions, FLAG, type Rule, type Rules, range } from "./options.js";
import { CSV_RAGGED, type CsvRagged } from "./settings.js";
import { platform } from "./text.js";
import type { Trim } from "./trim.js";

/** The dialect of CSV. A byte is a string of one ASCII character or a number. */
export interface CsvOptions {
  /** The byte between two fields: `","` by default. */
  delimiter?: string | number | undefined;
  /** The byte around fields that contain delimiters, line ends or quotes: `'"'` by default; `null` for none. */
  quote?: string | number | null | undefined;
  /** The byte that makes the next byte content: none by default (`null`). */
  escape?: string | number | null | undefined;
  /** Whether two quotes in a quoted field are one quote of its content: `true` by default. */
  doubledQuotes?: boolean | undefined;
  /** The byte that makes a line a comment if it is the first one: none by default (`null`). */
  comment?: string | number | null | undefined;
  /** The bytes that end a line: by default `"any"`, LF, CRLF and CR, also mixed. */
  lineEnd?: "any" | "lf" | "crlf" | "cr" | undefined;
  /** Whether a blank line is a record of one empty field: `false` by default, which skips it. */
  blankRecords?: boolean | undefined;
  /** Whether a quote in a field that does not begin with one is content: `false` by default, which makes it an error. */
  literalQuotes?: boolean | undefined;
  /** Whether a byte order mark of UTF-8 is skipped, and one of UTF-16 is an error: `true` by default. */
  detectMark?: boolean | undefined;
}

const LF = 10;
const CR = 13;

const CHARACTER: Check = {
  expected: "an ASCII character",
  accepts: (value) => typeof value === "string" && value.length === 1 && value < "\x80",
};
const NONE: Check = { expected: "null", accepts: (value) => value === null };
const BYTE: Rule = [CHARACTER, /* @__PURE__ */ range(0, 255)];
const BYTE_OR_NONE: Rule = [CHARACTER, /* @__PURE__ */ range(0, 255), NONE];

const CSV_RULES: Rules<CsvOptions> = {
  delimiter: BYTE,
  quote: BYTE_OR_NONE,
  escape: BYTE_OR_NONE,
  doubledQuotes: FLAG,
  comment: BYTE_OR_NONE,
  lineEnd: ["any", "lf", "crlf", "cr"],
  blankRecords: FLAG,
  literalQuotes: FLAG,
  detectMark: FLAG,
};

/** Records are those of CSV: RFC 4180 with any line end by default. Quotes are content.
 *
 * Blank lines and comments are records of this framer, but `Reader.rows` and `Reader.objects` skip them. A quote that the
 * dialect does not allow is an error of kind `csv_invalid`.
 *
 * @throws `invalid_option` if two options are the same byte, or one is a line end.
 */
export function csv(options: CsvOptions = {}): Framer {
  checkOptions("csv", options, [CSV_RULES]);
  return new CsvFramer(options);
}

/** A framer whose records have fields. */
export interface RowFramer extends Framer {
  /** Splits the records of a batch into fields. */
  split(batch: Batch, options: RowOptions): Rows;
  /** Returns the fields of a header as strings. */
  namesOf(row: readonly (string | Uint8Array)[]): string[];
}

/** The options of `Reader.rows` and `Reader.objects`. */
export interface RaggedOptions {
  /** What to do with a record that has another number of fields than the header, if that was read: by default an
   * `"error"`. With `"pad"` fields that are missing at its end are empty; a record with more fields is still an error. With
   * `"collect"`, which is only for `rows`, it keeps them. */
  ragged?: CsvRagged | undefined;
}

export const RAGGED_RULES: Rules<RaggedOptions> = { ragged: CSV_RAGGED };

/** Objects have names for the fields of the header only. */
export const RAGGED_OBJECT_RULES: Rules<RaggedOptions> = { ragged: ["error", "pad"] };

/** The names of the header, once it has been read. */
export interface Header {
  names?: string[];
}

export interface RowOptions {
  readonly isText: boolean;
  readonly invalidUtf8: InvalidUtf8;
  readonly header: Header;
  /** Whether the first record is the header if that has not been read, and the other ones become objects. */
  readonly asObjects: boolean;
  readonly ragged: CsvRagged | undefined;
}

/** The records of a batch as arrays or objects. */
export interface Rows {
  readonly items: unknown[];
  /** The index of each item's record in the batch, and the number of records. */
  readonly records: readonly number[];
  /** The error of the record after the items. */
  readonly error: MillstreamError | undefined;
}

class CsvFramer extends CoreFramer implements RowFramer, LinesFramer {
  /** The byte that ends the lines inside a record. */
  readonly #lineEnd: number;

  constructor(options: CsvOptions) {
    const dialect = dialectOf(options);
    super((core) => select(core, dialect), trimOf(options.lineEnd), 2);
    this.#lineEnd = options.lineEnd === "cr" ? CR : LF;
    // This checks the dialect.
    this.core();
  }

  split(batch: Batch, { isText, invalidUtf8, header, asObjects, ragged }: RowOptions): Rows {
    const { bytes, offsets, terminated } = batch;
    const core = this.core();
    core.put(bytes);
    core.words(core.call.offsets(offsets.length), offsets.length).set(offsets);
    const reply = core.call.rows(bytes.length, terminated, isText, invalidUtf8 === "error");
    const [isWhole, atPairs, pairsLength, atFields, fieldsLength, start, size] = core.words(reply, 7);
    const pairs = core.words(atPairs, pairsLength);
    const fields = core.words(atFields, fieldsLength);
    const contents = core.memory.subarray(start, start + size);
    const content = isText ? textOf(contents, fields[fieldsLength - 1]) : bytesOf(contents);
    const items: unknown[] = [];
    const records: number[] = [];
    let error: MillstreamError | undefined;
    for (let at = 0, field = 0; at < pairsLength; at += 2) {
      const index = pairs[at];
      const end = pairs[at + 1];
      const record = batch.firstRecord + index;
      if (isWhole === 0 && at + 2 === pairsLength) {
        error = new MillstreamError(UTF8_INVALID, { expected: "UTF-8", offset: batch.offset + end, record });
        break;
      }
      const row: (string | Uint8Array)[] = [];
      for (; field < end; field++) row.push(content(fields[field], fields[field + 1]));
      const { names } = header;
      if (asObjects && names === undefined) {
        header.names = this.namesOf(row);
        continue;
      }
      const width = names?.length ?? row.length;
      if (ragged === "pad" || ragged === "collect") while (row.length < width) row.push(isText ? "" : new Uint8Array());
      if (row.length !== width && ragged !== "collect") {
        const found = `${row.length} field${row.length === 1 ? "" : "s"}`;
        const expected = `${width}, as in the header`;
        error = new MillstreamError(FIELD_COUNT_MISMATCH, {
          found,
          expected,
          offset: batch.offset + offsets[index],
          record,
        });
        break;
      }
      items.push(asObjects && names !== undefined ? objectOf(names, row) : row);
      records.push(index);
    }
    records.push(batch.length);
    return { items, records, error };
  }

  namesOf(row: readonly (string | Uint8Array)[]): string[] {
    return row.map((name) => (typeof name === "string" ? name : platform.decode(name, 0, name.length)));
  }

  linesInBatch(count: number): number {
    return this.core().call.inner_lines(count) >>> 0;
  }

  linesInside(bytes: Uint8Array, offsets: Uint32Array): number {
    const [start, ...ends] = offsets;
    const { lines } = this.placeAfter(bytes.subarray(start, ends.at(-1)));
    return lines - ends.filter((end) => bytes[end - 1] === this.#lineEnd).length;
  }

  linesOf(bytes: Uint8Array, offsets: Uint32Array, first: number, line: number, inside: number): LineOf {
    if (inside === 0) return (record) => line + record - first;
    const copy = bytes.slice();
    return (record) => line + record - first + this.linesInside(copy, offsets.subarray(0, record - first + 1));
  }

  placeAfter(bytes: Uint8Array): { lines: number; column: number } {
    let lines = 0;
    let start = 0;
    for (let at = 0; at < bytes.length; at++) {
      if (bytes[at] !== this.#lineEnd) continue;
      lines++;
      start = at + 1;
    }
    return { lines, column: bytes.length - start + 1 };
  }
}

/** Returns a function that returns a part of the text, which has this many code units. */
function textOf(contents: Uint8Array, units: number): (start: number, end: number) => string {
  // If there are as many code units as bytes, all of them are ASCII.
  const decode = units === contents.length ? platform.decodeAscii : platform.decode;
  const text = decode(contents, 0, contents.length);
  return (start, end) => text.slice(start, end);
}

function bytesOf(contents: Uint8Array): (start: number, end: number) => Uint8Array {
  const copy = contents.slice();
  return (start, end) => copy.subarray(start, end);
}

function objectOf<T>(names: readonly string[], row: readonly T[]): { [name: string]: T } {
  const object: { [name: string]: T } = {};
  for (let at = 0; at < names.length; at++) {
    const name = names[at];
    const value = row[at];
    // An assignment would set the object's prototype.
    if (name !== "__proto__") object[name] = value;
    else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
  }
  return object;
}

/** Returns the dialect as the core parses it: each option as `name=value`, bytes as two hexadecimal digits. */
function dialectOf(options: CsvOptions): string {
  const texts: string[] = [];
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const name = option.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const hex = (byte: number) => byte.toString(16).padStart(2, "0");
    let text: string;
    if (typeof value === "boolean") text = value ? "on" : "off";
    else if (typeof value === "number") text = hex(value);
    else if (value === null) text = "none";
    else text = option === "lineEnd" ? value : hex(value.charCodeAt(0));
    texts.push(`${name}=${text}`);
  }
  return texts.join(" ");
}

function select(core: Core, dialect: string): void {
  if (core.call.csv(core.put(platform.encode(dialect)))) return;
  const { found, expected } = core.reply();
  throw misuse({ stream: "csv", found, expected }, INVALID_OPTION);
}

function trimOf(lineEnd: CsvOptions["lineEnd"] = "any"): Trim {
  return { head: 0, tail: lineEnd === "crlf" ? 2 : 1, carriageReturn: lineEnd === "any" };
}
