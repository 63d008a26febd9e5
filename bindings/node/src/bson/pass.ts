/** Documents in memory, passed to the core: to its WebAssembly, or to Node's native part. Their replies are the same. */

import { errorOf, type Failure } from "../core.js";

/** How many bytes are copied to the core at once: what fits into the processor's cache, if the documents do. */
const PIECE = 256 << 10;

/** What `each` of `bindings/node/wasm/src/documents.rs` replies. */
export interface Reply {
  readonly documents: number;
  readonly bytes: number;
  readonly isFull?: boolean;
  readonly need?: number;
  readonly failure?: Failure;
}

/** The documents that have been passed. */
export interface Passed {
  readonly documents: number;
  readonly bytes: number;
  /** Whether the core wants no more of them. */
  readonly isFull: boolean;
  /** The error of the next one, with its offset counted from the first byte. */
  readonly error?: unknown;
}

/** Passes documents piece by piece, until the core has enough of them, or one is wrong. */
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
