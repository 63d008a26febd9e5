/**
 * Strings out of bytes and bytes out of strings, and where a byte is: what each platform does fastest.
 *
 * The functions here are those of every platform. `platform.ts`, which only Node's entry point imports, replaces them
 * with faster ones; the results are the same. A byte order mark is kept: it is content.
 */

/** What a platform may do better. */
export interface Platform {
  /** UTF-8 to a string; invalid UTF-8 becomes U+FFFD. */
  decode(bytes: Uint8Array, start: number, end: number): string;
  /** A string as UTF-8. */
  encode(text: string): Uint8Array;
  /** Writes a string as UTF-8 at `start`, with space for three bytes per code unit. Returns its length in bytes. */
  encodeInto(text: string, target: Uint8Array, start: number): number;
  /** Where a byte is from `start` on; -1 if it is nowhere. */
  indexOf(bytes: Uint8Array, byte: number, start: number): number;
  /** Where some bytes are, at least one, from `start` on; -1 if they are nowhere. */
  find(bytes: Uint8Array, what: Uint8Array, start: number): number;
  /** Whether everything is ASCII, if that is much faster to check than to decode. */
  isAscii?(bytes: Uint8Array, start: number, end: number): boolean;
  /** Bytes known to be ASCII, as a string. */
  decodeAscii(bytes: Uint8Array, start: number, end: number): string;
  /** The bytes of base64. */
  fromBase64(text: string): Uint8Array<ArrayBuffer>;
  /** Memory that is not cleared. */
  allocate(length: number): Uint8Array<ArrayBuffer>;
}

const lossy = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });
const encoder = new TextEncoder();

/** The platform that is in use. */
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

/** UTF-8 to a string, or `undefined` if it is none. */
export function decodeStrictly(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}
