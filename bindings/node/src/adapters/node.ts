/**
 * Node's streams made of our readers and chains. The other way round needs no adapter: `from` reads a `Readable`, and a
 * pipeline ends in any `Writable`.
 *
 * They are streams like any other: an error on either side reaches the other one by `stream.pipeline`, `destroy` ends
 * everything at any moment, and a full reader makes the writer wait. An unfinished last record is a record.
 */

import { Buffer } from "node:buffer";
import { Duplex, Readable, Writable, type WritableOptions } from "node:stream";
import { MillstreamError } from "../error.js";
import { isSink } from "../pipe/sink.js";
import type { PipeSource } from "../pipe/source.js";
import { Feed } from "./feed.js";
import { type InputOptions, isObjects, type OutputOptions } from "./options.js";
import { Outlet } from "./outlet.js";
import { closeSource, outputOf, Run, sourceOf } from "./run.js";
import { type AtEnd, type Between, withOptions } from "./types.js";

/** How many objects wait in front of a chain unless told otherwise: stages take many at once. */
const OBJECTS = 1024;

/** Options of `toReadable`. */
export interface ReadableOptions extends OutputOptions {
  /** How many bytes, or objects, are read ahead: as many as Node does, unless told otherwise. */
  highWaterMark?: number;
}

/** Options of `toWritable`. */
export interface WritableInputOptions extends InputOptions {
  /** How many bytes wait in front of the chain before who writes should wait (Node's own number), or objects (1024). */
  highWaterMark?: number;
}

/** Options of `toTransform`. */
export interface TransformOptions extends WritableInputOptions, OutputOptions {
  /** How many bytes, or objects, wait behind the chain until they are read: as many as in Node, unless told otherwise. */
  readableHighWaterMark?: number;
}

/**
 * A `Readable` over a reader, a pipeline without a sink, or any iterable.
 *
 * A reader's bytes are handed on as they are, whole records at a time; other records get a delimiter behind each. An
 * error comes behind the records that were read before it. Destroying the stream closes the source.
 */
export function toReadable(source: PipeSource<any>, options: ReadableOptions = {}): Readable {
  const [items, output] = outputOf(source, options);
  const outlet = new Outlet((chunk) => put(readable, chunk), true, output);
  let run: Run<unknown> | undefined;
  const readable = new LateFailing({
    objectMode: isObjects(options.output, "output"),
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

/**
 * A `Writable` whose records go through stages into a sink: the parts are those of `pipe`, without a source.
 *
 * It has finished when the sink has, and fails as the pipeline does. A chain that takes no more, as by `take`, lets the rest
 * pass by.
 */
export const toWritable: AtEnd<string, Writable, WritableInputOptions> = withOptions(makeWritable, {});

/**
 * A `Duplex` for the middle of `stream.pipeline`: bytes in, records through the stages, their bytes out.
 *
 * With `input: "objects"` or `output: "objects"` that side is in object mode. A chain that takes no more, as by `take`, ends
 * the output and lets the rest of the input pass by: `stream.pipeline` would call anything else a failure.
 */
export const toTransform: Between<string, Duplex, TransformOptions> = withOptions(makeTransform, {});

function makeWritable(options: WritableInputOptions, parts: unknown[]): Writable & { result: Promise<unknown> } {
  if (!isSink(parts.at(-1))) {
    throw new MillstreamError("argument_invalid", { found: "no sink", expected: "stages, and a sink as the last" });
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
    readableObjectMode: isObjects(options.output, "output"),
    read: () => outlet.ask(),
  });
  run.result.then(
    () => duplex.push(null),
    (error) => duplex.destroy(error),
  );
  return duplex;
}

/** What is common to those that are written to. */
function writableSide(feed: Feed<any>, run: Run<unknown>, options: WritableInputOptions): WritableOptions {
  const isObject = isObjects(options.input, "input");
  const side: WritableOptions = {
    objectMode: isObject,
    highWaterMark: options.highWaterMark ?? (isObject ? OBJECTS : undefined),
    signal: options.signal,
    // A character can be cut in two between strings.
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
    throw new MillstreamError("argument_invalid", {
      found: "null",
      expected: "any other item: it is the end of a stream",
    });
  }
  return stream.push(chunk);
}

/** Reports an error behind what it has read ahead, which `destroy` would drop. */
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
