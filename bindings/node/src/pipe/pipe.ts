/** `pipe` connects a source, stages, and a sink.
 *
 * A pipeline owns its arguments: at the end, the source is always closed and the sink is finished or aborted. Errors
 * only reject the promise that `pipe` returns.
 */

import { fromSystem, misuse } from "../error.js";
import { IO } from "../errors.js";
import { END, resumable, Turns } from "../iterate.js";
import { checkOptions, FLAG, FUNCTION, type Rules, SIGNAL } from "../options.js";
import type { RunningSink } from "../sink/sink.js";
import type { Block, BlockSource } from "./block.js";
import { chainOf, type Link } from "./chain.js";
import { isPromise } from "./loop.js";
import { atRefused, Run } from "./run.js";
import { isSink, plain, runningSink, type Sink, type StreamSink, type StreamSummary, sinkOf } from "./sink.js";
import { BLOCKS, type PipeSource } from "./source.js";
import { isStage, type Stage } from "./stage.js";
import type { Part, PipeOptions } from "./types.js";

export const PIPE_RULES: Rules<PipeOptions> = {
  stamp: [FLAG, "always"],
  stats: FLAG,
  onError: {
    expected: '"stop", "skip" or { quarantine: a function or a sink }',
    accepts: (value) => value === "stop" || value === "skip" || isQuarantine(value),
  },
  signal: SIGNAL,
  onSummary: FUNCTION,
};

function isQuarantine(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Object.keys(value).join() !== "quarantine") return false;
  const { quarantine } = value as { quarantine: unknown };
  return typeof quarantine === "function" || isSink(quarantine);
}

/** A source and stages, without a sink: it can be iterated, or be the source of another pipeline. */
export class Pipeline<A> implements AsyncIterable<A>, AsyncDisposable {
  readonly #blocks: BlockSource;
  #items: A[] = [];
  #index = 0;
  #hasEnded = false;
  readonly #turns = new Turns();

