/** Decodes BSON documents into JavaScript's own values.
 *
 * Every byte is checked, errors have a position, and a length is checked before it is used. Nothing in a document is
 * executed or looked up, and values share no memory with the bytes.
 */

import { MillstreamError, misuse } from "../error.js";
import { DOCUMENT_INVALID, DOCUMENT_TRUNCATED, INVALID_OPTION, type Kind, TOO_DEEP, UTF8_INVALID } from "../errors.js";
import { checkOptions, type Rules, range } from "../options.js";
import { decodeStrictly, platform } from "../text.js";
import { Decimal128 } from "./decimal.js";
import { knownKey } from "./keys.js";
import { pathAt } from "./path.js";
import {
  Binary,
  BsonSymbol,
  Code,
  DateTime,
  DbPointer,
  MaxKey,
  MinKey,
  ObjectId,
  RegularExpression,
  Timestamp,
} from "./values.js";

/** A document. Keys are in order, except that whole numbers come first; for duplicate keys the last value counts. */
export interface Document {
  [key: string]: unknown;
}

/** Options of `bson.decode` and `bson.decodeAll`. */
export interface DecodeOptions {
  /** The type of a 64-bit integer: by default a `number` if that is exact, otherwise a `bigint`. */
  int64?: "number" | "bigint" | undefined;
  /** The maximum nesting depth of documents, at most 1000: 200 by default. */
  depth?: number | undefined;
}

const MOST_DEPTH = 1000;

export const DECODE_RULES: Rules<DecodeOptions> = {
  int64: ["number", "bigint"],
  depth: /* @__PURE__ */ range(0, MOST_DEPTH),
};

/** The options are not checked for each record, because the check would cost as much as the call. */
const NO_OPTIONS: DecodeOptions = {};

/** The smallest document: its length and its terminator. */
const LEAST = 5;

/** The range of `Date`, in milliseconds since 1970. */
const LAST_DATE = 8_640_000_000_000_000;

/** Decodes one document.
 *
 * @throws `document_invalid`, `document_truncated`, `utf8_invalid`, `too_deep`, with the offset.
 */
export function decode(bytes: Uint8Array, options: DecodeOptions = NO_OPTIONS): Document {
  if (options !== NO_OPTIONS) checkOptions("bson.decode", options, [DECODE_RULES]);
  const decoder = new Decoder(bytes, options);
  const document = decoder.document(bytes.length, 0);
  if (decoder.at < bytes.length) {
    decoder.fail(DOCUMENT_INVALID, decoder.at, `${bytes.length - decoder.at} bytes after the document`, "its end");
  }
  return document;
}

/** Decodes consecutive documents, such as the bytes of a batch.
 *
 * @throws The errors of `decode`, with the record.
 */
export function decodeAll(bytes: Uint8Array, options: DecodeOptions = NO_OPTIONS): Document[] {
  if (options !== NO_OPTIONS) checkOptions("bson.decodeAll", options, [DECODE_RULES]);
  const decoder = new Decoder(bytes, options);
  const documents: Document[] = [];
  try {
    while (decoder.at < bytes.length) {
      decoder.start = decoder.at;
      documents.push(decoder.document(bytes.length, 0));
    }
  } catch (error) {
    throw error instanceof MillstreamError ? error.at({ record: documents.length }) : error;
  }
  return documents;
}

class Decoder {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #deepest: number;
  readonly #bigints: boolean;
  at = 0;
  /** The position of the outermost document. */
  start = 0;

  constructor(bytes: Uint8Array, { int64 = "number", depth = 200 }: DecodeOptions) {
    if (!(bytes instanceof Uint8Array)) {
      const found = bytes === null ? "null" : typeof bytes;
      throw misuse({ found, expected: "bytes" });
    }
    if (int64 !== "number" && int64 !== "bigint") {
      throw misuse({ found: String(int64), expected: '"number" or "bigint"' }, INVALID_OPTION);
    }
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#deepest = Math.min(depth, MOST_DEPTH);
    this.#bigints = int64 === "bigint";
  }

