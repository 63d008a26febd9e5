/** What the parts of a pipeline know of each other: types only, so that no file has to import one that imports it. */

import type { CommandEnd, MillstreamError } from "../error.js";

/** The result of a stage's function, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>;

declare const types: unique symbol;

/** A part of a pipeline, for the compiler: its input type, its output type, and whether it is a stage or a sink. */
export interface Part<A, B, K> {
  readonly [types]?: { takes: (item: A) => void; gives: B; kind: K };
}

/** A sink at work. */
export interface RunningSink {
  /** Takes items; returns a promise if it is full. */
  write(items: any[]): void | PromiseLike<void>;
  /** After the last item: the sink's own result. */
  finish(): Promise<unknown>;
  /** Instead of `finish`, after an error: items taken before are written, but the output is not marked as complete. With `now` it waits for nothing. */
  abandon(error: unknown, now: boolean): Promise<void>;
}

/** What one stage has done. */
export interface StageStatistics {
  /** What it is: `map`, `filter`, … */
  readonly name: string;
  /** Items that came out, and that went in. */
  items: number;
  itemsIn: number;
  /** Milliseconds spent in it, including promises that it waited for. */
  time: number;
}

/** What a pipeline has done. */
export interface Summary {
  /** Records that the source has delivered. */
  records: number;
  /** Items that came out of the last stage, and that the sink has taken. */
  items: number;
  /** Records for which a stage failed and that were omitted, as `onError` allows. */
  failed: number;
  /** Whether a stage such as `take` ended it before its source did. */
  endedEarly: boolean;
  /** How the sources' commands ended. If the pipeline ended early, this is neither success nor failure. */
  commands: readonly CommandEnd[];
  /** The first of those failures. */
  firstFailure: MillstreamError | undefined;
  /** Milliseconds in all. */
  elapsed: number;
  /** Of these, waiting for the source and for the sink, with `stats: true`. */
  sourceWaited: number;
  sinkWaited: number;
  /** Each stage, with `stats: true`. */
  stages: readonly StageStatistics[];
}

/** What to do with a record for which a stage fails. */
export type OnError =
  /** The pipeline ends; results of earlier records reach the sink. */
  | "stop"
  /** The record is omitted and counted. */
  | "skip"
  /** The stage's input item goes to this sink, or to this function together with the error. */
  | { readonly quarantine: unknown };
