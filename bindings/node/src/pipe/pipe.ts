/** `pipe` connects a source, stages, and a sink.
 *
 * A pipeline owns its arguments: at the end, the source is always closed and the sink is finished or aborted. Errors
 * only reject the promise that `pipe` returns.
 */

import { type CommandEnd, fromSystem, misuse } from "../error.js";
import { IO } from "../errors.js";
import { abortSignal, boolean, callable, checkOptions, either, type Rules, word } from "../options.js";
import type { RunningSink } from "../sink/sink.js";
import type { Block, BlockSource } from "./block.js";
import { Chain, type Link } from "./chain.js";
import { Context } from "./context.js";
import { isPromise, type Stamping } from "./loop.js";
import type { Step } from "./place.js";
import { isSink, runningSink, type Sink, type StreamSink, type StreamSummary } from "./sink.js";
import { BLOCKS, blocksOf, type PipeSource } from "./source.js";
import { isStage, type Stage, type StageKind } from "./stage.js";
import type { OnError, Part, Summary } from "./types.js";

/** Options of a pipeline: `pipe.options({ … })(source, …)`. */
export interface PipeOptions {
  /** Whether a stage gets its own loop, created with `new Function` if that is allowed: after enough items (`true`, the
   * default), immediately (`"always"`), or never (`false`).
   */
  stamp?: boolean | "always" | undefined;
  /** Whether the summary includes the statistics of each stage. */
  stats?: boolean | undefined;
  /** What to do with a record for which a stage fails; by default, the pipeline stops. */
  onError?: OnError | undefined;
  /** Stops the pipeline when it is triggered, with an error of kind `cancelled`. */
  signal?: AbortSignal | undefined;
  /** Called at the end, even if the pipeline fails, for sinks whose result is not a summary. */
  onSummary?: ((summary: Summary) => void) | undefined;
}

export const PIPE_RULES: Rules<PipeOptions> = {
  stamp: either(boolean, word("always")),
  stats: boolean,
  onError: {
    expected: '"stop", "skip" or { quarantine: a function or a sink }',
    accepts: (value) => value === "stop" || value === "skip" || isQuarantine(value),
  },
  signal: abortSignal,
  onSummary: callable,
};

function isQuarantine(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Object.keys(value).join() !== "quarantine") return false;
  const { quarantine } = value as { quarantine: unknown };
  return typeof quarantine === "function" || isSink(quarantine);
}

