/** Encodes records for output: strings and bytes, each followed by a delimiter. */

import { misuse } from "./error.js";
import { platform } from "./text.js";

/** Returns records as one piece of bytes. */
export function encodeRecords(items: readonly unknown[], delimiter: Uint8Array): Uint8Array {
  return items.every((item) => typeof item === "string")
    ? platform.encode(joinTexts(items as string[], delimiter))
    : joinBytes(items, delimiter);
}

/** Returns strings with the delimiter after each. */
export function joinTexts(items: readonly string[], delimiter: Uint8Array): string {
  if (items.length === 0) return "";
  const text = platform.decode(delimiter, 0, delimiter.length);
  return items.join(text) + text;
}

function joinBytes(items: readonly unknown[], delimiter: Uint8Array): Uint8Array {
  const pieces = items.map(bytesOf);
  let length = pieces.length * delimiter.length;
  for (const piece of pieces) length += piece.length;
  const all = platform.allocate(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
    all.set(delimiter, at);
    at += delimiter.length;
  }
  return all;
}

/** Returns whether a value can be written as a record. */
export function isRecord(item: unknown): boolean {
  return typeof item === "string" || item instanceof Uint8Array;
}

/** Returns the bytes of a record. */
export function bytesOf(item: unknown): Uint8Array {
  if (item instanceof Uint8Array) return item;
  if (typeof item === "string") return platform.encode(item);
  const found = item === null ? "null" : typeof item;
  throw misuse({ found, expected: "a string or bytes" });
}
