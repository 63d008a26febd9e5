/** Documents of memory or of a stream as columns. */

import type { Batch } from "../../batch.js";
import { MillstreamError } from "../../error.js";
import { documentFramer } from "../../frame.js";
import { from } from "../../from.js";
import { Reader } from "../../reader.js";
import { room } from "../room.js";
import { PlainFiller } from "./append.js";
import { assemble, Columns } from "./column.js";
import type { Filler } from "./filler.js";
import { Inference } from "./infer.js";
import { type Field, fieldsOf, type Schema } from "./schema.js";

/** Options of `bson.columns` and `bson.columnBatches`. */
export interface ColumnsOptions {
  /** Which columns there are: those of the first 1,000 documents (or 16 MiB) unless told otherwise. */
  schema?: Schema;
  /** Of columns that are found in documents: what one is whose values have types that do not go together; `"json"` unless told otherwise. */
  mixed?: "json" | "error";
  /** What a value is that does not fit its column: an error unless told otherwise; or none, and counted. */
  mismatch?: "error" | "null";
  /** What a member is that no column reads: counted unless told otherwise, or an error. */
  unknown?: "count" | "error";
  /** How many bytes columns can have at most, less than 2 GiB: 1 GiB unless told otherwise. */
  memoryLimit?: number;
  /** Whether the native part does it: if it is there, unless told otherwise. What comes out is the same. */
  native?: boolean;
}

/** Options of `bson.columnBatches`. */
export interface ColumnBatchesOptions extends ColumnsOptions {
  /** From how many bytes on a batch is full: 32 MiB unless told otherwise. */
  batchBytes?: number;
}

/** How many documents, and how many bytes of them, say what the columns are. */
const SAMPLE = 1000;
const SAMPLE_BYTES = 16 << 20;

/** More than any memory limit. */
const NEVER_FULL = 2 ** 32 - 1;

/**
 * The documents in these bytes, one behind the other, as columns.
 *
 * @throws What is wrong with a document, with offset and record; `shape_mismatch`, `value_out_of_range` and `key_missing` where it
 * does not fit; `memory_limit`; `invalid_option`.
 */
export function columns(bytes: Uint8Array, options: ColumnsOptions = {}): Columns {
  if (!(bytes instanceof Uint8Array)) {
    throw new MillstreamError("argument_invalid", { found: bytes === null ? "null" : typeof bytes, expected: "bytes" });
  }
  const chunk = { bytes, offset: 0, firstRecord: 0, records: 0 };
  const fields = options.schema === undefined ? inferred([chunk], options) : fieldsOf(options.schema);
  const filler = fillerOf(fields, { ...options, batchBytes: NEVER_FULL });
  const { error, rows } = filler.append(bytes);
  if (error !== undefined) throw located(error, undefined, 0, rows);
  return taken(fields, filler, 0);
}

/**
 * The documents of a file, of memory or of a reader's stream as columns, batch by batch. Compressed files are recognised.
 *
 * What came before an error is handed out before it is thrown. A reader that was given stays open.
 */
export async function* columnBatches(
  source: string | URL | Uint8Array | Reader<string> | Reader<Uint8Array>,
  options: ColumnBatchesOptions = {},
): AsyncGenerator<Columns, void, void> {
  if (source instanceof Reader) {
    yield* batchesOf(source, options);
    return;
  }
  const reader = readerOf(source);
  try {
    yield* batchesOf(reader, options);
  } finally {
    await reader.close();
  }
}

function readerOf(source: string | URL | Uint8Array): Reader<Uint8Array> {
  if (source instanceof Uint8Array) return from(source, { as: "bytes" });
  const isPath = typeof source === "string" || source instanceof URL;
  if (isPath && room.open !== undefined) return room.open(source);
  const found = isPath ? "a path" : source === null ? "null" : typeof source;
  throw new MillstreamError("argument_invalid", { found, expected: isPath ? "a reader" : "a path, bytes or a reader" });
}

/** Whole documents of a stream. */
interface Chunk {
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly firstRecord: number;
  readonly records: number;
}

