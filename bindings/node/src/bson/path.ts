/** Paths of keys, as people write them and of the value at an offset: twins of the core's. */

import { MillstreamError } from "../error.js";
import { platform } from "../text.js";
import { Cursor, TYPES } from "./cursor.js";

/** A JSON string at the front. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what a JSON string cannot have
const QUOTED = /^"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/;

/** What a key must not have to be written without quotes. */
const SPECIAL = /[."\\\p{Cc}]/u;

/**
 * The keys of a path: keys and array positions with dots between them. One with a dot, a quote or nothing in it is written as a
 * JSON string.
 *
 * @throws `text_invalid` for a quoted key that does not end, or with something else behind it.
 */
export function splitPath(path: string): string[] {
  const keys: string[] = [];
  for (let at = 0; at < path.length; ) {
    let end: number;
    if (path[at] === '"') {
      const quoted = QUOTED.exec(path.slice(at))?.[0];
      const key = quoted === undefined ? undefined : (JSON.parse(quoted) as string);
      // Half of a surrogate pair is no text.
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
  const expected = "keys with dots between them, those with a dot or a quote in them as JSON strings";
  return new MillstreamError("text_invalid", { found: `the path ${JSON.stringify(path)}`, expected, offset });
}

/** How many keys of a path are kept, and how many bytes of each: a hostile document could make it as long as itself. */
const MOST_KEYS = 32;
const SHOWN = 60;

/**
 * The path of the value that `at`, an offset from the document's first byte, lies in; `undefined` if that is none. Found by walking
 * again, so that nobody has to carry it along. It goes as far as the document can be read. In arrays it has positions.
 */
export function pathAt(document: Uint8Array, at: number): string | undefined {
  const keys: string[] = [];
  let deeper = 0;
  // Lengths of what is open are not looked at: they may be what is wrong.
  const cursor = new Cursor(document);
  cursor.at = Math.min(4, document.length);
  let isArray = false;
  for (let passed = 0; ; ) {
    const type = Number(tried(() => cursor.next()) ?? 0);
    const start = cursor.at;
    // Or in the type byte or the key itself.
    if (type === 0 || at < start) break;
    // A value without bytes, such as null, is where the next element begins: an error there is the value's, unless that is no
    // element.
    const byte = document[at];
    const isHere = at === start && byte !== undefined && (byte === 0 || TYPES[byte] !== undefined);
    if (!isHere && tried(() => cursor.skip(type)) !== undefined && at >= cursor.at) {
      passed++;
      continue;
    }
    const { key, keyEnd } = cursor;
    if (keys.length === MOST_KEYS) deeper++;
    else keys.push(isArray ? String(passed) : shownKey(document, key, keyEnd));
    const inside = insideOf(cursor, type, start);
    if (inside === undefined || at < inside || inside > document.length) break;
    cursor.at = inside;
    isArray = type === 0x04;
    passed = 0;
  }
  if (keys.length === 0) return undefined;
  return joinPath(keys) + (deeper > 0 ? `.(and ${deeper} more)` : "");
}

/** Where the members of a value begin that has some. */
function insideOf(cursor: Cursor, type: number, start: number): number | undefined {
  if (type === 0x03 || type === 0x04) return start + 4;
  if (type !== 0x0f) return undefined;
  cursor.at = Math.min(start + 4, cursor.end);
  return tried(() => cursor.string()) === undefined ? undefined : cursor.at + 4;
}

/** What comes of it (`true` for nothing); `undefined` if it fails. */
function tried<T>(step: () => T): T | true | undefined {
  try {
    return step() ?? true;
  } catch {
    return undefined;
  }
}

function shownKey(bytes: Uint8Array, start: number, end: number): string {
  const key = platform.decode(bytes, start, end);
  const whole = platform.encode(key);
  if (whole.length <= SHOWN) return key;
  let cut = SHOWN;
  while ((whole[cut] & 0xc0) === 0x80) cut--;
  return `${platform.decode(whole, 0, cut)}…`;
}

/** An error of the document from `start` to `end`, its offset counted from the first of the bytes, with the path of what is wrong. */
export function locate(error: unknown, bytes: Uint8Array, start: number, end: number): unknown {
  if (!(error instanceof MillstreamError)) return error;
  const { kind, found, expected, offset, path } = error;
  if (offset === undefined) return new MillstreamError(kind, { found, expected, path, offset: start });
  const document = bytes.subarray(start, end);
  return new MillstreamError(kind, { found, expected, offset, path: path ?? pathAt(document, offset - start) });
}
