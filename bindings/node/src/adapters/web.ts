/** Converts readers and chains to web streams. The other direction needs no adapter: `from` reads a `ReadableStream`,
 * and a pipeline can end in any `WritableStream`.
 *
 * Cancelling, aborting and errors propagate in both directions, and a slow reader makes the writer wait.
 */

import { misuse } from "../error.js";
import { NUMBER, type Tables } from "../options.js";
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

/** Options of `toWebReadable`. */
export interface WebReadableOptions extends OutputOptions {
  /** The number of chunks that are read ahead: none by default. An error overtakes these chunks. */
  highWaterMark?: number | undefined;
}

/** Options of `toWebWritable`. */
export interface WebWritableOptions extends InputOptions {
  /** The number of chunks that may wait before the chain until the writer has to wait: 1 by default. */
  highWaterMark?: number | undefined;
}

/** Options of `toWebTransform`. */
export interface WebTransformOptions extends WebWritableOptions, OutputOptions {
  /**
   * The number of chunks that may wait to be read after the chain: none by default. An error overtakes these chunks.
   */
  readableHighWaterMark?: number | undefined;
}

/** Both ends of a transformation, for `pipeThrough`. Node's types have no global name for it. */
export interface WebPair {
  readonly readable: ReadableStream<any>;
  readonly writable: WritableStream<any>;
}

const READABLE_RULES: Tables<WebReadableOptions> = [OUTPUT_RULES, { highWaterMark: NUMBER }];
const WRITABLE_RULES: Tables<WebWritableOptions> = [
  READER_RULES,
  PIPE_RULES,
  { input: CONTENT, highWaterMark: NUMBER },
];
const TRANSFORM_RULES: Tables<WebTransformOptions> = [
  READER_RULES,
  PIPE_RULES,
  OUTPUT_RULES,
  { input: CONTENT, highWaterMark: NUMBER, readableHighWaterMark: NUMBER },
];

/** Returns a `ReadableStream` for a reader, a pipeline without a sink, or any iterable.
 *
 * A reader's bytes are passed on unchanged, in complete records; other records are each followed by a delimiter.
 * Cancelling the stream closes the source.
 */
export function toWebReadable(source: PipeSource<any>, options: WebReadableOptions = {}): ReadableStream<any> {
  checkAdapterOptions("toWebReadable", options, READABLE_RULES);
  const [items, output] = outputOf(source, options);
  const side = new ReadableSide(output, options.highWaterMark ?? 0);
  let run: Run<unknown> | undefined;
  let isClosed = false;
  const close = (reason: unknown) => {
    isClosed = true;
    return run === undefined ? closeSource(items) : run.stop(reason);
  };
  side.onPull = () => {
    if (run !== undefined || isClosed) return;
    run = new Run(items, [side.sink], {});
    side.attach(run);
    run.ended.then(forget);
  };
  const forget = whenAborted(options.signal, (reason) => {
    side.fail(reason);
    close(reason);
  });
  side.onCancel = (reason) => {
    forget();
    return close(reason);
  };
  return side.stream;
}

/** Returns a `WritableStream` whose records go through stages into a sink. The arguments are those of `pipe`, without a
 * source.
 *
 * The stream is closed when the sink has finished, and fails if the pipeline fails. A chain that accepts no more data,
 * for example after `take`, discards the rest.
 */
export const toWebWritable: AtEnd<string, WritableStream<any>, WebWritableOptions> = /* @__PURE__ */ withOptions(
  "toWebWritable",
  WRITABLE_RULES,
  makeWritable,
  {},
);

/** Returns an argument for `pipeThrough`: records in the incoming bytes go through the stages, and their bytes go out.
 *
 * A chain that accepts no more data, for example after `take`, closes the readable side and makes the writable side
 * fail, which cancels the source, like `terminate` in a `TransformStream`.
 */
export const toWebTransform: Between<string, WebPair, WebTransformOptions> = /* @__PURE__ */ withOptions(
  "toWebTransform",
  TRANSFORM_RULES,
  makeTransform,
  {},
);

function makeWritable(
  options: WebWritableOptions,
  parts: unknown[],
): WritableStream<any> & { result: Promise<unknown> } {
  if (!isSink(parts.at(-1))) {
    throw misuse({ found: "no sink", expected: "stages, and a sink as the last" });
  }
  const side = new WritableSide(options);
  const run = new Run<unknown>(side.source, parts, options);
  side.attach(run);
  run.result.catch((error) => side.fail(error));
  const forget = whenAborted(options.signal, (reason) => {
    side.fail(reason);
    run.stop(reason);
  });
  run.ended.then(forget);
  return Object.assign(side.stream, { result: run.result });
}

