/** BSON: where documents end in a stream, and what is in them. */

import { columnBatches, columns } from "./bson/columns/columns.js";
import { type DecodeOptions, type Document, decode, decodeAll } from "./bson/decode.js";
import { documentFramer, type Framer } from "./frame.js";

/** The framer, and what makes values of the bytes that it finds. */
export interface Bson {
  /** BSON documents that follow each other: a length that counts itself, and a zero byte at the end. All is content. */
  (): Framer;

  /**
   * One document as an object.
   *
   * @throws `document_invalid`, `document_truncated`, `utf8_invalid`, `too_deep`, with the offset.
   */
  decode(bytes: Uint8Array, options?: DecodeOptions): Document;

  /** Documents that follow each other, such as the bytes of a batch. What is wrong is an error with the record. */
  decodeAll(bytes: Uint8Array, options?: DecodeOptions): Document[];

  /** Documents that follow each other as columns: typed arrays. What is wrong is an error with record and offset. */
  readonly columns: typeof columns;

  /** The same for a file, memory or a reader, batch by batch. What came before an error is handed out before it is thrown. */
  readonly columnBatches: typeof columnBatches;
}

/** Documents of BSON: `bson()` finds them in a stream, `bson.decode` makes objects of them. */
export const bson: Bson = Object.assign(() => documentFramer(), { decode, decodeAll, columns, columnBatches });
