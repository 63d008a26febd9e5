/** A place in a document, and the steps from there: a twin of the core's cursor, whose errors are these. */

import { MillstreamError } from "../error.js";
import type { ErrorKind } from "../errors.js";

/** The types of BSON: the byte that announces each, with MongoDB's name. */
export const TYPES: { readonly [byte: number]: string | undefined } = {
  1: "double",
  2: "string",
  3: "object",
  4: "array",
  5: "binData",
  6: "undefined",
  7: "objectId",
  8: "bool",
  9: "date",
  10: "null",
  11: "regex",
  12: "dbPointer",
  13: "javascript",
  14: "symbol",
  15: "javascriptWithScope",
  16: "int",
  17: "timestamp",
  18: "long",
  19: "decimal",
  127: "maxKey",
  255: "minKey",
};

/** How many documents and arrays may be open at once. */
const MOST_DEPTH = 200;

/** How many bytes a payload has, where that is always the same; -1 where it is not. */
export const SIZES = new Int8Array(256).fill(-1);
for (const [type, size] of [
  [0x01, 8],
  [0x06, 0],
  [0x07, 12],
  [0x08, 1],
  [0x09, 8],
  [0x0a, 0],
  [0x10, 4],
  [0x11, 8],
  [0x12, 8],
  [0x13, 16],
  [0x7f, 0],
  [0xff, 0],
]) {
  SIZES[type] = size;
}

export function bytesText(count: number): string {
  return count === 1 ? "1 byte" : `${count} bytes`;
}

export const byteText = (byte: number) => `0x${byte.toString(16).padStart(2, "0")}`;