async function* batchesOf(
  reader: Reader<string> | Reader<Uint8Array>,
  options: ColumnBatchesOptions,
): AsyncGenerator<Columns, void, void> {
  /** What has been read and is in no column yet. */
  const waiting: Chunk[] = [];
  let failed: { error: unknown } | undefined;
  let isOver = false;
  const read = async (memory?: "reused"): Promise<boolean> => {
    try {
      const batch = await reader.nextBatch(documentFramer(), { memory });
      isOver = batch === null;
      if (batch !== null) waiting.push(chunkOf(batch));
    } catch (error) {
      isOver = true;
      failed = { error };
    }
    return !isOver;
  };

  let fields: readonly Field[];
  if (options.schema === undefined) {
    let [documents, bytes] = [0, 0];
    while (documents < SAMPLE && bytes < SAMPLE_BYTES && (await read())) {
      const last = waiting[waiting.length - 1];
      documents += last.records;
      bytes += last.bytes.length;
    }
    fields = inferred(waiting, options, reader.name);
  } else {
    fields = fieldsOf(options.schema);
  }
  const filler = fillerOf(fields, options);
  let [first, rows] = [0, 0];
  stream: while (waiting.length > 0 || (!isOver && (await read("reused")))) {
    const { bytes, offset, firstRecord } = waiting.shift() as Chunk;
    for (let at = 0, record = firstRecord; at < bytes.length; ) {
      if (rows === 0) first = record;
      const appended = filler.append(bytes.subarray(at));
      at += appended.bytes;
      rows += appended.rows;
      record += appended.rows;
      if (appended.error !== undefined) {
        failed = { error: located(appended.error, reader.name, offset + at - appended.bytes, record) };
        break stream;
      }
      if (filler.isFull) {
        yield taken(fields, filler, first);
        rows = 0;
      }
    }
  }
  if (rows > 0) yield taken(fields, filler, first);
  if (failed !== undefined) throw failed.error;
}

function chunkOf({ bytes, offsets, length, offset, firstRecord }: Batch): Chunk {
  const start = offsets[0];
  return { bytes: bytes.subarray(start, offsets[length]), offset: offset + start, firstRecord, records: length };
}

/** The columns of the first documents. */
function inferred(chunks: readonly Chunk[], { mixed = "json" }: ColumnsOptions, stream?: string): Field[] {
  oneOf("mixed", mixed, ["json", "error"]);
  const inference = new Inference();
  let [documents, bytes] = [0, 0];
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.bytes.length && documents < SAMPLE && bytes < SAMPLE_BYTES; documents++) {
      try {
        const end = inference.observe(chunk.bytes, at);
        bytes += end - at;
        at = end;
      } catch (error) {
        throw located(error, stream, chunk.offset, documents + chunks[0].firstRecord);
      }
    }
  }
  return inference.schema(mixed);
}

function fillerOf(fields: readonly Field[], options: ColumnBatchesOptions): Filler {
  const { mismatch = "error", unknown = "count", memoryLimit = 1 << 30, batchBytes = 32 << 20 } = options;
  oneOf("mismatch", mismatch, ["error", "null"]);
  oneOf("unknown", unknown, ["count", "error"]);
  if (!(memoryLimit >= 0 && memoryLimit < 2 ** 31)) {
    const found = `a memory limit of ${memoryLimit} bytes`;
    throw new MillstreamError("invalid_option", { found, expected: "less than 2 GiB" });
  }
  if (!(batchBytes > 0)) {
    const found = `batches of ${batchBytes} bytes`;
    throw new MillstreamError("invalid_option", { found, expected: "1 or more" });
  }
  const given = {
    mismatchIsNull: mismatch === "null",
    unknownIsError: unknown === "error",
    memoryLimit: Math.floor(memoryLimit),
    batchBytes: Math.min(Math.ceil(batchBytes), NEVER_FULL),
  };
  const native = options.native === false ? undefined : room.filler?.(fields, given);
  if (native === undefined && options.native === true) {
    const found = room.reason?.() ?? "a platform without one";
    throw new MillstreamError("unsupported", { found, expected: "the native part of this package" });
  }
  return native ?? new PlainFiller(fields, given);
}

function oneOf(option: string, value: unknown, words: readonly string[]): void {
  if (words.includes(value as string)) return;
  const expected = words.map((word) => JSON.stringify(word)).join(" or ");
  throw new MillstreamError("invalid_option", { found: `${option} ${JSON.stringify(value)}`, expected });
}

function taken(fields: readonly Field[], filler: Filler, firstRecord: number): Columns {
  const { rows, mismatched, unknown, parts } = filler.take();
  const columns = assemble(fields, rows, parts.values());
  return new Columns(fields, columns, rows, firstRecord, mismatched, unknown);
}

/** An error of a document, with its place in the stream instead of that in some of its bytes. */
function located(error: unknown, stream: string | undefined, offset: number, record: number): unknown {
  if (!(error instanceof MillstreamError)) return error;
  const { kind, found, expected, path, offset: inside = 0 } = error;
  return new MillstreamError(kind, { stream, offset: offset + inside, record, found, expected, path });
}
