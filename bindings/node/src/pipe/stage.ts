/** Stages: the operations on items. These functions only describe stages; `chain.ts` runs them.
 *
 * A stage may be used in several pipelines, and several times in one.
 */

import { misuse } from "../error.js";
import {
  boolean,
  checkedFunction,
  checkOption,
  checkOptions,
  either,
  type Rule,
  type Rules,
  show,
  whole,
} from "../options.js";
import { isSink, type Sink, type StreamSink } from "./sink.js";
import type { PipeSource } from "./source.js";
import type { Awaitable, Part } from "./types.js";

const INFINITE: Rule = { expected: "Infinity", accepts: (value) => value === Number.POSITIVE_INFINITY };

/** A stage that accepts `A` and returns `B`. */
export interface Stage<A, B> extends Part<A, B, "stage"> {
  /** The operation. */
  readonly stage: StageKind;
}

/** The operation of a stage. */
export type StageKind =
  | { readonly kind: "map" | "filter" | "flatMap" | "inspect"; readonly f: (item: any) => any }
  | { readonly kind: "scan"; readonly init: () => any; readonly f: (state: any, item: any) => any }
  | { readonly kind: "take" | "skip" | "batch"; readonly count: number }
  | { readonly kind: "tee"; readonly sink: any }
  | { readonly kind: "merge"; readonly sources: readonly PipeSource<any>[] }
  | {
      readonly kind: "asyncMap";
      readonly f: (item: any) => any;
      readonly concurrency: number;
      readonly ordered: boolean;
    };

function make<A, B>(stage: StageKind): Stage<A, B> {
  return { stage };
}

/** Replaces each item with the result of `f` for it.
 *
 * If `f` returns a promise, it is called for the items of the batch without waiting (1,024 at a time at most), and then
 * all are awaited at once; order is kept. For slow work use `asyncMap` and set its concurrency.
 */
export function map<A, B>(f: (item: A) => Awaitable<B>): Stage<A, B> {
  return make({ kind: "map", f: checkedFunction(f) });
}

/** Keeps the items for which `f` returns true. Promises are awaited as in `map`. */
export function filter<A, B extends A>(f: (item: A) => item is B): Stage<A, B>;
export function filter<A>(f: (item: A) => Awaitable<unknown>): Stage<A, A>;
export function filter<A>(f: (item: A) => Awaitable<unknown>): Stage<A, A> {
  return make({ kind: "filter", f: checkedFunction(f) });
}

/** Replaces each item with none, one or several items: `f` returns an array or another iterable.
 *
 * Any other result fails the stage, even a string: return an array of one.
 */
export function flatMap<A, B>(f: (item: A) => Awaitable<Iterable<B>>): Stage<A, B> {
  return make({ kind: "flatMap", f: checkedFunction(f) });
}

/** Calls `f` with each item and passes the item on. */
export function inspect<A>(f: (item: A) => unknown): Stage<A, A> {
  return make({ kind: "inspect", f: checkedFunction(f) });
}

/** Passes on the first items and then ends the pipeline: the source is closed, and a command is stopped.
 *
 * Items go through a stage in batches, so earlier stages may have processed items that `take` drops; put `batch(1)`
 * first to prevent this.
 */
export function take<A>(count: number): Stage<A, A> {
  return make({ kind: "take", count: counted("take", count, 0) });
}

/** Drops the first items. */
export function skip<A>(count: number): Stage<A, A> {
  return make({ kind: "skip", count: counted("skip", count, 0) });
}

/**
 * Limits the stages after it to this many items at a time. Items stay single items; this stage does not create
 * arrays.
 */
export function batch<A>(count: number): Stage<A, A> {
  return make({ kind: "batch", count: counted("batch", count, 1) });
}

/** Replaces each item with the result of `f` for a state and the item. `init` creates the state once for each run of
 * the pipeline.
 *
 * If `f` returns a promise, it is awaited before the next call.
 */
export function scanState<A, S, B>(init: () => S, f: (state: S, item: A) => Awaitable<B>): Stage<A, B> {
  return make({ kind: "scan", init: checkedFunction(init), f: checkedFunction(f) });
}

/** Also passes each item to a sink. A slow sink stops the source; a sink that fails stops the pipeline. */
export function tee<A>(sink: Sink<A, any> | StreamSink): Stage<A, A> {
  if (!isSink(sink)) throw misuse({ stream: "tee", found: show(sink), expected: "a sink" });
  return make({ kind: "tee", sink });
}

/** Adds the items of other sources as they arrive. The pipeline ends when all sources have ended, and fails when one
 * fails.
 *
 * It can be used as a source, `pipe(merge(a, b), …)`, or as a stage, `pipe(a, merge(b), …)`.
 */
export function merge<A>(...sources: PipeSource<A>[]): Stage<A, A> & { readonly merged: readonly PipeSource<A>[] } {
  return { ...make<A, A>({ kind: "merge", sources }), merged: sources };
}

/** Options of `asyncMap`. */
export interface AsyncMapOptions {
  /** The maximum number of calls in progress at once: 8 by default. */
  concurrency?: number;
  /** Whether results keep the order of the items: true by default. */
  ordered?: boolean;
}

const ASYNC_RULES: Rules<AsyncMapOptions> = { concurrency: either(whole(1), INFINITE), ordered: boolean };

/** Replaces each item with the value to which `f(item)` resolves, with bounded concurrency across batches.
 *
 * At most twice `concurrency` items are started and not passed on, so a slow sink stops the source.
 */
export function asyncMap<A, B>(f: (item: A) => Awaitable<B>, options: AsyncMapOptions = {}): Stage<A, B> {
  checkOptions("asyncMap", options, ASYNC_RULES);
  const { concurrency = 8, ordered = true } = options;
  return make({ kind: "asyncMap", f: checkedFunction(f), concurrency, ordered });
}

/** Returns whether a value is a stage. */
export function isStage(value: unknown): value is Stage<any, any> {
  return typeof value === "object" && value !== null && "stage" in value;
}

function counted(call: string, count: number, least: number): number {
  checkOption(call, "count", count ?? null, either(whole(least), INFINITE));
  return count;
}
