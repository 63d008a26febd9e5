/** `parallel`: a function that worker threads call for the items of a pipeline.
 *
 * Batches of items cross between threads, not single items. Records that are bytes are packed into one block of memory,
 * which is transferred instead of copied. A batch is as large as a thread processes in about `TARGET` milliseconds, so that
 * slow functions keep all threads busy and fast ones are not delayed by messages.
 *
 * Results leave in order, and an error leaves after the results of all items before it. At most two batches per thread are
 * begun and not passed on, so a slow sink stops the source.
 */

import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { MillstreamError, misuse } from "../error.js";
import { INVALID_OPTION, OPEN_FAILED, STAGE_PANICKED } from "../errors.js";
import { checkOptions, FLAG, type Rules, range, show, TEXT } from "../options.js";
import { type Block, type BlockSource, recordOf, type Source } from "./block.js";
import { type Run, stageFailed } from "./run.js";
import type { Stage } from "./stage.js";
import type { Awaitable } from "./types.js";
import { type Answer, pack, program, type Task, unpack } from "./worker.js";

/** The time in milliseconds that a batch should take. */
const TARGET = 4;

/** The maximum number of items in a batch. */
const MOST = 4096;

/** What the message says about a function that refers to a variable that its thread does not have. */
const SELF_CONTAINED =
  "a function that uses only its argument and globals, because it runs in a worker thread, which gets nothing else";

/** Options of `parallel`. */
export interface ParallelOptions {
  /** The number of worker threads: by default one for each processor. They are started when they are needed. */
  workers?: number | undefined;
  /** Whether results keep the order of the items: true by default. */
  ordered?: boolean | undefined;
  /** The name of the function that the module exports: `"default"` by default. */
  export?: string | undefined;
}

const PARALLEL_RULES: Rules<ParallelOptions> = {
  workers: /* @__PURE__ */ range(1, 1024),
  ordered: FLAG,
  export: TEXT,
};

/** Replaces each item with the result of a function that worker threads call; order is kept.
 *
 * `work` is a module that exports the function, as a file URL or a path, such as `new URL("./work.js", import.meta.url)`; or a
 * function that uses nothing but its argument and globals, because only its source reaches the threads. It may be
 * asynchronous; a thread calls it for one item at a time.
 *
 * Items and results are copied as `structuredClone` does: functions and classes are lost. Bytes are passed on fastest.
 *
 * ```js
 * await pipe(lines("1\n2\n"), parallel((line) => Number(line) ** 2, { workers: 2 }), collect()); // [1, 4]
 * ```
 *
 * @throws `argument_invalid`, `invalid_option`. In the pipeline: `open_failed` for a module that cannot be loaded,
 * `stage_failed` for a function that throws, and `stage_panicked` for a thread that exits or runs out of memory.
 */
export function parallel<A, B>(
  work: ((item: A) => Awaitable<B>) | URL | string,
  options: ParallelOptions = {},
): Stage<A, B> {
  checkOptions("parallel", options, [PARALLEL_RULES]);
  const { workers = availableParallelism(), ordered = true } = options;
  const task = taskOf(work, options.export);
  return {
    stage: {
      kind: "parallel",
      source: (upstream, stage, run) => new Parallel(upstream, task, workers, ordered, stage, run),
    },
  };
}

function taskOf(work: unknown, name: string | undefined): Task {
  if (work instanceof URL) return { module: work.href, name: name ?? "default" };
  if (typeof work === "string" && work !== "") {
    const module = /^(file|data|node):/.test(work) ? work : pathToFileURL(resolve(work)).href;
    return { module, name: name ?? "default" };
  }
  const expected = "a function, or the file URL or the path of a module that exports one";
  if (typeof work !== "function") throw misuse({ stream: "parallel", found: show(work), expected });
  if (name !== undefined) {
    const found = "export together with a function";
    throw misuse({ stream: "parallel", found, expected: "export with a module" }, INVALID_OPTION);
  }
  const source = String(work);
  try {
    new Function(`return (${source}\n)`);
  } catch (cause) {
    const found = `a function whose source is not an expression: ${source.slice(0, 60)}`;
    throw misuse({ stream: "parallel", found, expected: "an arrow function, or the URL of a module", cause });
  }
  return { source };
}

