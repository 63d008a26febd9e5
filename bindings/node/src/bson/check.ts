/** Whether documents are right in every byte: types, lengths, terminators, text, depth. */

import { Batch } from "../batch.js";
import { MillstreamError } from "../error.js";
import { Cursor } from "./cursor.js";
import { locate } from "./path.js";
import { room } from "./room.js";

/** How many documents are right, and what is wrong with the next, its offset counted from the first byte. */
export interface Checked {
  readonly documents: number;
  readonly error?: unknown;
}

/** Options of `bson.check`. */
export interface CheckOptions {
  /** Whether the native part does it: if it is there, unless told otherwise. */
  native?: boolean;
}

/**
 * Looks at every byte of documents that follow each other: those of memory, or of a batch of a stream. Nothing is made of them.
 *
 * @returns how many there are
 * @throws The first that is wrong, with offset, record and path.
 */
export function check(input: Uint8Array | Batch, options: CheckOptions = {}): number {
  const isBatch = input instanceof Batch;
  if (!isBatch && !(input instanceof Uint8Array)) {
    const found = input === null ? "null" : typeof input;
    throw new MillstreamError("argument_invalid", { found, expected: "bytes or a batch" });
  }
  const bytes = isBatch ? input.bytes.subarray(input.offsets[0], input.offsets[input.length]) : input;
  const { documents, error } = checkerOf(options)(bytes);
  if (error === undefined) return documents;
  if (!(error instanceof MillstreamError)) throw error;
  const { kind, found, expected, path, offset = 0 } = error;
  const [before, first] = isBatch ? [input.offset + input.offsets[0], input.firstRecord] : [0, 0];
  throw new MillstreamError(kind, { found, expected, path, offset: before + offset, record: first + documents });
}

function checkerOf({ native }: CheckOptions): (bytes: Uint8Array) => Checked {
  const checker = native === false ? undefined : room.checker?.();
  if (checker === undefined && native === true) {
    const found = room.reason?.() ?? "a platform without one";
    throw new MillstreamError("unsupported", { found, expected: "the native part of this package" });
  }
  return checker ?? checkPlainly;
}

function checkPlainly(bytes: Uint8Array): Checked {
  const cursor = new Cursor(bytes);
  let documents = 0;
  try {
    for (; cursor.at < bytes.length; documents++) checkOne(cursor);
  } catch (error) {
    return { documents, error };
  }
  return { documents };
}

function checkOne(cursor: Cursor): void {
  const { at: start, end: outer } = cursor;
  const end = cursor.documentEnd();
  cursor.end = end;
  try {
    members(cursor);
  } catch (error) {
    throw locate(error, cursor.bytes, start, end);
  }
  cursor.end = outer;
}

/** Recursion is as deep as the cursor allows. */
function members(cursor: Cursor): void {
  const outer = cursor.enter();
  for (let type = cursor.next(); type !== 0; type = cursor.next()) {
    cursor.checkText(cursor.key, cursor.keyEnd);
    value(type, cursor);
  }
  cursor.leave(outer);
}

function value(type: number, cursor: Cursor): void {
  switch (type) {
    case 0x03:
    case 0x04:
      members(cursor);
      return;
    case 0x02:
    case 0x0d:
    case 0x0e:
      text(cursor);
      return;
    case 0x05:
      cursor.binary();
      return;
    case 0x08:
      cursor.bool();
      return;
    case 0x0b:
      cText(cursor);
      cText(cursor);
      return;
    case 0x0c:
      text(cursor);
      cursor.take(12);
      return;
    case 0x0f: {
      const { at, end } = cursor;
      const last = cursor.codeWithScope();
      cursor.at = at + 4;
      cursor.end = last;
      text(cursor);
      members(cursor);
      cursor.at = last;
      cursor.end = end;
      return;
    }
    default:
      cursor.skip(type);
  }
}

function text(cursor: Cursor): void {
  const start = cursor.string();
  cursor.checkText(start, cursor.at - 1);
}

function cText(cursor: Cursor): void {
  const start = cursor.cstring();
  cursor.checkText(start, cursor.at - 1);
}