  document(limit: number, depth: number): Document {
    const document: Document = {};
    const last = this.#begin(limit, depth);
    while (this.at < last) {
      const type = this.#bytes[this.at++];
      const key = this.#key(last);
      const value = this.#value(type, last, depth);
      // An assignment would set the object's prototype.
      if (key !== "__proto__") document[key] = value;
      else Object.defineProperty(document, key, { value, writable: true, enumerable: true, configurable: true });
    }
    this.#end();
    return document;
  }

  /** Decodes the elements by position; their keys are ignored. */
  #array(limit: number, depth: number): unknown[] {
    const array: unknown[] = [];
    const last = this.#begin(limit, depth);
    while (this.at < last) {
      const type = this.#bytes[this.at++];
      this.at = this.#zero(last) + 1;
      array.push(this.#value(type, last, depth));
    }
    this.#end();
    return array;
  }

  /** Reads the length and returns the position of the document's last byte, before which its members end. */
  #begin(limit: number, depth: number): number {
    const { at } = this;
    if (depth > this.#deepest) this.fail(TOO_DEEP, at, `depth ${depth}`, `at most ${this.#deepest}`);
    this.#needs(4, limit);
    const length = this.#view.getInt32(at, true);
    if (length < LEAST) this.fail(DOCUMENT_INVALID, at, `the length ${length}`, "a document length of 5 or more");
    if (length > limit - at)
      this.fail(DOCUMENT_TRUNCATED, at, `${limit - at} bytes`, `${length}, as its length field states`);
    this.at += 4;
    return at + length - 1;
  }

