/** Records of CSV, lines and JSON as columns: a stream of Arrow's IPC format, which the native part makes. */

import { type CommandEnd, cancelled, fromSystem, MillstreamError, misuse } from "./error.js";
import { CLOSED, INTERNAL, INVALID_OPTION, IO } from "./errors.js";
import { type Framer, lineFramer } from "./frame.js";
import { framingOf } from "./framing.js";
import { from, type Input } from "./from.js";
import { CommandInput } from "./input.js";
import { END, Turns } from "./iterate.js";
import { type NativeFailure, type NativeRecordColumns, neededBinding } from "./native.js";
import { nativeError, refusal, Waker } from "./native-thread.js";
import { open } from "./open.js";
import { type Check, checkOptions, FLAG, POSITIVE, type Rules, show } from "./options.js";
import { type BlockSource, sourceBlock } from "./pipe/block.js";
import { abandoned, Reader } from "./reader.js";
import { placeOf } from "./remote.js";
import { CSV_RAGGED, type CsvRagged, DUPLICATES, type Duplicates, ON_BAD, type OnBad } from "./settings.js";
import { NativeSource } from "./source/native.js";
import type { Origin } from "./source/source.js";
import { platform } from "./text.js";
import { TRIM_NOTHING } from "./trim.js";
import { isRemote, type Remote } from "./url.js";
import { Waits } from "./waits.js";

/** The formats of records that can be columns. `"csv"`: CSV. `"tsv"`: CSV with tabs as delimiters. `"lines"`: one column
 * of text, `line`. `"jsonl"`: lines of JSON, which are objects. `"json"`: the elements of an array, which is the document.
 */
export type RecordFormat = "csv" | "tsv" | "lines" | "jsonl" | "json";

/** A column: its name and its type, as the schema of `millstream convert --print-schema` has them. */
export interface RecordField extends RecordType {
  readonly name: string;
}

/** The type of a column: its name, such as `"int64"`, and for a `list` and a `struct` the types inside it. */
export interface RecordType {
  readonly type: string;
  /** Whether its values may be null: `true` by default. */
  readonly nullable?: boolean | undefined;
  /** The members of a `struct`. */
  readonly fields?: readonly RecordField[] | undefined;
  /** The elements of a `list`. */
  readonly item?: RecordType | undefined;
}

/** A type as users write it: its name, with `!` for a column without nulls; `["string"]` is a list, and `{ name: type }` a
 * struct with these members.
 */
export type RecordColumnType = string | readonly [RecordColumnType] | { readonly [name: string]: RecordColumnType };

/** The columns: a type for each name; the fields, as `RecordColumns.fields` returns them; or their JSON, as
 * `millstream convert --print-schema` prints it.
 */
export type RecordSchema = { readonly [name: string]: RecordColumnType } | readonly RecordField[] | string;

/** Options of `columns`. */
export interface RecordColumnsOptions {
  /** The format, or a framer with a dialect, such as `csv({ delimiter: ";" })`. By default it follows from the name of a file
   * or object, or from the `framer` or `jsonElements` of a reader.
   */
  format?: RecordFormat | Framer | undefined;
  /** Whether the first record of CSV names the columns: `true` by default. Otherwise their names are 0, 1, …. */
  header?: boolean | undefined;
  /** The columns and their types; other columns are left out. By default types are inferred. */
  schema?: RecordSchema | undefined;
  /** The number of records, at most 64 MiB of them, from which types are inferred: 10,000 by default. With `"off"`, columns
   * are text, and those of JSON the text of their values. With `"all"`, all records are read first, and then again from the
   * same version of the source: a path, bytes, or an object with a strong ETag on a server with ranges. Any other source is
   * refused with `invalid_option` before it is read.
   */
  infer?: number | "all" | "off" | undefined;
  /** Texts that are null outside quotes, such as `["NA", ""]`: none by default. JSON has a null of its own. */
  nulls?: readonly string[] | undefined;
  /** Whether `NaN`, `inf` and `-inf` are numbers: `false` by default. */
  specialNumbers?: boolean | undefined;
  /** Whether inferred numbers with a fraction are decimals instead of floating point numbers: `false` by default. */
  decimals?: boolean | undefined;
  /** Which member of an object of JSON counts, of several with the same name: by default none, and the record is bad. */
  duplicates?: Duplicates | undefined;
  /** What to do with a record of CSV that has another number of fields than the first one: by default it is bad. With `"pad"`
   * fields that are missing at its end are null.
   */
  ragged?: CsvRagged | undefined;
  /** What to do with a bad record: by default it is an error, after the rows before it. With `"skip"` it is left out and
   * counted.
   */
  onBad?: OnBad | undefined;
  /** The number of threads that turn records into columns: that of the processors by default. */
  threads?: number | undefined;
}

