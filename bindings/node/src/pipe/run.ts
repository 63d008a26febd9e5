/** The state that the parts of a running pipeline share: options, counters, sinks, and cancellation. */

import { type CommandEnd, cancelled, type ErrorDetails, MillstreamError } from "../error.js";
import { STAGE_FAILED } from "../errors.js";
import { isRecord } from "../record.js";
import type { RunningSink } from "../sink/sink.js";
import { Waits } from "../waits.js";
import { type Block, type BlockSource, placeOf, recordOf, type Source } from "./block.js";
import type { Stamping } from "./loop.js";
import { blocksOf, type PipeSource } from "./source.js";
import type { PipeOptions, StageStatistics, Summary } from "./types.js";

/** An item for which a stage failed. */
interface Failed {
  readonly item: unknown;
  readonly error: MillstreamError;
}

export class Run {
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
  /** What is finished or abandoned at the end, in this order. */
  readonly sinks: RunningSink[] = [];
  readonly stamping: Stamping;
  readonly stats: boolean;
  readonly onError: NonNullable<PipeOptions["onError"]>;
  readonly signal: AbortSignal | undefined;
  readonly #waits: Waits;
  readonly #sources: BlockSource[] = [];
  /** The items that the quarantine has not accepted. */
  #failed: Failed[] = [];
  readonly #quarantine: RunningSink | undefined;

  constructor({ stamp = true, stats = false, onError = "stop", signal }: PipeOptions, quarantine?: RunningSink) {
    this.stamping = stamp;
    this.stats = stats;
    this.onError = onError;
    this.signal = signal;
    this.#waits = new Waits(signal);
    this.#quarantine = quarantine;
    if (quarantine !== undefined) this.sinks.push(this.#afterFailed(quarantine));
  }

  /** Waits for a promise, unless the pipeline is cancelled before. */
  until<T>(promise: PromiseLike<T>): Promise<T> {
    return this.signal === undefined ? (promise as Promise<T>) : this.#waits.until(promise);
  }

  /** Throws if the pipeline has been cancelled. */
  checkSignal(): void {
    if (this.signal?.aborted) throw cancelled(this.signal);
  }

  /** Adds a stage, and returns its number. */
  add(name: string): number {
    return this.stages.push({ name, items: 0, itemsIn: 0, time: 0 }) - 1;
  }

  /** Adds the commands of a source to the summary. */
  adopt(source: BlockSource): BlockSource {
    this.#sources.push(source);
    return source;
  }

  /** Opens a source, whose commands and records are in the summary. */
  open(source: PipeSource<any>): BlockSource {
    const { summary, stats } = this;
    const blocks = this.adopt(blocksOf(source));
    return {
      async next() {
        const began = stats ? performance.now() : 0;
        const block = await blocks.next();
        if (stats) summary.sourceWaited += performance.now() - began;
        if (block !== null) summary.records += block.items.length;
        return block;
      },
      close: () => blocks.close(),
    };
  }

  /** How the commands of the sources ended. */
  commandEnds(): readonly CommandEnd[] {
    return this.#sources.flatMap((source) => source.commandEnds?.() ?? []);
  }

  /** Called when a stage has failed for a record; returns whether the pipeline continues without it. */
  goesOnWithout(item: unknown, error: MillstreamError): boolean {
    if (this.onError === "stop") return false;
    this.summary.firstFailure ??= error;
    this.summary.failed++;
    if (this.#quarantine !== undefined) this.#failed.push({ item, error });
    return true;
  }

  /** Passes failed items to the quarantine; returns a promise if there are any. */
  isolate(): Promise<unknown> | undefined {
    const failed = this.#failed;
    if (failed.length === 0) return undefined;
    this.#failed = [];
    return this.until(Promise.resolve(this.#quarantine?.write(failed)));
  }

  /** Finishes the sinks; returns their results. */
  async finish(): Promise<unknown[]> {
    const results: unknown[] = [];
    for (const sink of this.sinks) results.push(await this.until(sink.finish()));
    return results;
  }

  /** Stops a pipeline that has failed or is not needed. Sinks may wait until they have accepted earlier items, but not
   * if the pipeline is cancelled.
   */
  async abandon(chain: BlockSource, error: unknown): Promise<void> {
    const stop = async (now: boolean) => {
      const closed = chain.close().catch(() => {});
      if (!now) await closed;
      await Promise.allSettled([closed, ...this.sinks.map((sink) => sink.abandon(error, now))]);
    };
    if (!this.signal?.aborted) await this.until(stop(false)).catch(() => {});
    if (this.signal?.aborted) await stop(true);
  }

  /** The sink of the quarantine, which ends after the failed items. */
  #afterFailed(quarantine: RunningSink): RunningSink {
    return {
      write: (failed) => quarantine.write(failed),
      finish: async () => {
        await this.isolate();
        await quarantine.finish();
      },
      abandon: async (error, now) => {
        if (!now) await this.isolate()?.catch(() => {});
        await quarantine.abandon(error, now);
      },
    };
  }
}

/** Creates the error of a stage that has failed. */
export function stageFailed(
  stage: number,
  record: number,
  of: Source | undefined,
  cause: unknown,
  more: ErrorDetails = {},
): MillstreamError {
  const column = cause instanceof MillstreamError ? cause.column : undefined;
  return new MillstreamError(STAGE_FAILED, { ...placeOf(record, of), stage, column, cause, ...more });
}

/** Adds the place of the first item that is no record to the error of a sink that refuses this block. */
export function atRefused(error: unknown, block: Block): unknown {
  if (!(error instanceof MillstreamError) || error.kind !== "argument_invalid") return error;
  const index = block.items.findIndex((item) => !isRecord(item));
  if (index < 0) return error;
  return error.at(placeOf(recordOf(block, index), block.of));
}
