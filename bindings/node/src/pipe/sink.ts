/**
 * Where a pipeline ends: a function, a value that is made of all items, a writer, or a stream.
 *
 * A sink is given many items at once, and the next ones when it has taken them. It does not keep the array.
 */

import { MillstreamError } from "../error.js";
import { type NodeWritable, toNodeWritable, toWebStream } from "../sink/stream.js";
import { Writer, type WriterEnd } from "../writer.js";
import type { Step } from "./chain.js";
import type { Summary } from "./context.js";
import { isPromise, type Stamping } from "./loop.js";
import { type Awaitable, checkedFunction, type Part } from "./stage.js";
import { SequentialStep } from "./step.js";

/** A sink at work. */
export interface RunningSink {
  /** Takes items; a promise where it is full. */
  write(items: any[]): void | PromiseLike<void>;
  /** After the last item: the sink's own result. */
  finish(): Promise<unknown>;
  /** Instead of `finish`, when something went wrong: what was taken before goes out, but nothing is called whole. */
  abandon(error: unknown): Promise<void>;
}

/** A sink that takes `A` and comes to `R`. Made by `forEach`, `collect`, `fold` and `count`. */
export interface Sink<A, R> extends Part<A, R, "sink"> {
  /** How it begins its work. */
  readonly sink: (stamping: Stamping) => { step?: Step; running: RunningSink; result?: (summary: Summary) => unknown };
}

/** What takes records as bytes, or objects as they are: a writer, a Node `Writable`, a `WritableStream`. */
export type StreamSink = Writer | NodeWritable | WritableStream<any>;

/** What a pipeline into such a sink comes to: what it has done, and how the writer ended. */
export type StreamSummary = Summary & { readonly writer?: WriterEnd };

/** Calls `f` for each item. A promise is awaited before the next call, so that a slow function stops the source. */
export function forEach<A>(f: (item: A) => unknown): Sink<A, Summary> {
  checkedFunction(f);
  return {
    sink: (stamping) => ({
      step: new SequentialStep("forEach", f, stamping, undefined),
      running: new Calling(f),
      result: (summary) => summary,
    }),
  };
}

/** All items as an array. */
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

/**
 * One value out of all items: `f` makes the next of the last and an item. `init` is the first, or a function that makes it.
 *
 * A promise that `f` returns is awaited before the next call.
 */
export function fold<A, S>(init: S | (() => S), f: (state: S, item: A) => Awaitable<S>): Sink<A, S> {
  checkedFunction(f);
  return {
    sink: (stamping) => {
      const step = new SequentialStep("fold", f, stamping, typeof init === "function" ? (init as () => S)() : init);
      return { step, running: new Plain(() => {}), result: () => step.state };
    },
  };
}

/** How many items there are. */
export function count(): Sink<any, number> {
  return { sink: () => ({ running: new Plain(() => {}), result: (summary) => summary.recordsOut }) };
}

/** Whether something is a sink, and no stage. */
export function isSink(value: unknown): value is Sink<any, any> | StreamSink {
  if (typeof value !== "object" || value === null) return false;
  return "sink" in value || value instanceof Writer || isWebStream(value) || isNodeWritable(value);
}

/** A sink at work, for `tee` and the quarantine. */
export function runningSink(sink: unknown, stamping: Stamping): RunningSink {
  if (typeof sink === "object" && sink !== null) {
    if ("sink" in sink) {
      const { running } = (sink as Sink<any, any>).sink(stamping);
      return running;
    }
    if (sink instanceof Writer) return new Writing(sink);
    if (isWebStream(sink)) return toWebStream(sink);
    if (isNodeWritable(sink)) return toNodeWritable(sink);
  }
  throw new MillstreamError("argument_invalid", {
    found: sink === null ? "null" : typeof sink,
    expected: "a Writer, a Writable, a WritableStream, or what forEach, collect, fold and count make",
  });
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

class Writing implements RunningSink {
  constructor(readonly writer: Writer) {}

  write(items: any[]): void | Promise<void> {
    return this.writer.writeRecords(items);
  }

  finish(): Promise<WriterEnd> {
    return this.writer.close();
  }

  abandon(): Promise<void> {
    return this.writer.abandon();
  }
}
