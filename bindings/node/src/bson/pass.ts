/** Passes documents in memory to the core, as WebAssembly or in Node's native part. Both reply in the same form. */

import { errorOf, type Failure } from "../core.js";

/** The number of bytes that are copied to the core at once: an amount that fits in the processor's cache. */
const PIECE = 256 << 10;

/** The reply of `each` in `bindings/node/wasm/src/documents.rs`. */
export interface Reply {
  readonly documents: number;
  readonly bytes: number;
  readonly isFull?: boolean | undefined;
  readonly need?: number | undefined;
  readonly failure?: Failure | undefined;
}

/** The number of documents that have been passed. */
export interface Passed {
  readonly documents: number;
  readonly bytes: number;
  /** Whether the core needs no more documents. */
  readonly isFull: boolean;
  /** The error of the next document, with its offset from the first byte. */
  readonly error?: unknown | undefined;
}

/** Passes documents piece by piece, until the core has enough of them or one is invalid. */
export function passDocuments(
  bytes: Uint8Array,
  call: (piece: Uint8Array, isLast: boolean) => Reply,
  size = PIECE,
): Passed {
  let [documents, at, need] = [0, 0, 0];
  while (at < bytes.length) {
    const end = Math.min(at + Math.max(size, need), bytes.length);
    const reply = call(bytes.subarray(at, end), end === bytes.length);
    const { isFull = false, failure } = reply;
    documents += reply.documents;
    if (failure !== undefined) {
      const error = errorOf({ ...failure, offset: at + (failure.offset ?? 0) });
      return { documents, bytes: at + reply.bytes, isFull, error };
    }
    at += reply.bytes;
    if (isFull) return { documents, bytes: at, isFull };
    need = reply.need ?? 0;
  }
  return { documents, bytes: at, isFull: false };
}
