/** The framings of this library's framers, as plain data. */

import { CoreFramer, type Framer } from "./frame.js";
import { platform } from "./text.js";

/** How the records of a split are found, as in its JSON. */
export type Framing =
  | { readonly kind: "lines" }
  | { readonly kind: "delimiter"; readonly bytes: string }
  | { readonly kind: "fixed"; readonly len: number }
  | { readonly kind: "length_prefixed"; readonly prefix: string }
  | { readonly kind: "bson" }
  | { readonly kind: "csv"; readonly dialect: string }
  | { readonly kind: "json_lines"; readonly checked: boolean; readonly depth?: number }
  | { readonly kind: "json_elements"; readonly pointer: string; readonly depth: number };

/** Returns the framing of a framer, from the calls that select it in the core; `undefined` if it cannot be stored. */
export function framingOf(framer: Framer): Framing | undefined {
  let framing: Framing | undefined;
  let bytes: Uint8Array = new Uint8Array(0);
  const { tail, carriageReturn } = framer.trim;
  const core = {
    put(given: Uint8Array) {
      bytes = given;
      return given.length;
    },
    call: {
      delimiter() {
        if (carriageReturn) framing = { kind: "lines" };
        else if (tail > 0) framing = { kind: "delimiter", bytes: hexOf(bytes) };
      },
      fixed(len: number) {
        framing = { kind: "fixed", len };
      },
      length_prefixed(width: number, isBig: boolean, countsItself: boolean) {
        const order = width === 1 ? "" : isBig ? "be" : "le";
        framing = { kind: "length_prefixed", prefix: `u${width * 8}${order}${countsItself ? ",self" : ""}` };
      },
      documents() {
        framing = { kind: "bson" };
      },
      csv() {
        framing = { kind: "csv", dialect: platform.decode(bytes, 0, bytes.length) };
        return true;
      },
      json_lines(checked: boolean, depth: number) {
        framing = { kind: "json_lines", checked, ...(depth === 128 ? {} : { depth }) };
      },
      any_of() {},
    },
  };
  if (framer instanceof CoreFramer) framer.select(core as unknown as Parameters<typeof framer.select>[0]);
  return framing;
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
