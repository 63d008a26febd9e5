/** Finds records of JSON and converts them to values. `docs/json.md` says what is accepted. */

import type { Batch, InvalidUtf8 } from "./batch.js";
import { errorOf } from "./core.js";
import type { Rows } from "./csv.js";
import { changed, fromSystem, MillstreamError, misuse } from "./error.js";
import { INVALID_OPTION, JSON_INVALID, UTF8_INVALID } from "./errors.js";
import { CoreFramer, type Framer, type Step } from "./frame.js";
import { checkOptions, FLAG, type Rules, WHOLE } from "./options.js";
import { platform } from "./text.js";

/** Options of `jsonLines`. */
export interface JsonLinesOptions {
  /** Whether each line that is not blank is checked to be one value in UTF-8: `false` by default. */
  check?: boolean | undefined;
  /** The maximum number of arrays and objects inside each other in lines that are checked: 128 by default. */
  depth?: number | undefined;
}

/** Options of `Reader.json`. */
export interface JsonOptions {
  /** The function that converts a record: `JSON.parse` by default. */
  parse?: ((text: string) => unknown) | undefined;
}

const LINES_RULES: Rules<JsonLinesOptions> = { check: FLAG, depth: WHOLE };

/** The byte after each element of an array. No valid document contains it. */
const SEPARATOR = 0x1e;

/** The depth limit by default. */
const DEPTH = 128;

const LF = 10;

/** Records are lines of newline-delimited JSON, which end with LF or CRLF. With `check`, a line that is neither blank nor
 * one value is an error of kind `json_invalid` or `too_deep`.
 *
 * Blank lines are records of this framer, but `Reader.json` skips them.
 *
 * @throws `invalid_option` for `depth` without `check`.
 */
export function jsonLines(options: JsonLinesOptions = {}): Framer {
  checkOptions("jsonLines", options, [LINES_RULES]);
  const { check = false, depth } = options;
  if (depth !== undefined && !check) {
    const found = "depth for lines that are not checked";
    throw misuse({ stream: "jsonLines", found, expected: "check: true, or no depth" }, INVALID_OPTION);
  }
  return new JsonFramer({ check, depth: depth ?? DEPTH });
}

/** A framer whose records are values. */
export interface ValueFramer extends Framer {
  /** Converts the records of a batch. */
  values(batch: Batch, parse: (text: string) => unknown, invalidUtf8: InvalidUtf8): Rows;
}

class JsonFramer extends CoreFramer implements ValueFramer {
  readonly #isLines: boolean;
  readonly #isChecked: boolean;

  /** For lines, how they are checked; otherwise records are the elements of an array. */
  constructor(lines?: { readonly check: boolean; readonly depth: number }) {
    const { check = false, depth = DEPTH } = lines ?? {};
    super(
      (core) => {
        if (lines === undefined) core.call.delimiter(core.put(Uint8Array.of(SEPARATOR)));
        else core.call.json_lines(check, Math.min(depth, 0xffffffff));
      },
      { head: 0, tail: 1, carriageReturn: lines !== undefined },
      1,
      // The reader finds a delimiter by itself, without a check.
      lines === undefined ? SEPARATOR : check ? undefined : LF,
      lines !== undefined,
    );
    this.#isLines = lines !== undefined;
    this.#isChecked = check;
  }

  override step(input: Uint8Array, scanned: number, eof: boolean, state = 0): Step {
    if (!this.#isChecked) return super.step(input, scanned, eof, state);
    // A line is checked as a whole, once all of it is there.
    const at = platform.indexOf(input, LF, scanned);
    if (at < 0 && !eof) return { scanned: input.length, need: 0 };
    const terminated = at >= 0;
    const length = terminated ? at + 1 : input.length;
    const core = this.core();
    if (core.call.step(core.put(input.subarray(0, length)), !terminated, 0, 0) === 3) {
      const reply = core.reply();
      throw errorOf({ ...reply, column: reply.offset + 1 });
    }
    return { length, terminated };
  }

  values(batch: Batch, parse: (text: string) => unknown, invalidUtf8: InvalidUtf8): Rows {
    return valuesOf(batch, this.#isLines, parse, invalidUtf8);
  }
}

/** The elements of an array of a document, which the native part finds. */
export function elementFramer(): Framer {
  return new JsonFramer();
}

function valuesOf(batch: Batch, isLines: boolean, parse: (text: string) => unknown, invalidUtf8: InvalidUtf8): Rows {
  const items: unknown[] = [];
  const records: number[] = [];
  const { texts, failure } = textsOf(batch, invalidUtf8);
  let error = failure;
  for (let index = 0; index < texts.length; index++) {
    const text = texts[index];
    // A line may begin with a byte order mark, and be blank.
    const content = isLines && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    if (isLines && isBlank(content)) continue;
    try {
      items.push(parse(content));
    } catch (cause) {
      error = invalid(batch, isLines, index, cause);
      break;
    }
    records.push(index);
  }
  records.push(batch.length);
  // The offset of an element in its document is not known.
  if (error !== undefined && !isLines) error = changed(error, { offset: undefined });
  return { items, records, error };
}

/** Returns the strings before the first record that is not UTF-8, and its error. */
function textsOf(batch: Batch, invalidUtf8: InvalidUtf8): { texts: string[]; failure?: MillstreamError } {
  try {
    return { texts: batch.texts(invalidUtf8) };
  } catch (cause) {
    const failure = fromSystem(cause, UTF8_INVALID, {});
    const texts: string[] = [];
    for (let index = 0; index < (failure.record ?? batch.firstRecord) - batch.firstRecord; index++) {
      texts.push(batch.text(index));
    }
    return { texts, failure };
  }
}

function isBlank(text: string): boolean {
  return !(text.charCodeAt(0) > 0x20) && /^[ \t\n\r]*$/.test(text);
}

/** Returns the error for a record that is not a value. */
function invalid(batch: Batch, isLines: boolean, index: number, cause: unknown): MillstreamError {
  const { firstLine } = batch;
  return new MillstreamError(JSON_INVALID, {
    expected: "a value of JSON",
    offset: isLines ? batch.offset + batch.offsets[index] : undefined,
    record: batch.firstRecord + index,
    line: firstLine === undefined ? undefined : firstLine + index,
    cause,
  });
}
