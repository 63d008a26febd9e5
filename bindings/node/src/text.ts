/** Conversion between strings and bytes, and search for bytes, with the fastest functions of each platform.
 *
 * These functions exist on every platform. `platform.ts`, which only Node's entry point imports, replaces them with
 * faster ones; the results are the same. A byte order mark is kept, because it is content.
 */

/** The functions that a platform may replace. */
export interface Platform {
  /** Decodes UTF-8 to a string; invalid UTF-8 becomes U+FFFD. */
  decode(bytes: Uint8Array, start: number, end: number): string;
  /** Encodes a string as UTF-8. */
  encode(text: string): Uint8Array;
  /** Writes a string as UTF-8 at `start`, with space for three bytes per code unit. Returns its length in bytes. */
  encodeInto(text: string, target: Uint8Array, start: number): number;
  /** Returns the position of a byte at or after `start`, or -1. */
  indexOf(bytes: Uint8Array, byte: number, start: number): number;
  /** Returns the position of one or more bytes at or after `start`, or -1. */
  find(bytes: Uint8Array, what: Uint8Array, start: number): number;
  /** Returns whether everything is ASCII, if checking is much faster than decoding. */
  isAscii?(bytes: Uint8Array, start: number, end: number): boolean;
  /** Decodes bytes that are known to be ASCII. */
  decodeAscii(bytes: Uint8Array, start: number, end: number): string;
  /** Decodes base64. */
  fromBase64(text: string): Uint8Array<ArrayBuffer>;
  /** Allocates memory that is not cleared. */
  allocate(length: number): Uint8Array<ArrayBuffer>;
}

const lossy = /* @__PURE__ */ new TextDecoder("utf-8", { ignoreBOM: true });
const strict = /* @__PURE__ */ new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });
const encoder = /* @__PURE__ */ new TextEncoder();

/** The current platform. */
export const platform: Platform = {
  decode: (bytes, start, end) => lossy.decode(bytes.subarray(start, end)),
  decodeAscii: (bytes, start, end) => lossy.decode(bytes.subarray(start, end)),
  encode: (text) => encoder.encode(text),
  encodeInto: (text, target, start) => encoder.encodeInto(text, target.subarray(start)).written,
  indexOf: (bytes, byte, start) => bytes.indexOf(byte, start),
  find,
  fromBase64,
  allocate: (length) => new Uint8Array(length),
};

function find(bytes: Uint8Array, what: Uint8Array, start: number): number {
  const last = bytes.length - what.length;
  for (let at = bytes.indexOf(what[0], start); at >= 0 && at <= last; at = bytes.indexOf(what[0], at + 1)) {
    if (what.every((byte, index) => bytes[at + index] === byte)) return at;
  }
  return -1;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Decodes UTF-8 to a string; returns `undefined` if it is invalid. */
export function decodeStrictly(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}
