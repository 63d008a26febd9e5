/** Decodes documents in memory or in a stream into columns. */

import type { Batch } from "../../batch.js";
import { Core, core, errorOf } from "../../core.js";
import { MillstreamError, misuse } from "../../error.js";
import { INVALID_OPTION, KEY_MISSING, UNSUPPORTED } from "../../errors.js";
import { documentFramer } from "../../frame.js";
import { from } from "../../from.js";
import { checkOptions, FLAG, POSITIVE, type Rules, type Tables } from "../../options.js";
import { Reader } from "../../reader.js";
import {
  ON_ABSENT,
  ON_MISMATCH,
  ON_MIXED,
  ON_UNKNOWN,
  type OnAbsent,
  type OnMismatch,
  type OnMixed,
  type OnUnknown,
} from "../../settings.js";
import { isRemote, type Remote, urlOf } from "../../url.js";
import { CoreFiller, type Filler } from "../filler.js";
import { nodeOnly } from "../node-only.js";
import { passDocuments } from "../pass.js";
import { joinPath } from "../path.js";
import { assemble, Columns } from "./column.js";
import { type Field, fieldsOf, type Schema } from "./schema.js";

/** Options of `bson.columns` and `bson.columnBatches`. */
export interface ColumnsOptions {
  /** The columns; by default they are inferred from the first documents. */
  schema?: Schema | undefined;
  /** The number of first documents (at most 32 MiB) from which the columns are inferred: 10,000 by default. */
  infer?: number | undefined;
  /** What to do with an inferred column whose types do not fit together; `"json"` by default. */
  mixed?: OnMixed | undefined;
  /** What to do with a value that does not fit its column: throw an error (the default), or use null and count it. */
  mismatch?: OnMismatch | undefined;
  /** What to do with a member without a column, and with a duplicate key in a document. Both are counted.
   *
   * `"error"`: both are errors; the default for inferred columns. `"ignore"`: the member is ignored, the duplicate key
   * is an error; the default with a schema. `"count"`: both are ignored.
   */
  unknown?: OnUnknown | undefined;
  /**
   * What to do with a column for which no document had a member: throw an error (the default), because its path may
   * be misspelt, or use nulls.
   */
  absent?: OnAbsent | undefined;
  /** The maximum number of bytes that columns may use, less than 2 GiB: 1 GiB by default, the maximum in WebAssembly. */
  memoryLimit?: number | undefined;
  /** Whether to use the native part; by default it is used if it is installed. The results are the same. */
  native?: boolean | undefined;
}

/** Options of `bson.columnBatches`. */
export interface ColumnBatchesOptions extends ColumnsOptions {
  /** The size in bytes at which a batch is full: 32 MiB by default. */
  batchBytes?: number | undefined;
}

const COLUMNS_RULES: Rules<ColumnsOptions> = {
  schema: {
    expected: "an object of paths and types, or an array of fields",
    accepts: (value) => Object(value) === value,
  },
  mixed: ON_MIXED,
  mismatch: ON_MISMATCH,
  infer: POSITIVE,
  unknown: ON_UNKNOWN,
  absent: ON_ABSENT,
  memoryLimit: {
    expected: "a number, 0 or more and less than 2 GiB",
    accepts: (value) => typeof value === "number" && value >= 0 && value < 2 ** 31,
  },
  native: FLAG,
};

const BATCHES_RULES: Tables<ColumnBatchesOptions> = [
  COLUMNS_RULES,
  {
    batchBytes: { expected: "a number above 0", accepts: (value: unknown) => typeof value === "number" && value > 0 },
  },
];

/** The number of documents and of their bytes from which columns are inferred. */
const SAMPLE = 10_000;
const SAMPLE_BYTES = 32 << 20;

/** The most that columns may take in WebAssembly, whose memory of 4 GiB also holds what they grow into. */
const MOST_IN_WASM = 1 << 30;