/** A bad record that was left out. */
export interface Reject {
  /** The reason, with the place. */
  readonly error: MillstreamError;
  /** The record without its line end. */
  readonly raw: Uint8Array;
}

const FRAMER: Check = {
  expected: "a framer of csv, jsonLines or lineFramer",
  accepts: (value) => typeof value === "object" && value !== null && "trim" in value,
};
const SCHEMA: Check = {
  expected: "an object of names and types, an array of fields, or their JSON",
  accepts: (value) => typeof value === "string" || Object(value) === value,
};
const TEXTS: Check = {
  expected: "an array of strings",
  accepts: (value) => Array.isArray(value) && value.every((text) => typeof text === "string"),
};

const RULES: Rules<RecordColumnsOptions> = {
  format: ["csv", "tsv", "lines", "jsonl", "json", FRAMER],
  header: FLAG,
  schema: SCHEMA,
  infer: [POSITIVE, "all", "off"],
  nulls: TEXTS,
  specialNumbers: FLAG,
  decimals: FLAG,
  duplicates: DUPLICATES,
  ragged: CSV_RAGGED,
  onBad: ON_BAD,
  threads: POSITIVE,
};

/** The formats by the ends of names, without that of a compression. */
const ENDINGS: { readonly [ending: string]: RecordFormat | undefined } = {
  csv: "csv",
  tsv: "tsv",
  txt: "lines",
  jsonl: "jsonl",
  ndjson: "jsonl",
  json: "json",
};

/** Reads the records of a file, an object, a reader, bytes or any other source that `from` accepts as columns. The result
 * is a stream of Arrow's IPC format, for `apache-arrow` and other libraries:
 *
 * ```js
 * import { tableFromIPC } from "apache-arrow";
 * import { columns, command } from "millstream";
 *
 * const orders = await tableFromIPC(columns("orders.csv.gz"));
 * const logs = columns(command("zcat", ["logs.gz"]), { format: "jsonl", schema: { at: "timestamp[us, UTC]", status: "int32" } });
 * for await (const part of logs) socket.write(part);
 * ```
 *
 * Types are inferred or given; `docs/types.md` has the rules. Every value of an inferred type prints back losslessly: `007`
 * stays text. A value that does not fit its column never becomes null: it is an error with record, line, column and
 * `path`, after the rows before it, or with `onBad: "skip"` its record is left out and counted.
 *
 * Threads of the native part do the work. The first read opens a file. A reader continues after its position, and cannot be
 * used afterwards; its options apply, except for the form of records.
 *
 * @throws `invalid_option`, also for a source whose format is not known; `argument_invalid` for anything else; `unsupported`
 * if the native part of this package is not installed.
 */
export function columns(
  source: string | URL | Remote | Exclude<Input, string> | Reader<string> | Reader<Uint8Array>,
  options: RecordColumnsOptions = {},
): RecordColumns {
  checkOptions("columns", options, [RULES]);
  const { NativeRecordColumns } = neededBinding("columns");
  const records = recordsOf(source, options.format);
  const text = [records, ...wordsOf(options)].join(" ");
  const schema = options.schema === undefined ? undefined : jsonOf(options.schema);
  const refused = NativeRecordColumns.refusal(text, schema);
  if (refused !== null) throw refusal(refused, "columns");
  return new RecordColumns(taken(source, records === DOCUMENT), text, schema);
}

/** Records as columns: iterates over the parts of one stream of Arrow's IPC format. Created by `columns`.
 *
 * The first part has the schema, each of the others the rows of a batch, and the last one the end, which means that the
 * source succeeded. Memory is bounded by a few batches. The stream can be read once; leaving a loop early closes it.
 */
