/**
 * What the parts of one running pipeline share: its options, its counts, and how it is cancelled.
 */

import { cancelled, MillstreamError } from "../error.js";
import type { Stamping } from "./loop.js";
import type { RunningSink } from "./sink.js";

/** What one stage has done. */
export interface StageStatistics {
  /** What it is: `map`, `filter`, … */
  readonly kind: string;
  /** Items that went in, and that came out. */
  recordsIn: number;
  recordsOut: number;
  /** Milliseconds spent in it, promises that it waited for included. */
  elapsed: number;
}

/** What a pipeline has done. */
export interface Summary {
  /** Records that the source has delivered. */
  recordsIn: number;
  /** Items that the sink has taken. */
  recordsOut: number;
  /** Records left out because a stage failed for them, by `onError: "skip"`. */
  skipped: number;
  /** The same with `onError: { quarantine }`. */
  quarantined: number;
  /** The first of those failures. */
  firstFailure: MillstreamError | undefined;
  /** Milliseconds in all. */
  elapsed: number;
  /** Of these, waiting for the source and for the sink, with `stats: true`. */
  waitedForSource: number;
  waitedForSink: number;
  /** Each stage, with `stats: true`. */
  stages: readonly StageStatistics[];
}

/** What becomes of a record for which a stage fails. */
export type OnError =
  /** The pipeline ends; what came before reaches the sink. */
  | "stop"
  /** The record is left out and counted. */
  | "skip"
  /** The item that went into the stage goes to this sink, or to this function together with the error. */
  | { readonly quarantine: unknown };

/** Shared by the parts of one run. */
export class Context {
  readonly stages: StageStatistics[] = [];
  readonly summary: Summary = {
    recordsIn: 0,
    recordsOut: 0,
    skipped: 0,
    quarantined: 0,
    firstFailure: undefined,
    elapsed: 0,
    waitedForSource: 0,
    waitedForSink: 0,
    stages: this.stages,
  };
  readonly #quarantine: RunningSink | undefined;
  #waiting: any[] = [];
  /** What ends the waits that are under way. The signal has one listener for them all: many are taken for a leak. */
  readonly #waits = new Set<(error: MillstreamError) => void>();

  constructor(
    readonly stamping: Stamping,
    readonly stats: boolean,
    readonly policy: "stop" | "skip" | "quarantine",
    readonly signal: AbortSignal | undefined,
    quarantine: RunningSink | undefined,
  ) {
    this.#quarantine = quarantine;
  }

  /** A promise, unless the pipeline is cancelled before. */
  orCancelled<T>(promise: PromiseLike<T>): Promise<T> {
    const { signal } = this;
    if (signal === undefined) return promise as Promise<T>;
    if (signal.aborted) {
      // What becomes of it is nobody's business any more.
      promise.then(undefined, () => {});
      return Promise.reject(cancelled(signal));
    }
    const waits = this.#waits;
    return new Promise((resolve, reject) => {
      if (waits.size === 0) signal.addEventListener("abort", this.#cancel);
      waits.add(reject);
      const forget = () => {
        waits.delete(reject);
        if (waits.size === 0) signal.removeEventListener("abort", this.#cancel);
      };
      promise.then(
        (value) => {
          forget();
          resolve(value);
        },
        (error) => {
          forget();
          reject(error);
        },
      );
    });
  }

  readonly #cancel = (): void => {
    for (const reject of this.#waits) reject(cancelled(this.signal!));
  };

  /** Throws if the pipeline has been cancelled. */
  checkSignal(): void {
    if (this.signal?.aborted) throw cancelled(this.signal);
  }

  /** A stage has failed for a record: whether the pipeline goes on without it. */
  goesOnWithout(item: unknown, error: MillstreamError): boolean {
    if (this.policy === "stop") return false;
    this.summary.firstFailure ??= error;
    if (this.policy === "skip") this.summary.skipped++;
    else {
      this.summary.quarantined++;
      this.#waiting.push({ item, error });
    }
    return true;
  }

  /** Hands over what is to go to the quarantine; a promise if that takes time. */
  isolate(): Promise<void> | undefined {
    if (this.#waiting.length === 0) return undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    return this.#isolate(waiting);
  }

  /** Ends the quarantine's sink. */
  async finishQuarantine(): Promise<void> {
    await this.isolate();
    await this.#quarantine?.finish();
  }

  async abandonQuarantine(error: unknown): Promise<void> {
    await this.isolate()?.catch(() => {});
    await this.#quarantine?.abandon(error);
  }

  async #isolate(waiting: { item: unknown; error: MillstreamError }[]): Promise<void> {
    await this.#quarantine?.write(waiting);
  }
}

/** The error of a stage that has failed. */
export function stageFailed(stage: number, record: number, cause: unknown): MillstreamError {
  return new MillstreamError("stage_failed", { stage, record, cause });
}