  /** @internal */
  constructor(blocks: BlockSource) {
    this.#blocks = blocks;
    // A method with this name would keep the class in every bundle, because bundlers do not evaluate the name.
    Object.defineProperty(this, BLOCKS, { value: () => this.#asSource() });
  }

  /** Iterates over the items. After a loop ends early, another one can continue; `close` stops the pipeline. */
  [Symbol.asyncIterator](): AsyncIterableIterator<A> {
    const one = (): IteratorResult<A> => ({ done: false, value: this.#items[this.#index++] });
    return resumable(() =>
      this.#index < this.#items.length
        ? Promise.resolve(one())
        : this.#turns.take(async () => ((await this.#refill()) ? one() : END)),
    );
  }

  /** Iterates over arrays of items as they arrive, which is faster. */
  batches(): AsyncIterableIterator<A[]> {
    return resumable(() =>
      this.#turns.take(async () => {
        if (!(await this.#refill())) return END;
        const value = this.#items.slice(this.#index);
        this.#items = [];
        return { done: false, value };
      }),
    );
  }

  /** Stops the pipeline: closes the source and aborts the sinks of `tee` stages. */
  async close(): Promise<void> {
    this.#items = [];
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    await this.#blocks.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The blocks, for pipelines that read from this one. */
  #asSource(): BlockSource {
    return {
      next: () => this.#turns.take(() => this.#nextBlock()),
      close: () => this.close(),
    };
  }

  /** Makes sure that there are items; returns false at the end. */
  async #refill(): Promise<boolean> {
    if (this.#index < this.#items.length) return true;
    const block = await this.#nextBlock();
    if (block !== null) this.#items = block.items;
    this.#index = 0;
    return block !== null;
  }

  async #nextBlock(): Promise<Block | null> {
    if (this.#hasEnded) return null;
    try {
      const block = await this.#blocks.next();
      if (block === null) this.#hasEnded = true;
      return block;
    } catch (error) {
      this.#hasEnded = true;
      await this.#blocks.close(error);
      throw fromSystem(error, IO);
    }
  }
}

/** The result of a pipeline: a `Pipeline` if the last part is a stage, or a promise of the sink's result. */
export type Ending<B, K> = K extends "stage" ? Pipeline<B> : K extends "sink" ? Promise<B> : Promise<StreamSummary>;

/** The type of `pipe`, with and without options. */
export interface Pipe {
  <A>(source: PipeSource<A>): Pipeline<A>;
  <A, B, K>(source: PipeSource<A>, last: Part<A, B, K> | StreamSink): Ending<B, K>;
  <A, B, C, K>(source: PipeSource<A>, a: Stage<A, B>, last: Part<B, C, K> | StreamSink): Ending<C, K>;
  <A, B, C, D, K>(
    source: PipeSource<A>,
    a: Stage<A, B>,
    b: Stage<B, C>,
    last: Part<C, D, K> | StreamSink,
  ): Ending<D, K>;
  <A, B, C, D, E, K>(
    source: PipeSource<A>,
    a: Stage<A, B>,
    b: Stage<B, C>,
    c: Stage<C, D>,
    last: Part<D, E, K> | StreamSink,
  ): Ending<E, K>;
  <A, B, C, D, E, F, K>(
    source: PipeSource<A>,
    a: Stage<A, B>,
    b: Stage<B, C>,
    c: Stage<C, D>,
    d: Stage<D, E>,
    last: Part<E, F, K> | StreamSink,
  ): Ending<F, K>;
  <A, B, C, D, E, F, G, K>(
    source: PipeSource<A>,
    a: Stage<A, B>,
    b: Stage<B, C>,
    c: Stage<C, D>,
    d: Stage<D, E>,
    e: Stage<E, F>,
    last: Part<F, G, K> | StreamSink,
  ): Ending<G, K>;
  <A, B, C, D, E, F, G, H, K>(
    source: PipeSource<A>,
    a: Stage<A, B>,
    b: Stage<B, C>,
    c: Stage<C, D>,
    d: Stage<D, E>,
    e: Stage<E, F>,
    f: Stage<F, G>,
    last: Part<G, H, K> | StreamSink,
  ): Ending<H, K>;
  <A, B, C, D, E, F, G, H, I, K>(
    source: PipeSource<A>,
    a: Stage<A, B>,
    b: Stage<B, C>,
    c: Stage<C, D>,
    d: Stage<D, E>,
    e: Stage<E, F>,
    f: Stage<F, G>,
    g: Stage<G, H>,
    last: Part<H, I, K> | StreamSink,
  ): Ending<I, K>;
  <A, B, C, D, E, F, G, H, I, J, K>(
    source: PipeSource<A>,
    a: Stage<A, B>,
    b: Stage<B, C>,
    c: Stage<C, D>,
    d: Stage<D, E>,
    e: Stage<E, F>,
    f: Stage<F, G>,
    g: Stage<G, H>,
    h: Stage<H, I>,
    last: Part<I, J, K> | StreamSink,
  ): Ending<J, K>;
  /** Stages chosen at run time, and any number of them. */
  <A, B = unknown>(source: PipeSource<A>, stages: readonly Stage<any, any>[]): Pipeline<B>;
  <A, B, R, K>(
    source: PipeSource<A>,
    stages: readonly Stage<any, any>[],
    sink: Part<B, R, K> | StreamSink,
  ): Ending<R, K>;
  /** Returns `pipe` with these options. */
  options(options: PipeOptions): Pipe;
}

/** Sends the items of a source through stages into a sink, and returns a promise of the sink's result.
 *
 * Without a sink, it returns a `Pipeline`, which can be iterated or be the source of another one. Items go through a
 * stage in batches; `batch(n)` limits their size. At the end, the source is closed, and the sink is finished or, after
 * an error, aborted.
 */
export const pipe: Pipe = /* @__PURE__ */ withOptions({});

function withOptions(options: PipeOptions): Pipe {
  const run = (source: PipeSource<any>, ...parts: unknown[]) => start(source, parts.flat(), options);
  run.options = (more: PipeOptions) => {
    checkOptions("pipe.options", more, [PIPE_RULES]);
    return withOptions({ ...options, ...more });
  };
  return run as Pipe;
}

function start(source: PipeSource<any>, parts: unknown[], options: PipeOptions): unknown {
  const last = parts.at(-1);
  const sink = isSink(last) ? (parts.pop() as Sink<any, any> | StreamSink) : undefined;
  const wrong = parts.find((part) => !isStage(part));
  if (wrong !== undefined) {
    const found = wrong === null ? "null" : typeof wrong;
    throw misuse({ found, expected: "stages, and a sink as the last" });
  }
  const run = new Run(options, quarantineOf(options));
  let blocks = run.open(source);
  let links: Link[] = [];
  for (const { stage: kind } of parts as Stage<any, any>[]) {
    const stage = run.add(kind.kind);
    if ("source" in kind) {
      // A stage that overlaps its calls, or that merges sources, ends one chain and starts another.
      blocks = kind.source(links.length === 0 ? blocks : chainOf(blocks, links, run), stage, run);
      links = [];
    } else {
      for (const step of kind.steps(run)) links.push({ step, stage });
    }
  }
  if (sink !== undefined) return intoSink(blocks, links, sink, run, options);
  const chain = chainOf(blocks, links, run);
  return new Pipeline({
    async next() {
      const block = await chain.next();
      if (block === null) await run.finish();
      return block;
    },
    close: (error) => run.abandon(chain, error),
  });
}

/** The sink for failed items: a function gets each item and its error, a sink the items. */
function quarantineOf({ stamp = true, onError = "stop" }: PipeOptions): RunningSink | undefined {
  if (typeof onError === "string") return undefined;
  const { quarantine } = onError;
  if (typeof quarantine !== "function") {
    const sink = runningSink(quarantine, stamp);
    return {
      write: (failed) => sink.write(failed.map(({ item }) => item)),
      finish: () => sink.finish(),
      abandon: (error, now) => sink.abandon(error, now),
    };
  }
  return plain(async (failed) => {
    for (const { item, error } of failed) await quarantine(item, error);
  });
}

async function intoSink(
  blocks: BlockSource,
  links: Link[],
  sink: Sink<any, any> | StreamSink,
  run: Run,
  { onSummary }: PipeOptions,
): Promise<unknown> {
  const start = performance.now();
  const { stats, summary } = run;
  const own = sinkOf(sink, run.stamping);
  const { step, running, result } = own;
  run.sinks.unshift(running);
  // A sink that is a step has processed its items when they leave the chain.
  if (step !== undefined) links.push({ step, stage: run.add(step.kind), isSink: true });
  const chain = chainOf(blocks, links, run);
  let end: unknown;
  let written: Block | undefined;
  try {
    for (;;) {
      const block = await chain.next();
      if (block === null) break;
      const { length } = block.items;
      const began = stats ? performance.now() : 0;
      written = block;
      const writing = step === undefined ? running.write(block.items) : undefined;
      if (isPromise(writing)) {
        await run.until(writing);
        if (stats) summary.sinkWaited += performance.now() - began;
      }
      written = undefined;
      summary.items += length;
    }
    [end] = await run.finish();
  } catch (raised) {
    const error = written === undefined ? raised : atRefused(raised, written);
    await run.abandon(chain, error);
    throw fromSystem(error, IO);
  } finally {
    summary.commands = run.commandEnds();
    summary.elapsed = performance.now() - start;
    onSummary?.(summary);
  }
  if (result !== undefined) return result(summary);
  return end === undefined ? summary : { ...summary, writer: end };
}
