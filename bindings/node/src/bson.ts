/** BSON: where documents end in a stream, and what is in them. */

import { check } from "./bson/check.js";
import { columnBatches, columns } from "./bson/columns/columns.js";
import { type DecodeOptions, type Document, decode, decodeAll } from "./bson/decode.js";
import type { DocumentFile } from "./bson/file.js";
import { room } from "./bson/room.js";
import { MillstreamError } from "./error.js";
import { documentFramer, type Framer } from "./frame.js";

/** The framer, and what makes values of the bytes that it finds. */
export interface Bson {
  /** Consecutive BSON documents: a length that counts itself, and a zero byte at the end. All is content. */
  (): Framer;

  /**
   * One document as an object.
   *
   * @throws `document_invalid`, `document_truncated`, `utf8_invalid`, `too_deep`, with the offset.
   */
  decode(bytes: Uint8Array, options?: DecodeOptions): Document;

  /** Consecutive documents, such as the bytes of a batch. Invalid data is an error with the record. */
  decodeAll(bytes: Uint8Array, options?: DecodeOptions): Document[];

  /** Checks every byte of documents, in memory or in a batch, and counts them. Invalid data is an error with its place. */
  readonly check: typeof check;

  /** Consecutive documents as columns: typed arrays. Invalid data is an error with record and offset. */
  readonly columns: typeof columns;

  /** The same for a file, memory or a reader, batch by batch. Rows before an error are returned before it is thrown. */
  readonly columnBatches: typeof columnBatches;

  /**
   * A file of one document, such as the weights of a model: only what you access is read, and arrays of numbers become
   * typed arrays. In Node only.
   *
   * @throws `open_failed`; an invalid length of the document; `unsupported` in a browser.
   */
  open(path: string | URL): Promise<DocumentFile>;
}

/** Documents of BSON: `bson()` finds them in a stream, `bson.decode` makes objects of them. */
export const bson: Bson = Object.assign(() => documentFramer(), {
  decode,
  decodeAll,
  check,
  columns,
  columnBatches,
  open,
});

async function open(path: string | URL): Promise<DocumentFile> {
  if (room.openDocument !== undefined) return room.openDocument(path);
  throw new MillstreamError("unsupported", { found: "a platform without files", expected: "Node" });
}
