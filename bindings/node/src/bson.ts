/** BSON: finds documents in a stream and decodes them. */

import { check } from "./bson/check.js";
import { columnBatches, columns } from "./bson/columns/columns.js";
import { type DecodeOptions, type Document, decode, decodeAll } from "./bson/decode.js";
import type { DocumentFile } from "./bson/file.js";
import { nodeOnly } from "./bson/node-only.js";
import { MillstreamError } from "./error.js";
import { UNSUPPORTED } from "./errors.js";
import { documentFramer, type Framer } from "./frame.js";
import { refuseUrl } from "./url.js";

/** The framer, and the functions that decode the bytes that it finds. */
export interface Bson {
  /**
   * Finds consecutive BSON documents: a length that counts itself, and a zero byte at the end. All bytes are content.
   */
  (): Framer;

  /** Decodes one document into an object.
   *
   * @throws `document_invalid`, `document_truncated`, `utf8_invalid`, `too_deep`, with the offset.
   */
  decode(bytes: Uint8Array, options?: DecodeOptions): Document;

  /** Decodes consecutive documents, such as the bytes of a batch. Invalid data is an error with the record. */
  decodeAll(bytes: Uint8Array, options?: DecodeOptions): Document[];

  /**
   * Checks every byte of documents, in memory or in a batch, and counts them. Invalid data is an error with its
   * position.
   */
  readonly check: typeof check;

  /** Decodes consecutive documents into columns of typed arrays. Invalid data is an error with record and offset. */
  readonly columns: typeof columns;

  /**
   * Like `columns`, for a file, an object, memory or a reader, batch by batch. Rows before an error are returned before it is
   * thrown.
   */
  readonly columnBatches: typeof columnBatches;

  /** Opens a file of one document, such as the weights of a model. Only the values that you access are read, and arrays
   * of numbers become typed arrays. Available only in Node.
   *
   * @throws `open_failed`; an invalid length of the document; `unsupported` for a URL of an object, and in a browser.
   */
  open(path: string | URL): Promise<DocumentFile>;
}

/** BSON documents: `bson()` finds them in a stream, `bson.decode` decodes them into objects. */
export const bson: Bson = /* @__PURE__ */ Object.assign(() => documentFramer(), {
  decode,
  decodeAll,
  check,
  columns,
  columnBatches,
  open,
});

async function open(path: string | URL): Promise<DocumentFile> {
  refuseUrl("bson.open", path);
  if (nodeOnly.openDocument !== undefined) return nodeOnly.openDocument(path);
  throw new MillstreamError(UNSUPPORTED, { found: "a platform without files", expected: "Node" });
}
