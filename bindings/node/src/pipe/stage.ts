/**
 * Stages: what to do with items on their way. These functions only describe; `chain.ts` does.
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

/** A stage that takes `A` and returns `B`. */
export interface Stage<A, B> extends Part<A, B, "stage"> {
  /** What it does. */
  readonly stage: StageKind;
}

/** What a stage does. */
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

/**
 * Each item becomes the result of `f` for it.
 *
 * If `f` returns a promise, it is called for the items of the batch without waiting (1,024 at a time at most), and then
 * all are awaited at once; order is kept. For slow work use `asyncMap`, whose concurrency you choose.
 */
export function map<A, B>(f: (item: A) => Awaitable<B>): Stage<A, B> {
  return make({ kind: "map", f: checkedFunction(f) });
}

/** Keeps the items for which `f` returns true. A promise is awaited as by `map`. */
export function filter<A, B extends A>(f: (item: A) => item is B): Stage<A, B>;
export function filter<A>(f: (item: A) => Awaitable<unknown>): Stage<A, A>;
export function filter<A>(f: (item: A) => Awaitable<unknown>): Stage<A, A> {
  return make({ kind: "filter", f: checkedFunction(f) });
}

/**
 * Each item becomes none, one or several: `f` returns an array or another iterable.
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

/**
 * Passes on the first items and then ends the pipeline: the source is closed, a command stopped.
 *
 * Items go through a stage in batches. So earlier stages may have run on items that it drops; put `batch(1)` first to
 * prevent that.
 */
export function take<A>(count: number): Stage<A, A> {
  return make({ kind: "take", count: counted("take", count, 0) });
}

/** Drops the first items. */
export function skip<A>(count: number): Stage<A, A> {
  return make({ kind: "skip", count: counted("skip", count, 0) });
}

/** Makes the stages after it run on at most this many items at a time. It creates no arrays: each item stays one. */
export function batch<A>(count: number): Stage<A, A> {
  return make({ kind: "batch", count: counted("batch", count, 1) });
}

/**
 * Each item becomes what `f` makes from it and a state: `init` creates the state, once for each run of the pipeline.
 *
 * If `f` returns a promise, it is awaited before the next call.
 */
export function scanState<A, S, B>(init: () => S, f: (state: S, item: A) => Awaitable<B>): Stage<A, B> {
  return make({ kind: "scan", init: checkedFunction(init), f: checkedFunction(f) });
}

/** Also passes each item to a sink. A slow one stops the source; one that fails stops the pipeline. */
export function tee<A>(sink: Sink<A, any> | StreamSink): Stage<A, A> {
  if (!isSink(sink)) throw misuse({ stream: "tee", found: show(sink), expected: "a sink" });
  return make({ kind: "tee", sink });
}

/**
 * Adds the items of other sources, as they arrive. The pipeline ends when all have ended, and fails when one fails.
 *
 * As a source it is `pipe(merge(a, b), …)`, as a stage `pipe(a, merge(b), …)`.
 */
export function merge<A>(...sources: PipeSource<A>[]): Stage<A, A> & { readonly merged: readonly PipeSource<A>[] } {
  return { ...make<A, A>({ kind: "merge", sources }), merged: sources };
}

/** Options of `asyncMap`. */
export interface AsyncMapOptions {
  /** How many calls may be in progress at once: 8 by default. */
  concurrency?: number;
  /** Whether results keep the order of the items: by default they do. */
  ordered?: boolean;
}

const ASYNC_RULES: Rules<AsyncMapOptions> = { concurrency: either(whole(1), INFINITE), ordered: boolean };

/**
 * Each item becomes the result of `f`'s promise for it, with bounded concurrency across batches.
 *
 * At most twice as many items as `concurrency` have been started and not passed on: a slow sink stops the source.
 */
export function asyncMap<A, B>(f: (item: A) => Awaitable<B>, options: AsyncMapOptions = {}): Stage<A, B> {
  checkOptions("asyncMap", options, ASYNC_RULES);
  const { concurrency = 8, ordered = true } = options;
  return make({ kind: "asyncMap", f: checkedFunction(f), concurrency, ordered });
}

/** Whether something is a stage. */
export function isStage(value: unknown): value is Stage<any, any> {
  return typeof value === "object" && value !== null && "stage" in value;
}

function counted(call: string, count: number, least: number): number {
  checkOption(call, "count", count ?? null, either(whole(least), INFINITE));
  return count;
}