export class Cursor {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  at = 0;
  /** Where the current document ends, its terminator left out. */
  end: number;
  /** How many more documents may be entered. */
  depth = MOST_DEPTH;
  /** The key that `next` has read. */
  key = 0;
  keyEnd = 0;
  /** The subtype that `binary` has read. */
  subtype = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.end = bytes.length;
  }

  /** Goes into the document that begins here, and returns what `leave` needs. */
  enter(): number {
    const end = this.documentEnd();
    if (this.depth === 0) this.#tooDeep();
    this.depth--;
    const outer = this.end;
    this.end = end - 1;
    this.at += 4;
    return outer;
  }

  /** Leaves it, wherever in it the cursor is. */
  leave(outer: number): void {
    this.at = this.end + 1;
    this.end = outer;
    this.depth++;
  }

  /** Where the document that begins here ends, its terminator included. */
  documentEnd(): number {
    const { at } = this;
    const left = this.end - at;
    if (left < 4) this.#truncated(4);
    const length = this.view.getInt32(at, true);
    if (length < 5 || length > left) this.#badLength(length, 5);
    const end = at + length;
    if (this.bytes[end - 1] !== 0) this.#noTerminator(end - 1);
    return end;
  }

  /** The next element's type, its key in `key`; 0 at the end of the document. */
  next(): number {
    if (this.at >= this.end) return 0;
    const type = this.bytes[this.at];
    if (TYPES[type] === undefined) this.#badType(type);
    this.key = ++this.at;
    this.keyEnd = this.#nul();
    this.at = this.keyEnd + 1;
    return type;
  }

  /** The next element's type, if these are its key and its NUL; otherwise 0, and it stays where it is. */
  nextIf(key: Uint8Array): number {
    const { at, bytes } = this;
    const start = at + 1;
    if (start + key.length > this.end) return 0;
    for (let i = 0; i < key.length; i++) if (bytes[start + i] !== key[i]) return 0;
    const type = bytes[at];
    if (TYPES[type] === undefined) return 0;
    this.at = start + key.length;
    return type;
  }

  /** Passes a payload of this type by its lengths alone. */
  skip(type: number): void {
    const size = SIZES[type];
    if (size >= 0) {
      this.take(size);
      return;
    }
    switch (type) {
      case 0x03:
      case 0x04:
        this.at = this.documentEnd();
        return;
      case 0x05:
        this.#binaryBytes();
        return;
      case 0x0b:
        this.cstring();
        this.cstring();
        return;
      case 0x0c:
        this.string();
        this.take(12);
        return;
      case 0x0f:
        this.codeWithScope();
        return;
      default:
        this.string();
    }
  }

  /** So many bytes: where they begin. */
  take(count: number): number {
    const { at } = this;
    if (this.end - at < count) this.#truncated(count);
    this.at = at + count;
    return at;
  }

  bool(): boolean {
    const at = this.take(1);
    const byte = this.bytes[at];
    if (byte > 1) this.fail("document_invalid", at, `${byteText(byte)} for a boolean`, "0 or 1");
    return byte === 1;
  }

  /** A string's bytes, unchecked: they begin where this says, and end in front of the byte before `at`. */
  string(): number {
    const { at } = this;
    const left = this.end - at;
    if (left < 4) this.#truncated(4);
    const length = this.view.getInt32(at, true);
    if (length < 1 || length > left - 4) this.#badLength(length, 1);
    const last = at + 3 + length;
    if (this.bytes[last] !== 0) this.#noTerminator(last);
    this.at = last + 1;
    return at + 4;
  }

  /** Bytes: where they begin; they end at `at`. Their subtype is in `subtype`. */
  binary(): number {
    const start = this.at;
    const at = this.#binaryBytes();
    if (this.subtype !== 2) return at;
    // The old kind, which has its length twice.
    const length = this.at - at;
    if (length >= 4 && this.view.getInt32(at, true) === length - 4) return at + 4;
    const found =
      length >= 4
        ? `the inner length ${this.view.getInt32(at, true)} of ${bytesText(length)}`
        : `${bytesText(length)} without an inner length`;
    const expected = "binary subtype 2: an inner length that is 4 less than the outer one";
    return this.fail("document_invalid", start + 5, found, expected);
  }

  /** Bytes up to a NUL: where they begin; they end in front of the byte before `at`. */
  cstring(): number {
    const { at } = this;
    this.at = this.#nul() + 1;
    return at;
  }

  /** Passes code with its scope and returns where it ends; both begin 4 bytes behind where the cursor was. */
  codeWithScope(): number {
    const { at, end } = this;
    if (end - at < 4) this.#truncated(4);
    const length = this.view.getInt32(at, true);
    if (length < 14 || length > end - at) this.#badLength(length, 14);
    this.end = at + length;
    this.at = at + 4;
    try {
      this.string();
      const filled = this.documentEnd();
      if (filled !== at + length) {
        const found = `${length} bytes for code and scope, which take ${filled - at}`;
        this.fail("document_invalid", at, found, "a length that counts exactly both");
      }
    } finally {
      this.end = end;
    }
    this.at = at + length;
    return this.at;
  }

  /** Looks at text that is UTF-8, or should be. */
  checkText(start: number, end: number): void {
    const bad = invalidAt(this.bytes, start, end);
    if (bad < end) this.fail("utf8_invalid", bad, byteText(this.bytes[bad]), "UTF-8");
  }

  #binaryBytes(): number {
    const { at } = this;
    const left = this.end - at;
    if (left < 5) this.#truncated(5);
    const length = this.view.getInt32(at, true);
    if (length < 0 || length > left - 5) this.#badLength(length, 0);
    this.subtype = this.bytes[at + 4];
    this.at = at + 5 + length;
    return at + 5;
  }

  #nul(): number {
    const { bytes, end } = this;
    for (let at = this.at; at < end; at++) if (bytes[at] === 0) return at;
    return this.fail(
      "document_invalid",
      this.at,
      "a key or pattern without an end",
      "a zero byte before the document's end",
    );
  }

  #truncated(need: number): never {
    return this.fail("document_truncated", this.at, bytesText(this.end - this.at), bytesText(need));
  }

  #badLength(length: number, least: number): never {
    const found = `the length ${length} with ${bytesText(this.end - this.at)} left`;
    const kind = length < least ? "document_invalid" : "document_truncated";
    return this.fail(kind, this.at, found, `a length of ${least} or more that fits in what is left`);
  }

  #noTerminator(at: number): never {
    const expected = "a zero byte where the length says that it ends";
    return this.fail("document_invalid", at, `byte ${byteText(this.bytes[at])}`, expected);
  }

  #badType(byte: number): never {
    const left = bytesText(this.end - this.at);
    const found = byte === 0 ? `a zero byte with ${left} of the document left` : byteText(byte);
    const expected = "the type of an element, or the end where the document's length says";
    return this.fail("document_invalid", this.at, found, expected);
  }

  #tooDeep(): never {
    return this.fail(
      "too_deep",
      this.at,
      `more than ${MOST_DEPTH} documents and arrays inside each other`,
      `at most ${MOST_DEPTH}`,
    );
  }

  /** The error of a value of another type than was asked for. */
  mismatch(type: number, expected: string): never {
    return this.fail("shape_mismatch", this.at, `a value of type ${TYPES[type]}`, expected);
  }

  fail(kind: ErrorKind, offset: number, found: string, expected: string): never {
    throw new MillstreamError(kind, { offset, found, expected });
  }
}

/** Where the first bytes begin that are no UTF-8; `end` where all are. */
export function invalidAt(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; ) {
    const byte = bytes[at];
    if (byte < 0x80) {
      at++;
      continue;
    }
    if (byte < 0xc2 || byte > 0xf4) return at;
    const length = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    if (at + length > end) return at;
    // What would be written shorter, surrogates, and what is behind the last code point.
    const second = bytes[at + 1];
    const least = byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80;
    const most = byte === 0xed ? 0x9f : byte === 0xf4 ? 0x8f : 0xbf;
    if (second < least || second > most) return at;
    for (let i = 2; i < length; i++) if ((bytes[at + i] & 0xc0) !== 0x80) return at;
    at += length;
  }
  return end;
}