export class RecordColumns implements AsyncIterable<Uint8Array>, AsyncDisposable {
  /** The name of the source in messages. */
  readonly name: string;
  readonly #taken: Taken;
  readonly #start: (wake: () => void) => NativeRecordColumns;
  #native: NativeRecordColumns | undefined;
  readonly #rejects: Reject[] = [];
  /** - `ended`: the end or an error was reported. - `closed`: the user closed it before the end. */
  #state: "open" | "ended" | "closed" = "open";
  /** The error that was reported; closing reports it again. */
  #reported: MillstreamError | undefined;
  readonly #waker = new Waker();
  readonly #wait: Waits;
  readonly #turns = new Turns();

  /** @internal */
  constructor(taken: Taken, text: string, schema: string | undefined) {
    const { name, source, recordLimit, expectRecords, signal } = taken;
    const { NativeRecordColumns } = neededBinding("columns");
    this.name = name;
    this.#taken = taken;
    const options = { text, schema, name, recordLimit: Math.min(recordLimit, MOST_LIMIT), expectRecords };
    this.#start = (wake) => NativeRecordColumns.start(source.forThread(), options, wake);
    this.#wait = new Waits(signal, (signal) => this.#cancel(signal));
    abandoned?.register(this, source, this);
  }

  /** The number of rows in the parts that were read. */
  get rows(): number {
    return this.#native?.counts()[0] ?? 0;
  }

  /** The number of bad records that were left out so far. */
  get rejected(): number {
    return this.#native?.counts()[1] ?? 0;
  }

  /** The first 1,000 bad records that were left out so far. */
  get rejects(): readonly Reject[] {
    for (const { failure, raw } of this.#native?.rejects() ?? []) {
      this.#rejects.push({ error: this.#error(failure), raw: new Uint8Array(raw) });
    }
    return this.#rejects;
  }

  /** Returns the columns and their types, once they are known: the option `schema` accepts them. This reads the records
   * from which types are inferred, which are not lost.
   */
  fields(): Promise<readonly RecordField[]> {
    // This is not called `schema`, because apache-arrow takes an object with such a member for JSON.
    return this.#turns.take(async () => {
      const native = this.#started();
      if (native.schema() === null) await this.#front(native);
      const schema = native.schema();
      if (schema !== null) return JSON.parse(schema).fields;
      return this.#finish(native);
    });
  }

  /** Iterates over the parts of the stream. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Uint8Array> {
    return {
      next: () => this.#turns.take(() => this.#next()),
      return: async (value?: unknown) => {
        await this.close();
        return { done: true as const, value };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** Closes the source, as `Reader.close` does, and waits until its threads have ended. This can be repeated.
   *
   * If an error ended reading, it is reported again.
   */
  async close(): Promise<readonly CommandEnd[]> {
    const { source, reader } = this.#taken;
    if (this.#state === "open") this.#state = "closed";
    this.#wait.interrupt(new MillstreamError(CLOSED, { stream: this.name }));
    abandoned?.unregister(this);
    const native = this.#native;
    native?.stop();
    await source.close();
    while (native?.isGone() === false) await this.#waker.change();
    if (this.#reported !== undefined) throw this.#reported;
    return reader.commandEnds;
  }

  /** Closes the source without reporting errors. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch(() => {});
  }

  async #next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#state === "ended") return END;
    const native = this.#started();
    const size = await this.#front(native);
    if (size < 0) {
      await this.#finish(native);
      return END;
    }
    const part = platform.allocate(size);
    if (native.take(part)) return { done: false, value: part };
    throw new MillstreamError(INTERNAL, { stream: this.name, found: `a part of other than ${size} bytes` });
  }

  #started(): NativeRecordColumns {
    const { signal } = this.#taken;
    if (signal?.aborted && this.#state === "open") throw this.#cancel(signal);
    if (this.#state === "closed" || (this.#state === "ended" && this.#native === undefined)) {
      throw new MillstreamError(CLOSED, { stream: this.name });
    }
    this.#native ??= this.#start(this.#waker.wake);
    return this.#native;
  }

  /** Waits for the next part. Returns its size, or -1 at the end. */
  async #front(native: NativeRecordColumns): Promise<number> {
    for (;;) {
      const size = native.front();
      if (size !== 0) return size;
      await this.#wait.until(this.#waker.change());
    }
  }

  /** Throws the error unless the source succeeded. */
  async #finish(native: NativeRecordColumns): Promise<never | undefined> {
    this.#state = "ended";
    abandoned?.unregister(this);
    const failure = native.failure();
    const { source } = this.#taken;
    try {
      // Content that could not be passed on to the thread ends early, perhaps within a record.
      if (failure === null || CUT_SHORT.has(failure.kind)) await source.finish();
      if (failure !== null) throw this.#error(failure);
    } catch (error) {
      this.#reported = fromSystem(error, IO, { stream: this.name });
      throw this.#reported;
    } finally {
      await source.close().catch(() => {});
    }
    return undefined;
  }

  #cancel(signal: AbortSignal): MillstreamError {
    this.#state = "ended";
    abandoned?.unregister(this);
    this.#native?.stop();
    this.#taken.source.close().catch(() => {});
    return cancelled(signal, { stream: this.name });
  }

  /** Returns an error of the thread, whose place is counted from the first byte that it received. */
  #error(failure: NativeFailure): MillstreamError {
    const { source, origin = source.origin } = this.#taken;
    const { bytes, records, isText, innerLines } = origin ?? BEGINNING;
    const lines = isText ? records : innerLines === undefined ? undefined : records + innerLines;
    const plus = (number?: number, more?: number) =>
      number === undefined || more === undefined ? undefined : number + more;
    const { record, line, column } = failure;
    // An error before the first byte has no place.
    const offset = failure.offset === 0 && record === undefined ? undefined : plus(failure.offset, bytes);
    const place = { offset, record: plus(record, records), line: plus(line, lines) };
    return nativeError({ ...failure, ...place, column: lines === undefined ? undefined : column }, this.name);
  }
}