  #end(): void {
    const byte = this.#bytes[this.at];
    if (byte !== 0) this.fail(DOCUMENT_INVALID, this.at, `the byte ${byte}`, "a zero byte at the end of the document");
    this.at++;
  }

  #value(type: number, end: number, depth: number): unknown {
    const at = this.at;
    switch (type) {
      case 0x01:
        this.#take(8, end);
        return this.#view.getFloat64(at, true);
      case 0x02:
        return this.#string(end);
      case 0x03:
        return this.document(end, depth + 1);
      case 0x04:
        return this.#array(end, depth + 1);
      case 0x05:
        return this.#binary(end);
      case 0x06:
        return undefined;
      case 0x07:
        return new ObjectId(this.#copy(12, end));
      case 0x08:
        return this.#boolean(end);
      case 0x09:
        return this.#date(end);
      case 0x0a:
        return null;
      case 0x0b:
        return new RegularExpression(this.#text(end), this.#text(end));
      case 0x0c:
        return new DbPointer(this.#string(end), new ObjectId(this.#copy(12, end)));
      case 0x0d:
        return new Code(this.#string(end));
      case 0x0e:
        return new BsonSymbol(this.#string(end));
      case 0x0f:
        return this.#codeWithScope(end, depth);
      case 0x10:
        this.#take(4, end);
        return this.#view.getInt32(at, true);
      case 0x11:
        this.#take(8, end);
        return new Timestamp(this.#view.getUint32(at + 4, true), this.#view.getUint32(at, true));
      case 0x12:
        return this.#long(end);
      case 0x13:
        return new Decimal128(this.#copy(16, end));
      case 0xff:
        return new MinKey();
      case 0x7f:
        return new MaxKey();
      default:
        return this.fail(DOCUMENT_INVALID, at, `type 0x${type.toString(16).padStart(2, "0")}`, "a type of BSON");
    }
  }

  #long(end: number): number | bigint {
    const { at } = this;
    this.#take(8, end);
    const high = this.#view.getInt32(at + 4, true);
    const number = high * 2 ** 32 + this.#view.getUint32(at, true);
    return this.#bigints || !Number.isSafeInteger(number) ? this.#view.getBigInt64(at, true) : number;
  }

  #date(end: number): Date | DateTime {
    const { at } = this;
    this.#take(8, end);
    const number = this.#view.getInt32(at + 4, true) * 2 ** 32 + this.#view.getUint32(at, true);
    return Math.abs(number) <= LAST_DATE ? new Date(number) : new DateTime(this.#view.getBigInt64(at, true));
  }

  #boolean(end: number): boolean {
    const { at } = this;
    this.#take(1, end);
    const byte = this.#bytes[at];
    if (byte > 1) this.fail(DOCUMENT_INVALID, at, `the byte ${byte}`, "0 or 1, for false or true");
    return byte === 1;
  }

  #binary(end: number): Uint8Array | Binary {
    const { at } = this;
    const length = this.#length(0, end);
    this.#needs(1 + length, end);
    const subtype = this.#bytes[this.at++];
    if (subtype === 0) return this.#copy(length, end);
    if (subtype !== 2) return new Binary(subtype, this.#copy(length, end));
    // The old binary subtype contains its length twice.
    if (length < 4) this.fail(DOCUMENT_INVALID, at, `the length ${length}`, "4 or more, for the length inside");
    const inner = this.#length(0, end);
    if (inner !== length - 4) this.fail(DOCUMENT_INVALID, at, `the length ${inner} inside`, `${length - 4}`);
    return new Binary(subtype, this.#copy(inner, end));
  }

  #codeWithScope(end: number, depth: number): Code {
    const { at } = this;
    this.#needs(4, end);
    const length = this.#view.getInt32(at, true);
    if (length < 0) this.fail(DOCUMENT_INVALID, at, `the length ${length}`, "0 or more");
    if (length > end - at)
      this.fail(DOCUMENT_TRUNCATED, at, `${end - at} bytes`, `${length}, as its length field states`);
    this.at += 4;
    const code = this.#string(at + length);
    const scope = this.document(at + length, depth + 1);
    if (this.at !== at + length) this.fail(DOCUMENT_INVALID, at, `the length ${length}`, `${this.at - at}`);
    return new Code(code, scope);
  }

  /** Reads a string with a length that includes the zero byte at its end. */
  #string(end: number): string {
    const length = this.#length(1, end);
    const { at } = this;
    this.#take(length, end);
    const last = at + length - 1;
    if (this.#bytes[last] !== 0) {
      this.fail(DOCUMENT_INVALID, last, `the byte ${this.#bytes[last]}`, "a zero byte at the end of the string");
    }
    return this.#decode(at, last);
  }

  /** Reads a string up to a zero byte. */
  #text(end: number): string {
    const { at } = this;
    const zero = this.#zero(end);
    this.at = zero + 1;
    return this.#decode(at, zero);
  }

  #key(end: number): string {
    const { at } = this;
    const zero = this.#zero(end);
    this.at = zero + 1;
    return knownKey(this.#bytes, at, zero) ?? this.#decode(at, zero);
  }

  #zero(end: number): number {
    const bytes = this.#bytes;
    for (let at = this.at; at < end; at++) if (bytes[at] === 0) return at;
    return this.fail(DOCUMENT_INVALID, this.at, "a key or text without an end", "a zero byte");
  }

  #decode(start: number, end: number): string {
    const text = platform.decode(this.#bytes, start, end);
    // U+FFFD is the only trace of invalid data, but valid data can contain it too.
    if (text.includes("\ufffd") && decodeStrictly(this.#bytes.subarray(start, end)) === undefined) {
      this.fail(UTF8_INVALID, start, undefined, "UTF-8");
    }
    return text;
  }

  #length(least: number, end: number): number {
    const { at } = this;
    this.#take(4, end);
    const length = this.#view.getInt32(at, true);
    if (length < least) this.fail(DOCUMENT_INVALID, at, `the length ${length}`, `${least} or more`);
    return length;
  }

  #copy(length: number, end: number): Uint8Array {
    const { at } = this;
    this.#take(length, end);
    return new Uint8Array(this.#bytes.subarray(at, at + length));
  }

  #take(length: number, end: number): void {
    this.#needs(length, end);
    this.at += length;
  }

  #needs(length: number, end: number): void {
    const left = end - this.at;
    if (length > left) this.fail(DOCUMENT_TRUNCATED, this.at, `${left} bytes`, `${length} bytes`);
  }

  fail(kind: Kind, offset: number, found: string | undefined, expected: string): never {
    const path = pathAt(this.#bytes.subarray(this.start), offset - this.start);
    throw new MillstreamError(kind, { offset, found, expected, path });
  }
}
