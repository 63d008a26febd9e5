/** Converts keys to strings. Documents of a stream have the same keys, so strings for known keys are reused. */

import { platform } from "../text.js";

/** The maximum number of known keys, a power of two, and their maximum length. */
const KNOWN = 512;
const LONGEST = 32;

interface Key {
  readonly bytes: Uint8Array;
  readonly text: string;
}

/** The last key of each hash. */
const known: (Key | undefined)[] = /* @__PURE__ */ Array.from({ length: KNOWN });

/** Returns the key between `start` and `end` if it is ASCII and short or known; otherwise `undefined`. */
export function knownKey(bytes: Uint8Array, start: number, end: number): string | undefined {
  const length = end - start;
  if (length > LONGEST) return undefined;
  let hash = length;
  for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + bytes[at]) | 0;
  const place = (hash ^ (hash >>> 9)) & (KNOWN - 1);
  const key = known[place];
  if (key !== undefined && isSame(key.bytes, bytes, start, length)) return key.text;
  const copy = bytes.slice(start, end);
  if (copy.some((byte) => byte >= 0x80)) return undefined;
  const text = platform.decode(copy, 0, length);
  known[place] = { bytes: copy, text };
  return text;
}

function isSame(key: Uint8Array, bytes: Uint8Array, start: number, length: number): boolean {
  if (key.length !== length) return false;
  for (let index = 0; index < length; index++) if (key[index] !== bytes[start + index]) return false;
  return true;
}