const BEGINNING: Origin = { bytes: 0, records: 0, isText: true, innerLines: 0 };

/** The longest record. */
const MOST_LIMIT = 0x40000000;

/** The errors of records that end too early. */
const CUT_SHORT: ReadonlySet<string> = new Set(["csv_invalid", "document_truncated", "json_invalid"]);

/** The records of a document of JSON, as the native part parses them. */
const DOCUMENT = "format=json";

/** A source that a thread reads, and the options of its reader. */
interface Taken {
  readonly name: string;
  readonly source: NativeSource;
  readonly reader: Reader<any>;
  readonly recordLimit: number;
  readonly expectRecords: number | undefined;
  readonly signal: AbortSignal | undefined;
  /** Its position, if it is not that of the source. */
  readonly origin: Origin | undefined;
}

/** Returns the records of a source, as the native part parses them. */
function recordsOf(source: unknown, format: RecordFormat | Framer | undefined): string {
  const framer = source instanceof Reader ? Reader.inside(source).framer : undefined;
  const isDocument = framer !== undefined && "values" in framer && framingOf(framer)?.kind === "delimiter";
  const refuse = (found: string, expected: string) => misuse({ stream: "columns", found, expected }, INVALID_OPTION);
  const formats = 'format: "csv", "tsv", "lines", "jsonl", "json" or a framer of these';
  if (isDocument && (format === undefined || format === "json")) return DOCUMENT;
  if (isDocument) throw refuse("another format for elements of a JSON document", 'format: "json", or none');
  if (framer !== undefined && format === "json") {
    throw refuse("the format json for a reader of other records", "a reader with jsonElements");
  }
  const records = format ?? framer ?? formatOf(source);
  if (records === undefined) throw refuse("a source whose name does not tell its format", formats);
  if (typeof records === "string") return `format=${records}`;
  const framing = framingOf(records);
  if (framing?.kind === "csv") return `format=csv ${framing.dialect}`;
  if (framing?.kind === "json_lines") return "format=jsonl";
  if (framing?.kind === "lines" && format !== undefined) return "format=lines";
  throw refuse(format === undefined ? "a reader of lines or other records" : "a framer of other records", formats);
}

/** Returns the format that the name of a file or an object tells. */
function formatOf(source: unknown): RecordFormat | undefined {
  if (!isPlace(source)) return undefined;
  const place = placeOf("columns", source);
  const name = (typeof place === "string" ? place : place.name).toLowerCase();
  const ending = /\.([a-z]+)(?:\.(?:gz|bgz|zst|xz))?$/.exec(name)?.[1];
  return ending === undefined ? undefined : ENDINGS[ending];
}

function isPlace(source: unknown): source is string | URL | Remote {
  return typeof source === "string" || source instanceof URL || isRemote(source);
}

