/**
 * Records as strings: many are cut out of one string, which is decoded once.
 *
 * To cut a string takes a third of the time of decoding it by itself, but needs to be told where. Offsets of bytes say it
 * where all bytes are ASCII, which is looked at by the block, since most text is; a block that is not is looked at again
 * in pieces, since few of them are to blame.
 */

import type { Trim } from "./batch.js";
import { platform } from "./text.js";

/** How many bytes are made into strings at once: longer blocks leave the processor's cache and cost two to five times as much. */
export const TEXT_BLOCK = 64 << 10;

/** How many bytes are looked at for themselves where a block is not ASCII. */
const PIECE = 2 << 10;

/** The first lines are split off, of which the engine knows how: until it has compiled a loop, that takes a quarter of the time. */
const SPLIT_FIRST = 1 << 17;

const LF = 10;
const CR = 13;

/** How many lines have been split off. */
let splits = 0;

/** Records in memory: record `i` of `first .. last` ends in front of `ends[i] + shift`, where the next one begins. */
export interface Span {
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
  readonly shift: number;
  readonly trim: Trim;
}

/**
 * Writes the contents of records `first .. last`, all terminated, to `texts` from `to` on. The first begins at `start`.
 */
export function cutTexts(span: Span, first: number, last: number, start: number, texts: string[], to: number): void {
  if (first >= last) return;
  const { bytes, ends, shift } = span;
  const end = ends[last - 1] + shift;
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
    const lines = linesOf(span, first, last, start);
    if (lines === undefined) decodeEach(span, first, last, start, texts, to);
    else for (let index = 0; index < lines.length; index++) texts[to + index] = lines[index];
    return;
  }
  let at = start;
  for (let index = first; index < last; ) {
    const next = lastWithin(ends, index, last, at - shift + PIECE);
    cutTexts(span, index, next, at, texts, to + index - first);
    at = ends[next - 1] + shift;
    index = next;
  }
}

const blank: string[] = [];

/** How many strings `blank` has at most. */
const MOST_BLANK = 16 << 10;

/**
 * An array for so many strings. One that was made by its length has holes for the engine for ever, and each stage pays for
 * looking at them; one that grows is copied again and again. So it is a copy of one that has grown once.
 */
export function arrayFor(length: number): string[] {
  if (length > MOST_BLANK) return new Array(length);
  while (blank.length < length) blank.push("");
  return blank.slice(0, length);
}

/** The first record behind `first` that ends behind `limit`, or `last`: at least one record is in front of it. */
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

function cut(
  block: string,
  { bytes, ends, shift, trim }: Span,
  first: number,
  last: number,
  start: number,
  texts: string[],
  to: number,
): void {
  const { head, tail, carriageReturn } = trim;
  // Into the block, as `ends` by this.
  const base = shift - start;
  let from = 0;
  for (let index = first; index < last; index++) {
    const next = ends[index] + base;
    let end = Math.max(next - tail, from);
    if (carriageReturn && end > from && bytes[start + end - 1] === CR) end--;
    texts[to++] = block.slice(Math.min(from + head, end), end);
    from = next;
  }
}

/** The records as lines, if that is what they are: decoded at once, and split. */
function linesOf({ bytes, ends, shift, trim }: Span, first: number, last: number, start: number): string[] | undefined {
  if (trim.head !== 0 || trim.tail !== 1) return undefined;
  for (let index = first; index < last; index++) if (bytes[ends[index] + shift - 1] !== LF) return undefined;
  const texts = platform.decode(bytes, start, ends[last - 1] + shift - 1).split("\n");
  // Every record ends with a line feed: if there is none besides, there are as many.
  if (texts.length !== last - first) return undefined;
  if (trim.carriageReturn) dropCarriageReturns(texts);
  return texts;
}

function dropCarriageReturns(texts: string[]): void {
  for (let index = 0; index < texts.length; index++) {
    const text = texts[index];
    if (text.charCodeAt(text.length - 1) === CR) texts[index] = text.slice(0, -1);
  }
}

function decodeEach(
  { bytes, ends, shift, trim }: Span,
  first: number,
  last: number,
  start: number,
  texts: string[],
  to: number,
): void {
  const { head, tail, carriageReturn } = trim;
  let from = start;
  for (let index = first; index < last; index++) {
    const next = ends[index] + shift;
    let end = Math.max(next - tail, from);
    if (carriageReturn && end > from && bytes[end - 1] === CR) end--;
    texts[to++] = platform.decode(bytes, Math.min(from + head, end), end);
    from = next;
  }
}

/** Whether lines whose ends are known are better cut out than split off. */
export function cutsPay(): boolean {
  return splits >= SPLIT_FIRST;
}

/** The lines of bytes that end with a line feed, whose places nobody knows: to split is faster than to find them first. */
export function splitLines(bytes: Uint8Array, start: number, end: number): string[] {
  const texts = split(bytes, start, end);
  splits += texts.length;
  if (platform.indexOf(bytes.subarray(start, end), CR, 0) >= 0) dropCarriageReturns(texts);
  return texts;
}

function split(bytes: Uint8Array, start: number, end: number): string[] {
  if (platform.isAscii === undefined) return platform.decode(bytes, start, end - 1).split("\n");
  if (platform.isAscii(bytes, start, end)) return platform.decodeAscii(bytes, start, end - 1).split("\n");
  const parts: string[][] = [];
  // From here on all is ASCII, and not split yet: much at once, since each call has its price.
  let clean = start;
  for (let at = start; at < end; ) {
    const next = endOfPiece(bytes, at, end);
    if (!platform.isAscii(bytes, at, next)) {
      if (clean < at) parts.push(platform.decodeAscii(bytes, clean, at - 1).split("\n"));
      parts.push(platform.decode(bytes, at, next - 1).split("\n"));
      clean = next;
    }
    at = next;
  }
  if (clean < end) parts.push(platform.decodeAscii(bytes, clean, end - 1).split("\n"));
  return parts.length === 1 ? parts[0] : parts[0].concat(...parts.slice(1));
}

/** Where the lines end that are looked at together: behind a line feed. */
function endOfPiece(bytes: Uint8Array, at: number, end: number): number {
  if (at + PIECE >= end) return end;
  const last = bytes.lastIndexOf(LF, at + PIECE - 1);
  return last >= at ? last + 1 : platform.indexOf(bytes, LF, at + PIECE) + 1;
}
