/**
 * Records as strings: many are cut out of one string, which is decoded once.
 *
 * Cutting a string takes a third of the time of decoding it separately, but its position must be known. Byte offsets
 * are enough if all bytes are ASCII, which is checked by block, since most text is; a block that is not is checked
 * again in pieces, since few of them contain other characters.
 */

import { type Platform, platform } from "./text.js";
import type { Trim } from "./trim.js";

/** How many bytes are made into strings at once: longer blocks leave the processor's cache and cost two to five times as much. */
export const TEXT_BLOCK = 64 << 10;

/** How many bytes are checked separately if a block is not ASCII. */
const PIECE = 2 << 10;

/** The first lines are split off with the engine's own function: until it has compiled a loop, that takes a quarter of the time. */
const SPLIT_FIRST = 1 << 17;

const LF = 10;
const CR = 13;

/** How many lines have been split off. */
let splits = 0;

/** Records in memory: record `i` of `first .. last` ends before `ends[i]`, where the next one begins. */
export interface Span {
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
  readonly trim: Trim;
}

/**
 * Writes the contents of records `first .. last`, all terminated, to `texts` from `to` on. The first begins at `start`.
 */
export function cutTexts(span: Span, first: number, last: number, start: number, texts: string[], to: number): void {
  if (first >= last) return;
  const { bytes, ends } = span;
  const end = ends[last - 1];
  if (platform.isAscii === undefined) {
    const block = platform.decode(bytes, start, end);
    // As many code units as bytes: each byte became one (two bytes never become two), so the offsets fit the string.
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

/** How many strings `blank` has at most. */
const MOST_BLANK = 16 << 10;

/**
 * An array for this many strings. One that was created with its length is permanently a holey array for the engine, and
 * each stage pays for checking it; one that grows is copied again and again. So it is a copy of one that has grown
 * once.
 */
export function arrayFor(length: number): string[] {
  if (length > MOST_BLANK) return new Array(length);
  while (blank.length < length) blank.push("");
  return blank.slice(0, length);
}

/** The first record after `first` that ends after `limit`, or `last`: at least one record is before it. */
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

/** The same as `cutTexts`, if the engine splits these records faster: the first of a process, if they are lines. */
export function splitFirst(span: Span, first: number, last: number, start: number): string[] | undefined {
  if (splits >= SPLIT_FIRST || first >= last) return undefined;
  const end = span.ends[last - 1];
  const isAscii = platform.isAscii?.(span.bytes, start, end) === true;
  const lines = linesOf(span, first, last, start, isAscii ? platform.decodeAscii : platform.decode);
  splits += lines?.length ?? 0;
  return lines;
}

/** The records as lines, if they are lines: decoded at once, and split. */
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
  // Every record ends with a line feed: if there is none besides, there are as many.
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