/** Returns the source for the thread. */
function taken(source: Parameters<typeof columns>[0], isDocument: boolean): Taken {
  const { NativeReader } = neededBinding("columns");
  const reader = source instanceof Reader ? source : readerOf(source, isDocument);
  if (!Reader.claim(reader)) {
    const found = "a reader that was read to its end, or is the source of something else";
    throw new MillstreamError(CLOSED, { stream: reader.name, found, expected: "a new reader" });
  }
  const { name } = reader;
  const { source: own, origin, framer, ...rest } = Reader.inside(reader);
  if (own instanceof NativeSource && own.isFresh) {
    Reader.inside(reader, true);
    return { ...rest, name, source: own, reader, origin: undefined };
  }
  // The reader passes on its bytes: whole records or lines, because the last one of a source that fails is not whole.
  const isContent = isDocument && !(source instanceof Reader);
  const isCounted = isDocument || rest.expectRecords !== undefined;
  const pieces = isContent ? ANY_BYTES : isCounted ? framer : lineFramer();
  const input = CommandInput.ofBlocks("columns", blocksOf(reader, pieces));
  const settings = { decode: "off", ...(isContent ? WHOLE_DOCUMENT : {}) };
  const passed = NativeSource.started(name, (wake) => NativeReader.pipe(input.pipe, settings, wake), input);
  return { ...rest, name, source: passed, reader, origin, expectRecords: undefined };
}

const WHOLE_DOCUMENT = { json_elements: "" };

/** Finds records in a document, which are any of its bytes. */
const ANY_BYTES: Framer = {
  trim: TRIM_NOTHING,
  step: ({ length }) => ({ length: Math.min(length, 2 ** 20), terminated: true }),
};

function readerOf(source: Exclude<Parameters<typeof columns>[0], Reader<any>>, isDocument: boolean): Reader<any> {
  if (isPlace(source)) return open(source, isDocument ? { jsonElements: "" } : {});
  if (!(source instanceof Uint8Array || source instanceof ArrayBuffer)) return from(source);
  const { NativeReader } = neededBinding("columns");
  const bytes = source instanceof Uint8Array ? source : new Uint8Array(source);
  const settings = { decode: "auto", ...(isDocument ? WHOLE_DOCUMENT : {}) };
  return new Reader(NativeSource.late("memory", (wake) => NativeReader.memory(bytes, settings, wake)));
}

/** Delivers the bytes of whole records. */
function blocksOf(reader: Reader<any>, framer: Framer): BlockSource {
  return {
    async next() {
      const batch = await reader.nextBatch(framer);
      if (batch === null) return null;
      const { bytes, offsets, length } = batch;
      return sourceBlock([bytes.subarray(offsets[0], offsets[length])], 0);
    },
    close: async () => {
      await reader.close().catch(() => {});
    },
  };
}

/** Returns the options, but for the format and the schema, as the native part parses them. */
function wordsOf(options: RecordColumnsOptions): string[] {
  const { format, schema, nulls = [], ...others } = options;
  const words = Object.entries(others)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${snake(name)}=${typeof value === "boolean" ? (value ? "on" : "off") : value}`);
  const bytes = (text: string) => Array.from(platform.encode(text), (byte) => `%${byte.toString(16).padStart(2, "0")}`);
  return [...words, ...nulls.map((text) => `null=${bytes(text).join("")}`)];
}

const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Returns a schema as JSON. */
function jsonOf(schema: RecordSchema): string {
  if (typeof schema === "string") return schema;
  return JSON.stringify({ fields: Array.isArray(schema) ? schema : fieldsOf(schema as Types) });
}

type Types = { readonly [name: string]: RecordColumnType };

function fieldsOf(types: Types): RecordField[] {
  return Object.entries(types).map(([name, type]) => ({ name, ...typeOf(name, type) }));
}

function typeOf(name: string, type: RecordColumnType): RecordType {
  if (typeof type === "string") {
    return type.endsWith("!") ? { type: type.slice(0, -1), nullable: false } : { type };
  }
  if (Array.isArray(type) && type.length === 1) return { type: "list", item: typeOf(name, type[0]) };
  if (typeof type === "object" && type !== null && !Array.isArray(type)) {
    return { type: "struct", fields: fieldsOf(type as Types) };
  }
  const found = `the type ${show(type)} of ${JSON.stringify(name)}`;
  const expected = 'a name such as "int64", an array of one type, or an object of types';
  throw misuse({ stream: "columns", found, expected }, INVALID_OPTION);
}
