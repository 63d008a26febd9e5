/** The end of a pipeline: a function, a value made from all items, a writer, or a stream.
 *
 * A sink receives many items at once, and receives the next ones when it has accepted them. It does not keep the array.
 */

import { misuse } from "../error.js";
import { checkedFunction } from "../options.js";
import type { RunningSink } from "../sink/sink.js";
import { type NodeWritable, toNodeWritable, toWebStream } from "../sink/stream.js";
import type { Writer, WriterEnd } from "../writer.js";
import { EACH, FOLD, isPromise, type Stamping } from "./loop.js";
import type { Step } from "./place.js";
import { SequentialStep } from "./step.js";
import type { Awaitable, Part, Summary } from "./types.js";

/** A sink that accepts `A` and returns `R`. Created by `forEach`, `collect`, `fold` and `count`. */
export interface Sink<A, R> extends Part<A, R, "sink"> {
  /** Starts the sink. */
  readonly sink: (stamping: Stamping) => { step?: Step; running: RunningSink; result?: (summary: Summary) => unknown };
}

/** Sinks that accept records as bytes, or objects unchanged: a writer, a Node `Writable`, a `WritableStream`. */
export type StreamSink = Writer | NodeWritable | WritableStream<any>;

/** The result of a pipeline into this kind of sink: the statistics, and how the writer ended. */
export type StreamSummary = Summary & { readonly writer?: WriterEnd | undefined };

/** Calls `f` for each item. A promise is awaited before the next call, so that a slow function stops the source. */
export function forEach<A>(f: (item: A) => unknown): Sink<A, Summary> {
  checkedFunction(f);
  return {
    sink: (stamping) => ({
      step: new SequentialStep("forEach", EACH, f, stamping, undefined),
      running: new Calling(f),
      result: (summary) => summary,
    }),
  };
}

/** Collects all items in an array. */
export function collect<A>(): Sink<A, A[]> {
  return {
    sink: () => {
      const all: A[] = [];
      const running = new Plain((items) => {
        for (let index = 0; index < items.length; index++) all.push(items[index]);
      });
      return { running, result: () => all };
    },
  };
}

/** Combines all items into one value: `f` returns the next value for the last value and an item. `init` is the first
 * value, or a function that returns it.
 *
 * A promise that `f` returns is awaited before the next call.
 */
export function fold<A, S>(init: S | (() => S), f: (state: S, item: A) => Awaitable<S>): Sink<A, S> {
  checkedFunction(f);
  return {
    sink: (stamping) => {
      const step = new SequentialStep(
        "fold",
        FOLD,
        f,
        stamping,
        typeof init === "function" ? (init as () => S)() : init,
      );
      return { step, running: new Plain(() => {}), result: () => step.state };
    },
  };
}

/** Counts the items. */
export function count(): Sink<any, number> {
  return { sink: () => ({ running: new Plain(() => {}), result: (summary) => summary.items }) };
}

/** Returns whether a value is a sink and not a stage. */
export function isSink(value: unknown): value is Sink<any, any> | StreamSink {
  if (typeof value !== "object" || value === null) return false;
  return "sink" in value || isWriter(value) || isWebStream(value) || isNodeWritable(value);
}

/** Starts a sink, for `tee` and the quarantine. */
export function runningSink(sink: unknown, stamping: Stamping): RunningSink {
  if (typeof sink === "object" && sink !== null) {
    if ("sink" in sink) {
      const { running } = (sink as Sink<any, any>).sink(stamping);
      return running;
    }
    if (isWriter(sink)) return sink.asSink();
    if (isWebStream(sink)) return toWebStream(sink);
    if (isNodeWritable(sink)) return toNodeWritable(sink);
  }
  throw misuse({
    found: sink === null ? "null" : typeof sink,
    expected: "a Writer, a Writable, a WritableStream, or what forEach, collect, fold and count make",
  });
}

/** A writer of either build of this package; its class is not imported, so that a bundle without writers has none. */
function isWriter(value: object): value is Writer {
  return "asSink" in value;
}

function isWebStream(value: object): value is WritableStream<any> {
  return "getWriter" in value;
}

function isNodeWritable(value: object): value is NodeWritable {
  return "write" in value && "end" in value && "on" in value;
}

class Plain implements RunningSink {
  constructor(readonly take: (items: any[]) => void) {}

  write(items: any[]): void {
    this.take(items);
  }

  async finish(): Promise<void> {}

  async abandon(): Promise<void> {}
}

class Calling implements RunningSink {
  constructor(readonly f: (item: any) => unknown) {}

  write(items: any[]): void | Promise<void> {
    for (let index = 0; index < items.length; index++) {
      const result = this.f(items[index]);
      if (isPromise(result)) return this.#rest(result, items.slice(index + 1));
    }
  }

  async finish(): Promise<void> {}

  async abandon(): Promise<void> {}

  async #rest(first: PromiseLike<unknown>, items: any[]): Promise<void> {
    await first;
    for (const item of items) await this.f(item);
  }
}
