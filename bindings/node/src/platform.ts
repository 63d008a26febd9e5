/** Functions that are faster in Node than on an unknown platform: see `text.ts`. */

import { Buffer, isAscii } from "node:buffer";
import { forgotten } from "./forgotten.js";
import { platform } from "./text.js";

// `Buffer`'s methods work on any Uint8Array; a Buffer view would need another object for each call.
const { indexOf } = Buffer.prototype;
const { latin1Slice, utf8Slice, utf8Write } = Buffer.prototype as unknown as {
  latin1Slice(start: number, end: number): string;
  utf8Slice(start: number, end: number): string;
  utf8Write(text: string, start: number): number;
};

/** Makes them the functions of this package. */
export function usePlatform(): void {
  if (process.env.NODE_ENV !== "production") {
    const type = "MillstreamWarning";
    forgotten.warn = (message) => process.emitWarning(message, { type, code: "MILLSTREAM_NOT_CLOSED" });
  }
  platform.decode = (bytes, start, end) => utf8Slice.call(bytes, start, end);
  platform.isAscii = (bytes, start, end) => isAscii(bytes.subarray(start, end));
  platform.decodeAscii = (bytes, start, end) => latin1Slice.call(bytes, start, end);
  platform.encode = (text) => Buffer.from(text, "utf8");
  platform.encodeInto = (text, target, start) => utf8Write.call(target, text, start);
  platform.indexOf = (bytes, byte, start) => indexOf.call(bytes, byte, start);
  platform.find = (bytes, what, start) => indexOf.call(bytes, what, start);
  platform.fromBase64 = (text) => new Uint8Array(Buffer.from(text, "base64"));
  platform.allocate = (length) => new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
}
