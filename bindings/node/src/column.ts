/** A number in one column of a line. */

import { MillstreamError, misuse } from "./error.js";
import { NUMBER_INVALID, NUMBER_OVERFLOW, VALUE_MISSING } from "./errors.js";
import { show } from "./options.js";
import { platform } from "./text.js";

const LF = 10;
const CR = 13;

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const SPECIAL = /^([+-]?)(inf|infinity|nan)$/i;
const WORD = /[^\t-\r ]+/g;

/** One character for each byte, so that positions in the text are those of the bytes. */
const BYTES = /* @__PURE__ */ new TextDecoder("latin1");

/** Returns the number in one column of a line; the first column is 0. The content of the other columns does not matter.
 *
 * Columns are separated by any amount of white space, or by exactly one character: with `","`, the second column of
 * `a,,b` is empty, which is not a number. A number is a decimal number with an optional exponent, `inf` or `nan`. Unlike
 * `Number`, it accepts no empty text, no `0x10` and no blanks, and does not turn digits into `Infinity`. Quotes have no
 * meaning: for CSV with quotes use the framer `csv()`.
 *
 * An error has the column of the number in the line, `column`; in a stage of a pipeline, it is also that of the stage's
 * error, which has the line.
 *
 * ```js
 * column("ann,31,1.75", 2, ","); // 1.75
 * ```
 *
 * @throws `number_invalid`, `number_overflow`, and `value_missing` for a line with too few columns
 */
export function column(line: string | Uint8Array, index: number, separator?: string): number {
  const isText = typeof line === "string";
  if (!isText && !(line instanceof Uint8Array)) throw refused(line, "a line: a string or bytes");
  if (!Number.isSafeInteger(index) || index < 0) throw refused(index, "the index of a column: 0 for the first");
  if (separator !== undefined && !/^[\0-\x7f]$/.test(separator)) {
    throw refused(separator, "a separator of one ASCII character, or none for white space");
  }
  const text = isText ? line : BYTES.decode(line);
  const [start, end] = separator === undefined ? word(text, index) : field(text, index, separator.charCodeAt(0));
  const token = text.slice(start, end);
  const value = DECIMAL.test(token) ? Number(token) : special(token);
  if (value !== undefined && (Number.isFinite(value) || !DECIMAL.test(token))) return value;
  const isMissing = start === text.length;
  const offset = isText ? platform.encode(text.slice(0, start)).length : start;
  throw new MillstreamError(isMissing ? VALUE_MISSING : value === undefined ? NUMBER_INVALID : NUMBER_OVERFLOW, {
    found: isMissing ? "the end of the line" : show(isText ? token : platform.decode(line, start, end)),
    expected: "a number",
    offset,
    column: offset + 1,
  });
}

function refused(value: unknown, expected: string): MillstreamError {
  return misuse({ stream: "column", found: show(value), expected });
}

function special(token: string): number | undefined {
  const [, sign, name] = SPECIAL.exec(token) ?? [];
  if (name === undefined) return undefined;
  if (name.toLowerCase() === "nan") return Number.NaN;
  return sign === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

/** The range of a column between white space. */
function word(text: string, index: number): [start: number, end: number] {
  WORD.lastIndex = 0;
  let found = WORD.exec(text);
  for (let left = index; left > 0 && found !== null; left--) found = WORD.exec(text);
  return found === null ? [text.length, text.length] : [found.index, found.index + found[0].length];
}

/** The range of a column that one character or a line end terminates. */
function field(text: string, index: number, separator: number): [start: number, end: number] {
  let start = 0;
  let left = index;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code !== separator && code !== LF) continue;
    if (left-- === 0) {
      const hasCr = code === LF && at > start && text.charCodeAt(at - 1) === CR;
      return [start, hasCr ? at - 1 : at];
    }
    start = at + 1;
  }
  return left === 0 ? [start, text.length] : [text.length, text.length];
}