/** A source and stages, without a sink: it can be iterated, or be the source of another pipeline. */
export class Pipeline<A> implements AsyncIterable<A>, AsyncDisposable {
  readonly #blocks: BlockSource;
  readonly #finish: () => Promise<void>;
  readonly #abandon: (error: unknown) => Promise<void>;
  #items: A[] = [];
  #index = 0;
  #ended = false;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(blocks: BlockSource, finish: () => Promise<void>, abandon: (error: unknown) => Promise<void>) {
    this.#blocks = blocks;
    this.#finish = finish;
    this.#abandon = abandon;
  }

  /** Iterates over the items. After a loop ends early, another one can continue; `close` stops the pipeline. */
  [Symbol.asyncIterator](): AsyncIterableIterator<A> {
    const refill = async (): Promise<IteratorResult<A>> => {
      while (this.#index >= this.#items.length) {
        if (!(await this.#inTurn(() => this.#refill()))) return END;
      }
      return { done: false, value: this.#items[this.#index++] };
    };
    return iterator(() =>
      this.#index < this.#items.length ? Promise.resolve({ done: false, value: this.#items[this.#index++] }) : refill(),
    );
  }

  /** Iterates over arrays of items as they arrive, which is faster. */
  batches(): AsyncIterableIterator<A[]> {
    return iterator(async () => {
      const items = await this.#inTurn(() => this.#take());
      return items === null ? END : { done: false, value: items };
    });
  }

  /** Stops the pipeline: closes the source and aborts the sinks of `tee` stages. */
  async close(): Promise<void> {
    this.#items = [];
    if (this.#ended) return;
    this.#ended = true;
    await this.#abandon(undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The blocks, for pipelines that read from this one. */
  [BLOCKS](): BlockSource {
    return {
      next: () => this.#inTurn(() => this.#nextBlock()),
      close: () => this.close(),
    };
  }

  #inTurn<R>(call: () => Promise<R>): Promise<R> {
    const result = this.#turn.then(call);
    this.#turn = result.catch(() => {});
    return result;
  }

  async #refill(): Promise<boolean> {
    if (this.#index < this.#items.length) return true;
    const block = await this.#nextBlock();
    if (block === null) return false;
    this.#items = block.items;
    this.#index = 0;
    return true;
  }

  async #take(): Promise<A[] | null> {
    if (!(await this.#refill())) return null;
    const items = this.#index === 0 ? this.#items : this.#items.slice(this.#index);
    this.#items = [];
    return items;
  }

  async #nextBlock(): Promise<Block | null> {
    if (this.#ended) return null;
    try {
      const block = await this.#blocks.next();
      if (block === null) {
        this.#ended = true;
        await this.#finish();
      }
      return block;
    } catch (error) {
      this.#ended = true;
      await this.#abandon(error);
      throw fromSystem(error, IO);
    }
  }
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** An iterator that another loop can continue after an early exit: `return` does not stop it. */
function iterator<I>(next: () => Promise<IteratorResult<I>>): AsyncIterableIterator<I> {
  return {
    next,
    return: (value?: unknown) => Promise.resolve({ done: true as const, value }),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
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
export const pipe: Pipe = withOptions({});

// @__NO_SIDE_EFFECTS__
function withOptions(options: PipeOptions): Pipe {
  const run = (source: PipeSource<any>, ...parts: unknown[]) => start(source, parts.flat(), options);
  run.options = (more: PipeOptions) => {
    checkOptions("pipe.options", more, PIPE_RULES);
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
  const context = contextOf(options);
  const build = new Build(blocksOf(source), context);
  for (const { stage } of parts as Stage<any, any>[]) build.add(stage);
  if (sink !== undefined) return run(build, sink, context, options);
  const chain = build.end();
  return new Pipeline(
    chain,
    async () => {
      await context.orCancelled(build.finish());
      await context.orCancelled(context.finishQuarantine());
    },
    (error) =>
      context.giveUp(async (now) => {
        const closed = chain.close();
        if (!now) await closed;
        const sinks = [build.abandon(error, now), context.abandonQuarantine(error, now)];
        await Promise.allSettled([closed, ...sinks]);
      }),
  );
}

function contextOf(options: PipeOptions): Context {
  const { stamp = true, stats = false, onError = "stop", signal } = options;
  const stamping: Stamping = stamp === "always" ? "always" : stamp ? "worthwhile" : "never";
  if (typeof onError === "string") return new Context(stamping, stats, onError, signal, undefined);
  const { quarantine } = onError;
  return new Context(stamping, stats, "quarantine", signal, quarantineSink(quarantine, stamping));
}

/** Returns the sink of a quarantine: a function gets items and errors, a sink gets only the items. */
function quarantineSink(quarantine: unknown, stamping: Stamping): RunningSink {
  if (typeof quarantine === "function") {
    return {
      async write(failures) {
        for (const { item, error } of failures) await quarantine(item, error);
      },
      finish: () => Promise.resolve(),
      abandon: () => Promise.resolve(),
    };
  }
  const sink = runningSink(quarantine, stamping);
  return {
    write: (failures) => sink.write(failures.map(({ item }) => item)),
    finish: () => sink.finish(),
    abandon: (error, now) => sink.abandon(error, now),
  };
}

/** Combines chains: a stage that overlaps its calls, or that merges sources, ends one chain and starts another. */
class Build {
  #source: BlockSource;
  #links: Link[] = [];
  #chains: Chain[] = [];
  #stage = 0;
  readonly #sources: BlockSource[] = [];

  constructor(
    source: BlockSource,
    readonly context: Context,
  ) {
    this.#source = this.#counted(source);
  }

  add(kind: StageKind): void {
    const stage = this.#stage++;
    this.context.stages.push({ name: kind.kind, items: 0, itemsIn: 0, time: 0 });
    if ("source" in kind) {
      const open = (source: PipeSource<any>) => this.#counted(blocksOf(source));
      const adopt = (source: BlockSource) => this.#adopted(source);
      this.#source = kind.source(this.#upstream(), { stage, context: this.context, open, adopt });
    } else {
      for (const step of kind.steps(this.context.stamping)) this.#links.push({ step, stage });
    }
  }

  /** The step of a sink. */
  addSink(step: Step): void {
    this.context.stages.push({ name: step.kind, items: 0, itemsIn: 0, time: 0 });
    this.#links.push({ step, stage: this.#stage++ });
  }

  end(): Chain {
    const chain = new Chain(this.#source, this.#links, this.context);
    this.#links = [];
    this.#chains.push(chain);
    return chain;
  }

  /** The results so far. */
  #upstream(): BlockSource {
    return this.#links.length === 0 ? this.#source : this.end();
  }

  async finish(): Promise<void> {
    for (const chain of this.#chains) await chain.finishSteps();
  }

  async abandon(error: unknown, now: boolean): Promise<void> {
    for (const chain of this.#chains) await chain.abandonSteps(error, now);
  }

  /** How the commands of the sources ended. */
  commandEnds(): readonly CommandEnd[] {
    return this.#sources.flatMap((source) => source.commandEnds?.() ?? []);
  }

  #adopted(source: BlockSource): BlockSource {
    this.#sources.push(source);
    return source;
  }

  #counted(source: BlockSource): BlockSource {
    this.#adopted(source);
    const { context } = this;
    const { summary } = context;
    return {
      async next() {
        const began = context.stats ? performance.now() : 0;
        const block = await source.next();
        if (context.stats) summary.sourceWaited += performance.now() - began;
        if (block !== null) summary.records += block.items.length;
        return block;
      },
      close: () => source.close(),
    };
  }
}

async function run(
  build: Build,
  sink: Sink<any, any> | StreamSink,
  context: Context,
  options: PipeOptions,
): Promise<unknown> {
  const began = performance.now();
  const { summary, stamping } = context;
  const own = "sink" in sink ? (sink as Sink<any, any>).sink(stamping) : undefined;
  const running = own?.running ?? runningSink(sink, stamping);
  if (own?.step !== undefined) build.addSink(own.step);
  const chain = build.end();
  try {
    await intoSink(chain, own?.step === undefined ? running : undefined, context);
    const end = await context.orCancelled(running.finish());
    await context.orCancelled(build.finish());
    await context.orCancelled(context.finishQuarantine());
    summary.commands = build.commandEnds();
    const result = own?.result ?? (() => (end === undefined ? summary : { ...summary, writer: end }));
    summary.elapsed = performance.now() - began;
    return result(summary);
  } catch (error) {
    await context.giveUp(async (now) => {
      const closed = chain.close().catch(() => {});
      if (!now) await closed;
      const sinks = [running.abandon(error, now), build.abandon(error, now), context.abandonQuarantine(error, now)];
      await Promise.allSettled([closed, ...sinks]);
    });
    throw fromSystem(error, IO);
  } finally {
    summary.commands = build.commandEnds();
    summary.elapsed = performance.now() - began;
    options.onSummary?.(summary);
  }
}

/** Passes every block to the sink. If the sink is a step, it has processed its items already. */
async function intoSink(chain: Chain, sink: RunningSink | undefined, context: Context): Promise<void> {
  const { summary } = context;
  for (;;) {
    const block = await chain.next();
    if (block === null) return;
    const { length } = block.items;
    const writing = sink?.write(block.items);
    if (isPromise(writing)) {
      const began = context.stats ? performance.now() : 0;
      await context.orCancelled(writing);
      if (context.stats) summary.sinkWaited += performance.now() - began;
    }
    summary.items += length;
  }
}