/** A number larger than any memory limit. */
const NEVER_FULL = 2 ** 32 - 1;

/** Decodes the consecutive documents in these bytes into columns.
 *
 * @throws The error of an invalid document, with offset and record; `shape_mismatch`, `value_out_of_range` and
 * `key_missing` for a document that does not fit; `memory_limit`; `invalid_option`.
 */
export function columns(bytes: Uint8Array, options: ColumnsOptions = {}): Columns {
  checkOptions("bson.columns", options, [COLUMNS_RULES]);
  checkMemory("bson.columns", options);
  if (!(bytes instanceof Uint8Array)) {
    throw misuse({ found: bytes === null ? "null" : typeof bytes, expected: "bytes" });
  }
  const chunk = { bytes, offset: 0, firstRecord: 0, records: 0 };
  const fields = options.schema === undefined ? inferred([chunk], options, core()) : fieldsOf(options.schema);
  const filler = fillerOf(fields, { ...options, batchBytes: NEVER_FULL }, core);
  const { error, documents } = filler.append(bytes);
  if (error !== undefined) throw located(error, undefined, 0, documents);
  const { columns, absent } = taken(fields, filler, 0);
  if (documents > 0) checkPresence(fields, absent, options);
  return columns;
}

/** Decodes the documents of a file, an object, memory or a reader into columns, batch by batch. Compressed files are
 * detected.
 *
 * Rows before an error are returned before it is thrown. A reader passed in stays open.
 */
export function columnBatches(
  source: string | URL | Remote | Uint8Array | Reader<string> | Reader<Uint8Array>,
  options: ColumnBatchesOptions = {},
): AsyncGenerator<Columns, void, void> {
  checkOptions("bson.columnBatches", options, BATCHES_RULES);
  checkMemory("bson.columnBatches", options);
  return generate(source, options);
}

async function* generate(
  source: string | URL | Remote | Uint8Array | Reader<string> | Reader<Uint8Array>,
  options: ColumnBatchesOptions,
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

function readerOf(source: string | URL | Remote | Uint8Array): Reader<Uint8Array> {
  if (source instanceof Uint8Array) return from(source, { as: "bytes" });
  const isPath = typeof source === "string" || source instanceof URL || isRemote(source);
  if (isPath && nodeOnly.open !== undefined) return nodeOnly.open(source);
  if (urlOf("bson.columnBatches", source) !== undefined) {
    const expected = "a reader: from(await fetch(url))";
    throw new MillstreamError(UNSUPPORTED, { stream: "bson.columnBatches", found: "a URL", expected });
  }
  const found = isPath ? "a path" : source === null ? "null" : typeof source;
  throw misuse({ found, expected: isPath ? "a reader" : "a path, bytes or a reader" });
}

/** Complete documents of a stream. */
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
  /** The bytes that have been read and are not in a column yet. */
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
    const { infer = SAMPLE } = options;
    while (documents < infer && bytes < SAMPLE_BYTES && (await read())) {
      const last = waiting[waiting.length - 1];
      documents += last.records;
      bytes += last.bytes.length;
    }
    fields = inferred(waiting, options, new Core(), reader.name);
  } else {
    fields = fieldsOf(options.schema);
  }
  const filler = fillerOf(fields, options, () => new Core());
  let [first, rows] = [0, 0];
  let absent: readonly string[] | undefined;
  const take = (): Columns => {
    const all = taken(fields, filler, first);
    absent = all.absent;
    rows = 0;
    return all.columns;
  };
  stream: while (waiting.length > 0 || (!isOver && (await read("reused")))) {
    const { bytes, offset, firstRecord } = waiting.shift() as Chunk;
    for (let at = 0, record = firstRecord; at < bytes.length; ) {
      if (rows === 0) first = record;
      const appended = filler.append(bytes.subarray(at));
      at += appended.bytes;
      rows += appended.documents;
      record += appended.documents;
      if (appended.error !== undefined) {
        failed = { error: located(appended.error, reader.name, offset + at - appended.bytes, record) };
        break stream;
      }
      if (appended.isFull) yield take();
    }
  }
  if (rows > 0) yield take();
  if (failed !== undefined) throw failed.error;
  if (absent !== undefined) checkPresence(fields, absent, options, reader.name);
}

