/** Paths of keys: parses those that users write, and finds the path of the value at an offset. */

import { core } from "../core.js";
import { MillstreamError } from "../error.js";
import { TEXT_INVALID } from "../errors.js";

/** Matches a JSON string at the front. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a JSON string cannot contain them
const QUOTED = /^"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/;

/** Characters that a key must not contain to be written without quotes. */
const SPECIAL = /[."\\\p{Cc}]/u;

/** Splits a path into its keys and array positions, which are separated by dots. A key that is empty or contains a dot
 * or a quote is written as a JSON string.
 *
 * @throws `text_invalid` for a quoted key that is unterminated or not followed by a dot.
 */
export function splitPath(path: string): string[] {
  const keys: string[] = [];
  for (let at = 0; at < path.length; ) {
    let end: number;
    if (path[at] === '"') {
      const quoted = QUOTED.exec(path.slice(at))?.[0];
      const key = quoted === undefined ? undefined : (JSON.parse(quoted) as string);
      // Half of a surrogate pair is invalid text.
      if (quoted === undefined || key === undefined || /\p{Cs}/u.test(key)) throw bad(path, at);
      keys.push(key);
      end = at + quoted.length;
    } else {
      const dot = path.indexOf(".", at);
      end = dot < 0 ? path.length : dot;
      keys.push(path.slice(at, end));
    }
    if (end === path.length) break;
    if (path[end] !== "." || end + 1 === path.length) throw bad(path, end);
    at = end + 1;
  }
  return keys;
}

/** Joins keys to a path that `splitPath` splits again. */
export function joinPath(keys: readonly string[]): string {
  return keys.map((key) => (key === "" || SPECIAL.test(key) ? JSON.stringify(key) : key)).join(".");
}

function bad(path: string, offset: number): MillstreamError {
  const expected = "keys separated by dots; keys that contain a dot or a quote as JSON strings";
  return new MillstreamError(TEXT_INVALID, { found: `the path ${JSON.stringify(path)}`, expected, offset });
}

/**
 * Returns the path of the value that contains `at`, an offset from the document's first byte, or `undefined` if there
 * is none.
 */
export function pathAt(document: Uint8Array, at: number): string | undefined {
  const scanner = core();
  scanner.call.path_at(scanner.put(document), at);
  return scanner.reply() ?? undefined;
}
