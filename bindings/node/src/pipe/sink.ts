/** The end of a pipeline: a function, a value made from all items, a writer, or a stream.
 *
 * A sink receives many items at once, and receives the next ones when it has accepted them. It does not keep the array.
 */

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

/** A running sink without a state that has to be finished. */
export function plain(write: RunningSink["write"]): RunningSink {
  return { write, async finish() {}, async abandon() {} };
}

/** Calls `f` for each item. A promise is awaited before the next call, so that a slow function stops the source. */
export function forEach<A>(f: (item: A) => unknown): Sink<A, Summary> {
  checkedFunction(f);
  const write = (items: any[]): void | Promise<void> => {
    for (let index = 0; index < items.length; index++) {
      const result = f(items[index]);
      if (isPromise(result)) return rest(result, items.slice(index + 1));
    }
  };
  const rest = async (first: PromiseLike<unknown>, items: any[]) => {
    await first;
    for (const item of items) await f(item);
  };
  return {
    sink: (stamping) => ({
      step: new SequentialStep("forEach", EACH, f, stamping, undefined),
      running: plain(write),
      result: (summary) => summary,
    }),
  };
}

/** Collects all items in an array. */
export function collect<A>(): Sink<A, A[]> {
  return {
    sink: () => {
      const all: A[] = [];
      const running = plain((items) => {
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
      const first = typeof init === "function" ? (init as () => S)() : init;
      const step = new SequentialStep("fold", FOLD, f, stamping, first);
      return { step, running: plain(() => {}), result: () => step.state };
    },
  };
}

/** Counts the items. */
export function count(): Sink<any, number> {
  return { sink: () => ({ running: plain(() => {}), result: (summary) => summary.items }) };
}

/** Returns whether a value is a sink and not a stage. */
export function isSink(value: unknown): value is Sink<any, any> | StreamSink {
  if (typeof value !== "object" || value === null) return false;
  return "sink" in value || isWriter(value) || isWebStream(value) || isNodeWritable(value);
}

/** Starts a sink. */
export function sinkOf(sink: Sink<any, any> | StreamSink, stamping: Stamping): ReturnType<Sink<any, any>["sink"]> {
  if ("sink" in sink) return sink.sink(stamping);
  if (isWriter(sink)) return { running: sink.asSink() };
  return { running: isWebStream(sink) ? toWebStream(sink) : toNodeWritable(sink as NodeWritable) };
}

/** Starts a sink for `tee` and the quarantine. */
export function runningSink(sink: unknown, stamping: Stamping): RunningSink {
  return sinkOf(sink as StreamSink, stamping).running;
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