/** Items that a thread processes. */
interface Batch {
  readonly items: unknown[];
  /** The number of the record of each item. */
  readonly records: number[];
  readonly of: Source | undefined;
  answer: Answer | undefined;
}

/** A worker thread, and the batches that it has not answered, the oldest first. */
interface Thread {
  readonly worker: Worker;
  readonly batches: Batch[];
}

class Parallel implements BlockSource {
  readonly #threads: Thread[] = [];
  /** If ordered, the batches that are begun and not passed on; otherwise those that were answered. */
  #batches: Batch[] = [];
  #begun = 0;
  /** The number of items in the next batch. */
  #size = 1;
  #block: Block | null = null;
  #index = 0;
  #asked = false;
  #upstreamEnded = false;
  /** The error that ends the stage after the results before it. */
  #failure: { error: unknown } | undefined;
  #closed = false;
  #wake: () => void = () => {};

  constructor(
    readonly upstream: BlockSource,
    readonly task: Task,
    readonly workers: number,
    readonly ordered: boolean,
    readonly stage: number,
    readonly run: Run,
  ) {}

  async next(): Promise<Block | null> {
    for (;;) {
      if (this.#closed) return null;
      this.#begin();
      const ready = this.#takeReady();
      await this.run.isolate();
      if (ready !== null) return ready;
      const isIdle = this.#begun === 0;
      if (isIdle && this.#failure !== undefined) {
        await this.#stop();
        throw this.#failure.error;
      }
      if (isIdle && this.#upstreamEnded && this.#block === null) {
        await this.#stop();
        return null;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    await this.#stop();
    await this.upstream.close();
  }

  async #stop(): Promise<void> {
    await Promise.all(this.#threads.splice(0).map(({ worker }) => worker.terminate()));
  }

  /** Passes items to threads that have space. */
  #begin(): void {
    while (this.#failure === undefined && this.#begun < 2 * this.workers) {
      if (this.#block === null) {
        this.#ask();
        return;
      }
      const block = this.#block;
      const start = this.#index;
      const end = Math.min(start + this.#size, block.items.length);
      const records: number[] = [];
      for (let index = start; index < end; index++) records.push(recordOf(block, index));
      this.#send(block.items.slice(start, end), records, block.of);
      this.#index = end;
      if (end === block.items.length) this.#block = null;
    }
  }

  #send(items: unknown[], records: number[], of: Source | undefined): void {
    if (items.length === 0) return;
    let thread = this.#threads.find(({ batches }) => batches.length === 0);
    if (thread === undefined && this.#threads.length < this.workers) thread = this.#start();
    thread ??= this.#threads.reduce((one, other) => (other.batches.length < one.batches.length ? other : one));
    const packed = pack(items);
    try {
      thread.worker.postMessage(packed.items, packed.transfer);
    } catch (cause) {
      // An item that cannot be copied fails as if the function had thrown.
      const index = Math.max(
        items.findIndex((item) => !isCloneable(item)),
        0,
      );
      this.#send(items.slice(0, index), records.slice(0, index), of);
      const batch = this.#newBatch([items[index]], [records[index]], of);
      batch.answer = { items: [], failures: [[0, cause]], elapsed: -1 };
      if (!this.ordered) this.#batches.push(batch);
      this.#send(items.slice(index + 1), records.slice(index + 1), of);
      return;
    }
    thread.batches.push(this.#newBatch(items, records, of));
    thread.worker.ref();
  }

  #newBatch(items: unknown[], records: number[], of: Source | undefined): Batch {
    const batch: Batch = { items, records, of, answer: undefined };
    this.#begun++;
    if (this.ordered) this.#batches.push(batch);
    return batch;
  }

  #start(): Thread {
    const stops = this.run.onError === "stop";
    const worker = new Worker(program(), { workerData: { ...this.task, stops } });
    const thread: Thread = { worker, batches: [] };
    worker.on("message", (answer: Answer) => this.#answered(thread, answer));
    worker.on("error", (error) => this.#broken(thread, error));
    worker.on("messageerror", (error) => this.#broken(thread, error));
    worker.on("exit", (code) => this.#broken(thread, new Error(`the thread exited with status ${code}`)));
    // Only a batch in progress keeps the process alive.
    worker.unref();
    this.#threads.push(thread);
    return thread;
  }

  #answered(thread: Thread, answer: Answer): void {
    const batch = thread.batches.shift();
    if (batch === undefined || this.#closed) return;
    if (thread.batches.length === 0) thread.worker.unref();
    batch.answer = answer;
    if (!this.ordered) this.#batches.push(batch);
    if (answer.elapsed >= 0) {
      const fitting = Math.round((batch.items.length * TARGET) / Math.max(answer.elapsed, 0.01));
      this.#size = Math.min(Math.max(fitting, 1), 2 * Math.max(this.#size, batch.items.length), MOST);
    }
    this.#wake();
  }

  /** A thread has ended; the item that it was processing is unknown, but it is in this batch. */
  #broken(thread: Thread, cause: unknown): void {
    const at = this.#threads.indexOf(thread);
    if (at < 0 || this.#closed) return;
    this.#threads.splice(at, 1);
    for (const batch of thread.batches.splice(0)) {
      batch.answer = { items: [], failures: [], elapsed: 0, broken: cause };
      if (!this.ordered) this.#batches.push(batch);
    }
    this.#wake();
  }

  #ask(): void {
    if (this.#asked || this.#upstreamEnded) return;
    this.#asked = true;
    this.upstream.next().then(
      (block) => {
        this.#asked = false;
        this.#upstreamEnded = block === null;
        this.#block = block;
        this.#index = 0;
        this.#begin();
        this.#wake();
      },
      (error) => {
        this.#asked = false;
        this.#upstreamEnded = true;
        this.#failure = { error };
        this.#wake();
      },
    );
  }

  /** Takes the next batch that was answered. */
  #takeReady(): Block | null {
    for (;;) {
      const batch = this.#batches[0];
      if (batch?.answer === undefined) return null;
      this.#batches.shift();
      this.#begun--;
      const { answer } = batch;
      const items = unpack(answer.items);
      const records: number[] = [];
      let failed = 0;
      let done = 0;
      for (; done < items.length + failed; done++) {
        if (answer.failures[failed]?.[0] === done) failed++;
        else records.push(batch.records[done]);
      }
      if (this.#fails(batch, answer)) this.#drop();
      if (this.run.stats) {
        const statistics = this.run.stages[this.stage];
        statistics.items += items.length;
        statistics.itemsIn += batch.items.length;
      }
      if (items.length > 0) return asBlock(items, records, batch.of);
    }
  }

  /** Reports what failed in this batch; returns whether that ends the stage. */
  #fails(batch: Batch, { failures, broken, unloaded }: Answer): boolean {
    for (const [index, cause] of failures) {
      const isOutside = "source" in this.task && cause instanceof ReferenceError;
      const more = isOutside ? { expected: SELF_CONTAINED } : {};
      const error = stageFailed(this.stage, batch.records[index], batch.of, cause, more);
      if (this.run.goesOnWithout(batch.items[index], error)) continue;
      this.#failure = { error };
      return true;
    }
    if (broken !== undefined) {
      const details = { stage: this.stage, record: batch.records[0], cause: broken };
      this.#failure = { error: new MillstreamError(STAGE_PANICKED, details) };
      return true;
    }
    if (unloaded === undefined) return false;
    const stream = "module" in this.task ? this.task.module : "parallel";
    this.#failure = { error: new MillstreamError(OPEN_FAILED, { stream, ...unloaded }) };
    return true;
  }

  /** Drops the batches after one that failed. If results are not ordered, those that are in progress are passed on. */
  #drop(): void {
    this.#block = null;
    if (!this.ordered) return;
    this.#begun -= this.#batches.length;
    this.#batches = [];
    for (const thread of this.#threads) thread.batches.length = 0;
  }
}

function asBlock(items: unknown[], records: readonly number[], of: Source | undefined): Block {
  const first = records.reduce((least, record) => Math.min(least, record));
  const from = Uint32Array.from(records, (record) => record - first);
  return { items, of, first, shift: 0, origin: { from, shift: 0, parent: null } };
}

function isCloneable(item: unknown): boolean {
  try {
    structuredClone(item);
    return true;
  } catch {
    return false;
  }
}
