/** Stages: the operations on items. These functions only describe stages; `pipe.ts` and `chain.ts` run them.
 *
 * A stage may be used in several pipelines, and several times in one.
 */

import { misuse } from "../error.js";
import {
  checkedFunction,
  checkOption,
  checkOptions,
  FLAG,
  INFINITE,
  POSITIVE,
  type Rules,
  range,
  show,
} from "../options.js";
import { AsyncMapped } from "./async-map.js";
import type { BlockSource } from "./block.js";
import { EACH, MAP, SCAN } from "./loop.js";
import type { Step } from "./place.js";
import type { Run } from "./run.js";
import { isSink, runningSink, type Sink, type StreamSink } from "./sink.js";
import { BLOCKS, blocksOf, mergeBlocks, type PipeSource } from "./source.js";
import { BatchStep, FilterStep, MapStep, SequentialStep, SkipStep, SpreadStep, TakeStep, TeeStep } from "./step.js";
import type { Awaitable, Part } from "./types.js";

/** A stage that accepts `A` and returns `B`. */
export interface Stage<A, B> extends Part<A, B, "stage"> {
  /** The operation. */
  readonly stage: StageKind;
}

/** What a stage does in a pipeline. It contains its own code, so that a bundle has only that of the stages it uses. */
export type StageKind = {
  /** The name in statistics. */
  readonly kind: string;
} & (
  | {
      /** Creates the steps of a stage that works in place. */
      readonly steps: (run: Run) => Step[];
    }
  | {
      /** Creates the source that replaces the stages before. `stage` is its number. */
      readonly source: (upstream: BlockSource, stage: number, run: Run) => BlockSource;
    }
);

function make<A, B>(stage: StageKind): Stage<A, B> {
  return { stage };
}

/** Replaces each item with the result of `f` for it.
 *
 * If `f` returns a promise, it is called for the items of the batch without waiting (1,024 at a time at most), and then
 * all are awaited at once; order is kept. For slow work use `asyncMap` and set its concurrency.
 */
export function map<A, B>(f: (item: A) => Awaitable<B>): Stage<A, B> {
  checkedFunction(f);
  return make({ kind: "map", steps: ({ stamping }) => [new MapStep("map", MAP, f, stamping)] });
}

/** Keeps the items for which `f` returns true. Promises are awaited as in `map`. */
export function filter<A, B extends A>(f: (item: A) => item is B): Stage<A, B>;
export function filter<A>(f: (item: A) => Awaitable<unknown>): Stage<A, A>;
export function filter<A>(f: (item: A) => Awaitable<unknown>): Stage<A, A> {
  checkedFunction(f);
  return make({ kind: "filter", steps: ({ stamping }) => [new FilterStep(f, stamping)] });
}

/** Replaces each item with none, one or several items: `f` returns an array or another iterable.
 *
 * Any other result fails the stage, even a string: return an array of one.
 */
export function flatMap<A, B>(f: (item: A) => Awaitable<Iterable<B>>): Stage<A, B> {
  checkedFunction(f);
  const steps = ({ stamping }: Run) => [new MapStep("flatMap", MAP, f, stamping), new SpreadStep()];
  return make({ kind: "flatMap", steps });
}

/** Calls `f` with each item and passes the item on. */
export function inspect<A>(f: (item: A) => unknown): Stage<A, A> {
  checkedFunction(f);
  return make({ kind: "inspect", steps: ({ stamping }) => [new MapStep("inspect", EACH, f, stamping)] });
}

/** Passes on the first items and then ends the pipeline: the source is closed, and a command is stopped.
 *
 * Items go through a stage in batches, so earlier stages may have processed items that `take` drops; put `batch(1)`
 * first to prevent this.
 */
export function take<A>(count: number): Stage<A, A> {
  counted("take", count, 0);
  return make({ kind: "take", steps: () => [new TakeStep(count)] });
}

/** Drops the first items. */
export function skip<A>(count: number): Stage<A, A> {
  counted("skip", count, 0);
  return make({ kind: "skip", steps: () => [new SkipStep(count)] });
}

/**
 * Limits the stages after it to this many items at a time. Items stay single items; this stage does not create
 * arrays.
 */
export function batch<A>(count: number): Stage<A, A> {
  counted("batch", count, 1);
  return make({ kind: "batch", steps: () => [new BatchStep(count)] });
}

/** Replaces each item with the result of `f` for a state and the item. `init` creates the state once for each run of
 * the pipeline.
 *
 * If `f` returns a promise, it is awaited before the next call.
 */
export function scanState<A, S, B>(init: () => S, f: (state: S, item: A) => Awaitable<B>): Stage<A, B> {
  checkedFunction(init);
  checkedFunction(f);
  return make({ kind: "scan", steps: ({ stamping }) => [new SequentialStep("scan", SCAN, f, stamping, init())] });
}

/** Also passes each item to a sink. A slow sink stops the source; a sink that fails stops the pipeline. */
export function tee<A>(sink: Sink<A, any> | StreamSink): Stage<A, A> {
  if (!isSink(sink)) throw misuse({ stream: "tee", found: show(sink), expected: "a sink" });
  const steps = ({ stamping, sinks }: Run) => {
    const running = runningSink(sink, stamping);
    sinks.push(running);
    return [new TeeStep(running)];
  };
  return make({ kind: "tee", steps });
}

/** Adds the items of other sources as they arrive. The pipeline ends when all sources have ended, and fails when one
 * fails.
 *
 * It can be used as a source, `pipe(merge(a, b), …)`, or as a stage, `pipe(a, merge(b), …)`.
 */
export function merge<A>(...sources: PipeSource<A>[]): Stage<A, A> & { readonly merged: readonly PipeSource<A>[] } {
  const stage: StageKind = {
    kind: "merge",
    source: (upstream, _, run) => mergeBlocks([upstream, ...sources.map((source) => run.open(source))]),
  };
  return { stage, merged: sources, [BLOCKS]: () => mergeBlocks(sources.map(blocksOf)) } as never;
}

/** Options of `asyncMap`. */
export interface AsyncMapOptions {
  /** The maximum number of calls in progress at once: 8 by default. */
  concurrency?: number | undefined;
  /** Whether results keep the order of the items: true by default. */
  ordered?: boolean | undefined;
}

const ASYNC_RULES: Rules<AsyncMapOptions> = { concurrency: [POSITIVE, INFINITE], ordered: FLAG };

/** Replaces each item with the value to which `f(item)` resolves, with bounded concurrency across batches.
 *
 * At most twice `concurrency` items are started and not passed on, so a slow sink stops the source.
 */
export function asyncMap<A, B>(f: (item: A) => Awaitable<B>, options: AsyncMapOptions = {}): Stage<A, B> {
  checkOptions("asyncMap", options, [ASYNC_RULES]);
  const { concurrency = 8, ordered = true } = options;
  checkedFunction(f);
  return make({
    kind: "asyncMap",
    source: (upstream, stage, run) => new AsyncMapped(upstream, f, concurrency, ordered, stage, run),
  });
}

/** Returns whether a value is a stage. */
export function isStage(value: unknown): value is Stage<any, any> {
  return typeof value === "object" && value !== null && "stage" in value;
}

function counted(call: string, count: number, least: number): void {
  checkOption(call, "count", count ?? null, [range(least), INFINITE]);
}
