/** Converts readers and chains to Node streams. The other direction needs no adapter: `from` reads a `Readable`, and a
 * pipeline can end in any `Writable`.
 *
 * They behave like other streams: an error on either side reaches the other one through `stream.pipeline`, `destroy`
 * stops everything at any time, and a full reader makes the writer wait. An unfinished last record is delivered as a
 * record.
 */

import { Buffer } from "node:buffer";
import { Duplex, Readable, Writable, type WritableOptions } from "node:stream";
import { misuse } from "../error.js";
import { type Tables, WHOLE } from "../options.js";
import { PIPE_RULES } from "../pipe/pipe.js";
import { isSink } from "../pipe/sink.js";
import type { PipeSource } from "../pipe/source.js";
import { READER_RULES } from "../reader.js";
import { Feed } from "./feed.js";
import {
  CONTENT,
  checkAdapterOptions,
  type InputOptions,
  isObjects,
  OUTPUT_RULES,
  type OutputOptions,
} from "./options.js";
import { Outlet } from "./outlet.js";
import { closeSource, outputOf, Run, sourceOf } from "./run.js";
import { type AtEnd, type Between, withOptions } from "./types.js";

/** The default number of objects that wait before a chain: stages take many at once. */
const OBJECTS = 1024;

/** Options of `toReadable`. */
export interface ReadableOptions extends OutputOptions {
  /** The number of bytes or objects that are read ahead; the default is Node's own. */
  highWaterMark?: number | undefined;
}

/** Options of `toWritable`. */
export interface WritableInputOptions extends InputOptions {
  /**
   * The number of bytes (by default Node's own) or objects (1024) that may wait before the chain until the writer has
   * to wait.
   */
  highWaterMark?: number | undefined;
}

/** Options of `toTransform`. */
export interface TransformOptions extends WritableInputOptions, OutputOptions {
  /** The number of bytes or objects that may wait to be read after the chain; the default is Node's own. */
  readableHighWaterMark?: number | undefined;
}

const READABLE_RULES: Tables<ReadableOptions> = [OUTPUT_RULES, { highWaterMark: WHOLE }];
const WRITABLE_RULES: Tables<WritableInputOptions> = [
  READER_RULES,
  PIPE_RULES,
  { input: CONTENT, highWaterMark: WHOLE },
];
const TRANSFORM_RULES: Tables<TransformOptions> = [
  READER_RULES,
  PIPE_RULES,
  OUTPUT_RULES,
  { input: CONTENT, highWaterMark: WHOLE, readableHighWaterMark: WHOLE },
];

/** Returns a `Readable` for a reader, a pipeline without a sink, or any iterable.
 *
 * A reader's bytes are passed on unchanged, in complete records; other records are each followed by a delimiter. An
 * error follows the records that were read before it. Destroying the stream closes the source.
 */
export function toReadable(source: PipeSource<any>, options: ReadableOptions = {}): Readable {
  checkAdapterOptions("toReadable", options, READABLE_RULES);
  const [items, output] = outputOf(source, options);
  const outlet = new Outlet((chunk) => put(readable, chunk), true, output);
  let run: Run<unknown> | undefined;
  const readable = new LateFailing({
    objectMode: isObjects(options.output),
    highWaterMark: options.highWaterMark,
    signal: options.signal,
    read() {
      if (run === undefined) {
        run = new Run(items, [outlet.sink], {});
        run.result.then(
          () => readable.push(null),
          (error) => readable.fail(error),
        );
      }
      outlet.ask();
    },
    destroy(error, done) {
      const ended = run === undefined ? closeSource(items) : run.stop(error);
      ended.then(() => done(error));
    },
  });
  return readable;
}

/** Returns a `Writable` whose records go through stages into a sink. The arguments are those of `pipe`, without a
 * source.
 *
 * The stream finishes when the sink finishes, and fails if the pipeline fails. A chain that accepts no more data, for
 * example after `take`, discards the rest.
 */
