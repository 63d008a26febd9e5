/**
 * Stages: what is done with items on their way. These functions only describe; `chain.ts` does.
 *
 * A stage may be used in several pipelines, and several times in one.
 */

import { MillstreamError } from "../error.js";
import type { Sink, StreamSink } from "./sink.js";
import type { PipeSource } from "./source.js";

/** What a stage's function may return: its result, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>;

declare const types: unique symbol;

/** A part of a pipeline, for the compiler: what it takes, what it gives, and whether it is a stage or a sink. */
export interface Part<A, B, K> {
  readonly [types]?: { takes: (item: A) => void; gives: B; kind: K };
}

/** A stage that takes `A` and gives `B`. */
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
 * Each item becomes what `f` makes of it.
 *
 * If `f` returns a promise, it is called for the items of the batch without waiting (1,024 at a time at most), and then all
 * are awaited at once; order is kept. For work that takes its time there is `asyncMap`, whose concurrency is what you say.
 */
export function map<A, B>(f: (item: A) => Awaitable<B>): Stage<A, B> {
  return make({ kind: "map", f: checkedFunction(f) });
}

/** Keeps the items for which `f` says so. A promise is awaited as by `map`. */
export function filter<A, B extends A>(f: (item: A) => item is B): Stage<A, B>;
export function filter<A>(f: (item: A) => Awaitable<unknown>): Stage<A, A>;
export function filter<A>(f: (item: A) => Awaitable<unknown>): Stage<A, A> {
  return make({ kind: "filter", f: checkedFunction(f) });
}

/**
 * Each item becomes none, one or several: `f` returns an array or another iterable.
 *
 * Anything else that is returned fails the stage, a string too: return an array of one.
 */
export function flatMap<A, B>(f: (item: A) => Awaitable<Iterable<B>>): Stage<A, B> {
  return make({ kind: "flatMap", f: checkedFunction(f) });
}

/** Shows each item to `f` and hands it on. */
export function inspect<A>(f: (item: A) => unknown): Stage<A, A> {
  return make({ kind: "inspect", f: checkedFunction(f) });
}

/**
 * Hands on the first items and then ends the pipeline: the source is closed, a command stopped.
 *
 * Items go through a stage in batches. So stages in front of this one may have run on items that it drops; `batch(1)` in
 * front of them forbids that.
 */
export function take<A>(count: number): Stage<A, A> {
  return make({ kind: "take", count: whole(count, 0) });
}

/** Drops the first items. */
export function skip<A>(count: number): Stage<A, A> {
  return make({ kind: "skip", count: whole(count, 0) });
}

/** Lets the stages behind it run on so many items at a time at most. It makes no arrays: each item stays one. */
export function batch<A>(count: number): Stage<A, A> {
  return make({ kind: "batch", count: whole(count, 1) });
}

/**
 * Each item becomes what `f` makes of it and of a state: `init` makes the state, once for each run of the pipeline.
 *
 * If `f` returns a promise, it is awaited before the next call.
 */
export function scanState<A, S, B>(init: () => S, f: (state: S, item: A) => Awaitable<B>): Stage<A, B> {
  return make({ kind: "scan", init: checkedFunction(init), f: checkedFunction(f) });
}

/** Gives each item to a sink, too. A slow one stops the source; one that fails stops the pipeline. */
export function tee<A>(sink: Sink<A, any> | StreamSink): Stage<A, A> {
  return make({ kind: "tee", sink });
}

/**
 * Adds the items of other sources, as they come. The pipeline ends when all have ended, and fails when one fails.
 *
 * As a source it is `pipe(merge(a, b), …)`, as a stage `pipe(a, merge(b), …)`.
 */
export function merge<A>(...sources: PipeSource<A>[]): Stage<A, A> & { readonly merged: readonly PipeSource<A>[] } {
  return { ...make<A, A>({ kind: "merge", sources }), merged: sources };
}

/** Options of `asyncMap`. */
export interface AsyncMapOptions {
  /** How many calls may be under way at once: 8 unless told otherwise. */
  concurrency?: number;
  /** Whether results come in the order of the items: they do, unless told otherwise. */
  ordered?: boolean;
}

/**
 * Each item becomes what the promise of `f` brings, with bounded concurrency across batches.
 *
 * At most twice as many items as `concurrency` are begun and not handed on: a slow sink stops the source.
 */
export function asyncMap<A, B>(f: (item: A) => Awaitable<B>, options: AsyncMapOptions = {}): Stage<A, B> {
  const { concurrency = 8, ordered = true } = options;
  return make({ kind: "asyncMap", f: checkedFunction(f), concurrency: whole(concurrency, 1), ordered });
}

/** Whether something is a stage. */
export function isStage(value: unknown): value is Stage<any, any> {
  return typeof value === "object" && value !== null && "stage" in value;
}

/** A function, or an error that says so. */
export function checkedFunction<F>(f: F): F {
  if (typeof f === "function") return f;
  throw new MillstreamError("argument_invalid", { found: f === null ? "null" : typeof f, expected: "a function" });
}

function whole(count: number, least: number): number {
  if ((Number.isSafeInteger(count) || count === Number.POSITIVE_INFINITY) && count >= least) return count;
  throw new MillstreamError("invalid_option", { found: String(count), expected: `a whole number, ${least} or more` });
}
