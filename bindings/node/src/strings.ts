/** Converts records to strings: many are sliced from one string, which is decoded once.
 *
 * Slicing a string takes a third of the time of decoding it separately, but its position must be known. Byte offsets
 * are sufficient if all bytes are ASCII, as in most text. This is checked per block; a block that is not ASCII is
 * checked again in pieces, because usually only a few pieces contain other characters.
 */

import { type Platform, platform } from "./text.js";
import type { Trim } from "./trim.js";

/**
 * The number of bytes that are decoded at once: longer blocks do not fit in the processor's cache and cost two to
 * five times as much.
 */
export const TEXT_BLOCK = 64 << 10;

/** The size of the pieces that are checked separately if a block is not ASCII. */
const PIECE = 2 << 10;

/**
 * The number of lines that are split with the engine's own function first: until a loop is compiled, this takes a
 * quarter of the time.
 */
const SPLIT_FIRST = 1 << 17;

const LF = 10;
const CR = 13;

/** The number of lines that have been split. */
let splits = 0;

/** Records in memory: record `i` of `first .. last` ends before `ends[i]`, where the next one starts. */
export interface Span {
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
  readonly trim: Trim;
}

/** Writes the contents of records `first .. last`, all terminated, to `texts`, starting at `to`. The first record
 * starts at `start`.
 */
export function cutTexts(span: Span, first: number, last: number, start: number, texts: string[], to: number): void {
  if (first >= last) return;
  const { bytes, ends } = span;
  const end = ends[last - 1];
  if (platform.isAscii === undefined) {
    const block = platform.decode(bytes, start, end);
    // There are as many code units as bytes, so each byte became one (two bytes never become two), and the offsets fit
    // the string.
    if (block.length === end - start) cut(block, span, first, last, start, texts, to);
    else decodeEach(span, first, last, start, texts, to);
    return;
  }
  if (platform.isAscii(bytes, start, end)) {
    cut(platform.decodeAscii(bytes, start, end), span, first, last, start, texts, to);
    return;
  }
  if (end - start <= PIECE || last - first === 1) {
    const lines = linesOf(span, first, last, start, platform.decode);
    if (lines === undefined) decodeEach(span, first, last, start, texts, to);
    else for (let index = 0; index < lines.length; index++) texts[to + index] = lines[index];
    return;
  }
  let at = start;
  for (let index = first; index < last; ) {
    const next = lastWithin(ends, index, last, at + PIECE);
    cutTexts(span, index, next, at, texts, to + index - first);
    at = ends[next - 1];
    index = next;
  }
}

const blank: string[] = [];

/** The maximum number of strings in `blank`. */
const MOST_BLANK = 16 << 10;

/** Returns an array for this many strings. An array that is created with its length is permanently holey, which slows
 * down each stage; an array that grows is copied repeatedly. So this returns a copy of an array that has grown once.
 */
export function arrayFor(length: number): string[] {
  if (length > MOST_BLANK) return new Array(length);
  while (blank.length < length) blank.push("");
  return blank.slice(0, length);
}

/** Returns the first record after `first` that ends after `limit`, or `last`; at least one record is before it. */
export function lastWithin(ends: Uint32Array, first: number, last: number, limit: number): number {
  let low = first + 1;
  let high = last;
  if (ends[high - 1] <= limit) return high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

function cut(block: string, span: Span, first: number, last: number, start: number, texts: string[], to: number): void {
  const { bytes, ends, trim } = span;
  const { head, tail, carriageReturn } = trim;
  let from = 0;
  for (let index = first; index < last; index++) {
    const next = ends[index] - start;
    let end = Math.max(next - tail, from);
    if (carriageReturn && end > from && bytes[start + end - 1] === CR) end--;
    texts[to++] = block.slice(Math.min(from + head, end), end);
    from = next;
  }
}

/** Like `cutTexts`, if the engine splits these records faster, which it does for the first lines of a process. */
export function splitFirst(span: Span, first: number, last: number, start: number): string[] | undefined {
  if (splits >= SPLIT_FIRST || first >= last) return undefined;
  const end = span.ends[last - 1];
  const isAscii = platform.isAscii?.(span.bytes, start, end) === true;
  const lines = linesOf(span, first, last, start, isAscii ? platform.decodeAscii : platform.decode);
  splits += lines?.length ?? 0;
  return lines;
}

/** Decodes the records at once and splits them, if they are lines. */
function linesOf(
  { bytes, ends, trim }: Span,
  first: number,
  last: number,
  start: number,
  decode: Platform["decode"],
): string[] | undefined {
  if (trim.head !== 0 || trim.tail !== 1) return undefined;
  for (let index = first; index < last; index++) if (bytes[ends[index] - 1] !== LF) return undefined;
  const end = ends[last - 1] - 1;
  const lines = decode(bytes, start, end).split("\n");
  // Every record ends with a line feed; if there are no others, the numbers are equal.
  if (lines.length !== last - first) return undefined;
  if (trim.carriageReturn && platform.indexOf(bytes.subarray(start, end), CR, 0) >= 0) dropCarriageReturns(lines);
  return lines;
}

function dropCarriageReturns(lines: string[]): void {
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index];
    if (line.charCodeAt(line.length - 1) === CR) lines[index] = line.slice(0, -1);
  }
}

function decodeEach(
  { bytes, ends, trim }: Span,
  first: number,
  last: number,
  start: number,
  texts: string[],
  to: number,
): void {
  const { head, tail, carriageReturn } = trim;
  let from = start;
  for (let index = first; index < last; index++) {
    const next = ends[index];
    let end = Math.max(next - tail, from);
    if (carriageReturn && end > from && bytes[end - 1] === CR) end--;
    texts[to++] = platform.decode(bytes, Math.min(from + head, end), end);
    from = next;
  }
}