export const toWritable: AtEnd<string, Writable, WritableInputOptions> = /* @__PURE__ */ withOptions(
  "toWritable",
  WRITABLE_RULES,
  makeWritable,
  {},
);

/** Returns a `Duplex` for the middle of `stream.pipeline`: records in the incoming bytes go through the stages, and
 * their bytes go out.
 *
 * With `input: "objects"` or `output: "objects"` that side is in object mode. A chain that accepts no more data, for
 * example after `take`, ends the output and discards the rest of the input, because `stream.pipeline` would treat
 * anything else as a failure.
 */
export const toTransform: Between<string, Duplex, TransformOptions> = /* @__PURE__ */ withOptions(
  "toTransform",
  TRANSFORM_RULES,
  makeTransform,
  {},
);

function makeWritable(options: WritableInputOptions, parts: unknown[]): Writable & { result: Promise<unknown> } {
  if (!isSink(parts.at(-1))) {
    throw misuse({ found: "no sink", expected: "stages, and a sink as the last" });
  }
  const feed = new Feed<any>();
  const run = new Run<unknown>(sourceOf(feed, options), parts, options);
  const writable = new Writable(writableSide(feed, run, options));
  run.result.catch((error) => writable.destroy(error));
  return Object.assign(writable, { result: run.result });
}

function makeTransform(options: TransformOptions, parts: unknown[]): Duplex {
  const feed = new Feed<any>();
  const outlet = new Outlet((chunk) => put(duplex, chunk), true, options);
  const run = new Run<unknown>(sourceOf(feed, options), [...parts, outlet.sink], options);
  const {
    highWaterMark: writableHighWaterMark,
    objectMode: writableObjectMode,
    ...side
  } = writableSide(feed, run, options);
  const duplex: Duplex = new Duplex({
    ...(side as object),
    writableHighWaterMark,
    writableObjectMode,
    readableHighWaterMark: options.readableHighWaterMark,
    readableObjectMode: isObjects(options.output),
    read: () => outlet.ask(),
  });
  run.result.then(
    () => duplex.push(null),
    (error) => duplex.destroy(error),
  );
  return duplex;
}

/** The common part of writable adapters. */
function writableSide(feed: Feed<any>, run: Run<unknown>, options: WritableInputOptions): WritableOptions {
  const isObject = isObjects(options.input);
  const side: WritableOptions = {
    objectMode: isObject,
    highWaterMark: options.highWaterMark ?? (isObject ? OBJECTS : undefined),
    signal: options.signal,
    // A character can be split between two strings.
    decodeStrings: false,
    write(chunk, encoding, done) {
      if (isObject) feed.push([chunk], done);
      else feed.push(typeof chunk === "string" ? text(chunk, encoding) : chunk, done);
    },
    final(done) {
      feed.end();
      run.result.then(() => done(), done);
    },
    destroy(error, done) {
      run.stop(error).then(() => done(error));
    },
  };
  if (isObject) {
    side.writev = (chunks, done) =>
      feed.push(
        chunks.map(({ chunk }) => chunk),
        done,
      );
  }
  return side;
}

function text(chunk: string, encoding: BufferEncoding): string | Uint8Array {
  return encoding === "utf8" || encoding === "utf-8" ? chunk : Buffer.from(chunk, encoding);
}

function put(stream: Readable, chunk: unknown): boolean {
  if (chunk === null) {
    throw misuse({
      found: "null",
      expected: "any other item: it is the end of a stream",
    });
  }
  return stream.push(chunk);
}

/** Reports an error after the chunks that were read ahead, which `destroy` would drop. */
class LateFailing extends Readable {
  #failure: { error: Error } | undefined;

  fail(error: Error): void {
    this.#failure = { error };
    if (this.readableLength === 0) this.destroy(error);
  }

  override read(size?: number): any {
    const chunk = super.read(size);
    if (this.#failure !== undefined && this.readableLength === 0) this.destroy(this.#failure.error);
    return chunk;
  }
}