function chunkOf({ bytes, offsets, length, offset, firstRecord }: Batch): Chunk {
  const start = offsets[0];
  return { bytes: bytes.subarray(start, offsets[length]), offset: offset + start, firstRecord, records: length };
}

/** Infers columns from the first documents. */
function inferred(
  chunks: readonly Chunk[],
  { mixed = "json", infer = SAMPLE }: ColumnsOptions,
  core: Core,
  stream?: string,
): Field[] {
  core.call.sample();
  let record = chunks[0]?.firstRecord ?? 0;
  for (const { bytes, offset } of chunks) {
    const { documents, error, isFull } = passDocuments(bytes, (piece, isLast) => {
      core.call.observe(core.put(piece), isLast, infer, SAMPLE_BYTES);
      return core.reply();
    });
    record += documents;
    if (error !== undefined) throw located(error, stream, offset, record);
    if (isFull) break;
  }
  core.call.fields(mixed === "json");
  const fields = core.reply();
  if (!Array.isArray(fields)) throw errorOf(fields);
  return fields;
}

function checkMemory(call: string, { memoryLimit = 0, native = true }: ColumnsOptions): void {
  const isNative = native && nodeOnly.filler !== undefined && nodeOnly.reason?.() === undefined;
  if (isNative || memoryLimit <= MOST_IN_WASM) return;
  const found = `memoryLimit: ${memoryLimit}`;
  const expected = `${MOST_IN_WASM} or less in WebAssembly, or the native part of this package`;
  throw misuse({ stream: call, found, expected }, INVALID_OPTION);
}

function fillerOf(fields: readonly Field[], options: ColumnBatchesOptions, instance: () => Core): Filler {
  const {
    mismatch = "error",
    unknown = options.schema ? "ignore" : "error",
    memoryLimit = 1 << 30,
    batchBytes = 32 << 20,
  } = options;
  // The form that the core needs.
  const plan = JSON.stringify({
    fields,
    mismatchIsNull: mismatch === "null",
    unknown,
    memoryLimit: Math.floor(memoryLimit),
    batchBytes: Math.min(Math.ceil(batchBytes), NEVER_FULL),
  });
  const native = options.native === false ? undefined : nodeOnly.filler?.(plan);
  if (native === undefined && options.native === true) {
    const found = nodeOnly.reason?.() ?? "a platform without one";
    throw new MillstreamError(UNSUPPORTED, { found, expected: "the native part of this package" });
  }
  return native ?? new CoreFiller(plan, instance());
}

function taken(fields: readonly Field[], filler: Filler, firstRecord: number) {
  const { rows, mismatched, unknown, absent, parts } = filler.take();
  const columns = assemble(fields, rows, parts.values());
  return { columns: new Columns(fields, columns, rows, firstRecord, mismatched, unknown), absent };
}

/** Checks at the end that each column had a member in some document. */
function checkPresence(
  fields: readonly Field[],
  absent: readonly string[],
  options: ColumnsOptions,
  stream?: string,
): void {
  const field = fields.find(({ name }) => absent.includes(name));
  if (field === undefined || options.absent === "null") return;
  const found = "no document with this member";
  throw new MillstreamError(KEY_MISSING, { stream, found, path: joinPath(field.keys) });
}

/** Returns an error of a document with its position in the stream instead of its position in some bytes. */
function located(error: unknown, stream: string | undefined, offset: number, record: number): unknown {
  if (!(error instanceof MillstreamError)) return error;
  const { found, expected, path, offset: inside = 0 } = error;
  return new MillstreamError(error, { stream, offset: offset + inside, record, found, expected, path });
}
