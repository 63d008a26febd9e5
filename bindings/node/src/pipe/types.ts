/** Types that the parts of a pipeline share. They are in a separate file to avoid cyclic imports. */

import type { CommandEnd, MillstreamError } from "../error.js";
import type { Stamping } from "./loop.js";

/** The result of a stage's function, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>;

declare const types: unique symbol;

/** A part of a pipeline, for the compiler: its input type, its output type, and whether it is a stage or a sink. */
export interface Part<A, B, K> {
  readonly [types]?: { takes: (item: A) => void; gives: B; kind: K };
}

/** The statistics of one stage. */
export interface StageStatistics {
  /** The name: `map`, `filter`, … */
  readonly name: string;
  /** The number of output items, and of input items. */
  items: number;
  itemsIn: number;
  /** The time spent in the stage in milliseconds, including promises that it waited for. */
  time: number;
}

/** The statistics of a pipeline. */
export interface Summary {
  /** The number of records that the source has delivered. */
  records: number;
  /** The number of items that the last stage produced and the sink accepted. */
  items: number;
  /** The number of records for which a stage failed and that were omitted, as `onError` allows. */
  failed: number;
  /** Whether a stage such as `take` ended the pipeline before its source ended. */
  endedEarly: boolean;
  /** How the sources' commands ended. If the pipeline ended early, this is neither success nor failure. */
  commands: readonly CommandEnd[];
  /** The first of those failures. */
  firstFailure: MillstreamError | undefined;
  /** The total time in milliseconds. */
  elapsed: number;
  /** The parts of it that were spent waiting for the source and for the sink, with `stats: true`. */
  sourceWaited: number;
  sinkWaited: number;
  /** The statistics of each stage, with `stats: true`. */
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

/** Options of a pipeline: `pipe.options({ … })(source, …)`. */
export interface PipeOptions {
  /** Whether a stage gets its own loop, created with `new Function` if that is allowed: after enough items (`true`, the
   * default), immediately (`"always"`), or never (`false`).
   */
  stamp?: Stamping | undefined;
  /** Whether the summary includes the statistics of each stage. */
  stats?: boolean | undefined;
  /** What to do with a record for which a stage fails; by default, the pipeline stops. */
  onError?: OnError | undefined;
  /** Stops the pipeline when it is triggered, with an error of kind `cancelled`. */
  signal?: AbortSignal | undefined;
  /** Called at the end, even if the pipeline fails, for sinks whose result is not a summary. */
  onSummary?: ((summary: Summary) => void) | undefined;
}