function makeTransform(options: WebTransformOptions, parts: unknown[]): WebPair {
  const input = new WritableSide(options);
  const output = new ReadableSide(options, options.readableHighWaterMark ?? 0);
  const run = new Run<unknown>(input.source, [...parts, output.sink], options);
  input.attach(run);
  output.attach(run);
  run.result.then(
    () => {
      if (!input.hasEnded) input.fail(new TypeError("the chain accepts no more input"));
    },
    (error) => input.fail(error),
  );
  // Cancelled by the reader: the writer is notified. Aborted by the writer: the reader is notified.
  output.onCancel = (reason) => {
    input.fail(reason);
    return run.stop(reason);
  };
  input.onAbort = (reason) => output.fail(reason);
  const forget = whenAborted(options.signal, (reason) => {
    input.fail(reason);
    output.fail(reason);
    run.stop(reason);
  });
  run.ended.then(forget);
  return { readable: output.stream, writable: input.stream };
}

/** Calls `abort` when the signal is triggered, or now if it was; the returned function removes the listener. */
function whenAborted(signal: AbortSignal | undefined, call: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => {};
  const abort = () => call(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return () => signal.removeEventListener("abort", abort);
}

/** The writable side: its chunks are a pipeline's source. */
class WritableSide {
  readonly #feed = new Feed<any>();
  #controller!: WritableStreamDefaultController;
  #run: Run<unknown> | undefined;
  readonly source: PipeSource<any>;
  readonly stream: WritableStream<any>;
  hasEnded = false;
  onAbort: (reason: unknown) => void = () => {};

  constructor(options: WebWritableOptions) {
    const isObject = isObjects(options.input);
    const feed = this.#feed;
    this.source = sourceOf(feed, options);
    this.stream = new WritableStream<any>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        write: (chunk) => new Promise<void>((taken) => feed.push(isObject ? [chunk] : chunk, taken)),
        close: async () => {
          this.hasEnded = true;
          feed.end();
          await this.#run?.result;
        },
        abort: async (reason) => {
          this.onAbort(reason);
          await this.#run?.stop(reason);
        },
      },
      { highWaterMark: options.highWaterMark ?? 1 },
    );
  }

  /** The run that processes the written chunks. */
  attach(run: Run<unknown>): void {
    this.#run = run;
  }

  /** Reports an error to the writer. This has no effect on a stream that has ended. */
  fail(reason: unknown): void {
    this.#controller.error(reason);
  }
}

/** The readable side: a pipeline's sink. */
class ReadableSide {
  readonly #outlet: Outlet;
  #controller!: ReadableStreamDefaultController<any>;
  readonly stream: ReadableStream<any>;
  /** Called when the consumer requests more, and when it cancels. */
  onPull: () => void = () => {};
  onCancel: (reason: unknown) => Promise<void> = async () => {};

  constructor(options: OutputOptions, highWaterMark: number) {
    this.#outlet = new Outlet((chunk) => this.#put(chunk), highWaterMark > 0, options);
    this.stream = new ReadableStream<any>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          this.onPull();
          this.#outlet.ask();
        },
        cancel: (reason) => this.onCancel(reason),
      },
      { highWaterMark },
    );
  }

  get sink() {
    return this.#outlet.sink;
  }

  /** Ends the readable side when the pipeline ends. */
  attach(run: Run<unknown>): void {
    run.result.then(
      () => this.#close(),
      (error) => this.fail(error),
    );
  }

  /** Reports an error to the reader. This has no effect on a stream that has ended. */
  fail(reason: unknown): void {
    this.#controller.error(reason);
  }

  #close(): void {
    try {
      this.#controller.close();
    } catch {
      // The stream was cancelled or has failed.
    }
  }

  #put(chunk: unknown): boolean {
    this.#controller.enqueue(chunk instanceof Uint8Array ? own(chunk) : chunk);
    return (this.#controller.desiredSize ?? 0) > 0;
  }
}

/** Returns bytes with their own memory, because the consumer may transfer it. */
function own(bytes: Uint8Array): Uint8Array {
  const isWhole = bytes.length === bytes.buffer.byteLength && Object.getPrototypeOf(bytes) === Uint8Array.prototype;
  return isWhole ? bytes : new Uint8Array(bytes);
}
