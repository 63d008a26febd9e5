/** The state that the parts of a running pipeline share: options, counters, and cancellation.
 */

import { cancelled, MillstreamError } from "../error.js";
import { STAGE_FAILED } from "../errors.js";
import type { RunningSink } from "../sink/sink.js";
import type { Stamping } from "./loop.js";
import type { StageStatistics, Summary } from "./types.js";

/** Shared by the parts of one run. */
export class Context {
  readonly stages: StageStatistics[] = [];
  readonly summary: Summary = {
    records: 0,
    items: 0,
    failed: 0,
    endedEarly: false,
    commands: [],
    firstFailure: undefined,
    elapsed: 0,
    sourceWaited: 0,
    sinkWaited: 0,
    stages: this.stages,
  };
  readonly #quarantine: RunningSink | undefined;
  #waiting: any[] = [];
  /**
   * Ends the waits in progress. The signal has one listener for all of them, because many would be reported as a
   * leak.
   */
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

  /** Waits for a promise, unless the pipeline is cancelled before. */
  orCancelled<T>(promise: PromiseLike<T>): Promise<T> {
    const { signal } = this;
    if (signal === undefined) return promise as Promise<T>;
    if (signal.aborted) {
      // Its result is ignored after a cancellation.
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

  /** Called when a stage has failed for a record; returns whether the pipeline continues without it. */
  goesOnWithout(item: unknown, error: MillstreamError): boolean {
    if (this.policy === "stop") return false;
    this.summary.firstFailure ??= error;
    this.summary.failed++;
    if (this.policy === "quarantine") this.#waiting.push({ item, error });
    return true;
  }

  /** Passes an item to the quarantine; returns a promise if that takes time. */
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

  async abandonQuarantine(error: unknown, now: boolean): Promise<void> {
    if (!now) await this.isolate()?.catch(() => {});
    await this.#quarantine?.abandon(error, now);
  }

  /** Stops the remaining parts of a pipeline that has failed. `abandon(false)` may wait until sinks have accepted
   * earlier items; if the pipeline is cancelled, `abandon(true)` is called instead, which does not wait.
   */
  async giveUp(abandon: (now: boolean) => Promise<unknown>): Promise<void> {
    if (!this.signal?.aborted) await this.orCancelled(abandon(false)).catch(() => {});
    if (this.signal?.aborted) await abandon(true).catch(() => {});
  }

  async #isolate(waiting: { item: unknown; error: MillstreamError }[]): Promise<void> {
    await this.#quarantine?.write(waiting);
  }
}

/** Creates the error of a stage that has failed. */
export function stageFailed(stage: number, record: number, cause: unknown): MillstreamError {
  return new MillstreamError(STAGE_FAILED, { stage, record, cause });
}
