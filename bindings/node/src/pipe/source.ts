/** Creates blocks from all kinds of sources. */

import { type CommandEnd, MillstreamError, misuse } from "../error.js";
import { CLOSED } from "../errors.js";
import { Reader, type Items as Taken } from "../reader.js";
import { iterateWebStream } from "../source/chunks.js";
import { type Block, type BlockSource, type Source, sourceBlock } from "./block.js";
import { isPromise } from "./loop.js";

/** An object with its own chain: a pipeline without a sink. */
export const BLOCKS: unique symbol = Symbol.for("millstream.blocks") as never;

/** The sources of a pipeline: a reader's records, or the items that an iterable or a stream delivers. */
export type PipeSource<A> =
  | AsyncIterable<A>
  | Iterable<A>
  | ReadableStream<A>
  | { readonly merged: readonly PipeSource<A>[] };

/** The maximum number of items of an iterable in a block. */
const ITEMS = 1024;

/** Creates blocks from a source's items. */
export function blocksOf(source: PipeSource<any>): BlockSource {
  if (source instanceof Reader) return new ReaderBlocks(source);
  if (typeof source === "object" && source !== null) {
    if (BLOCKS in source) return (source as { [BLOCKS](): BlockSource })[BLOCKS]();
    if (Array.isArray(source)) return new ArrayBlocks(source);
    if ("getReader" in source) return new AsyncItems(iterateWebStream(source));
    if (Symbol.asyncIterator in source) return new AsyncItems(source[Symbol.asyncIterator]());
    if (Symbol.iterator in source) return new Items(source[Symbol.iterator]());
  }
  throw misuse({
    found: source === null ? "null" : typeof source,
    expected: "a reader, an iterable object or a stream (for the lines of a text: lines(text))",
  });
}

/** A reader as the source of a pipeline. */
export abstract class OfReader implements BlockSource {
  #isOurs = false;
  #of: Source | undefined;

  constructor(readonly reader: Reader<any>) {}

  async next(): Promise<Block | null> {
    if (!this.#isOurs && !Reader.claim(this.reader)) {
      const found = "a reader that was read to its end, or is the source of another pipeline";
      throw new MillstreamError(CLOSED, { stream: this.reader.name, found, expected: "a new reader" });
    }
    this.#isOurs = true;
    return this.take();
  }

  /** Describes the reader, whose records do not become others. */
  protected of({ isText, lineOf }: Taken<unknown>): Source {
    if (lineOf !== undefined) return { stream: this.reader.name, isText, lineOf };
    this.#of ??= { stream: this.reader.name, isText };
    return this.#of;
  }

  /** The next block. */
  protected abstract take(): Promise<Block | null>;

  commandEnds(): readonly CommandEnd[] {
    return this.reader.commandEnds;
  }

  async close(): Promise<void> {
    await this.reader.close().catch(() => {});
  }
}

class ReaderBlocks extends OfReader {
  protected async take(): Promise<Block | null> {
    const taken = await Reader.takeItems(this.reader);
    return taken === null ? null : sourceBlock(taken.items, taken.first, this.of(taken));
  }
}

class ArrayBlocks implements BlockSource {
  #at = 0;

  constructor(readonly items: readonly unknown[]) {}

  async next(): Promise<Block | null> {
    const first = this.#at;
    if (first >= this.items.length) return null;
    this.#at += ITEMS;
    return sourceBlock(this.items.slice(first, this.#at), first);
  }

  async close(): Promise<void> {
    this.#at = Number.POSITIVE_INFINITY;
  }
}

class Items implements BlockSource {
  #count = 0;
  #ended = false;
  #failure: { error: unknown } | undefined;

  constructor(readonly iterator: Iterator<unknown>) {}

  async next(): Promise<Block | null> {
    const items: unknown[] = [];
    try {
      while (!this.#ended && items.length < ITEMS) {
        const { done, value } = this.iterator.next();
        if (done) this.#ended = true;
        else items.push(value);
      }
    } catch (error) {
      this.#ended = true;
      this.#failure = { error };
    }
    if (items.length === 0) {
      const failure = this.#failure;
      this.#failure = undefined;
      if (failure !== undefined) throw failure.error;
      return null;
    }
    this.#count += items.length;
    return sourceBlock(items, this.#count - items.length);
  }

  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.iterator.return?.();
  }
}

/** Calls back in the next turn of the event loop, when the pending events have been delivered. */
export const nextTurn: (call: () => void) => void =
  typeof setImmediate === "function" ? (call) => void setImmediate(call) : (call) => void setTimeout(call, 0);

/** Items that arrive one by one. The items of one turn of the event loop become a block, so no item waits for a later
 * one.
 */
class AsyncItems implements BlockSource {
  #count = 0;
  #ended = false;
  #failure: { error: unknown } | undefined;
  /** Whether an item was requested and has not arrived. */
  #asked = false;
  #items: unknown[] = [];
  /** The consumer that waits for a block. */
  #waiting: (() => void) | undefined;
  #turnIsOver = false;

  constructor(readonly iterator: AsyncIterator<unknown>) {}

  async next(): Promise<Block | null> {
    if (this.#items.length === 0 && !this.#ended) {
      this.#turnIsOver = false;
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
        this.#ask();
      });
    }
    const items = this.#items;
    this.#items = [];
    if (items.length === 0) {
      const failure = this.#failure;
      this.#failure = undefined;
      if (failure !== undefined) throw failure.error;
      return null;
    }
    this.#count += items.length;
    return sourceBlock(items, this.#count - items.length);
  }

  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#wake();
    const returned = this.iterator.return?.();
    // An async generator that is waiting can end only when its wait is over, so this must not wait for it.
    if (this.#asked) Promise.resolve(returned).catch(() => {});
    else await returned;
  }

  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    let result: Promise<IteratorResult<unknown>>;
    try {
      result = this.iterator.next();
      if (!isPromise(result)) result = Promise.resolve(result);
    } catch (error) {
      this.#end({ error });
      return;
    }
    result.then(this.#came, this.#failed);
  }

  readonly #came = (result: IteratorResult<unknown>): void => {
    this.#asked = false;
    if (this.#ended) return;
    if (result.done) {
      this.#end(undefined);
      return;
    }
    this.#items.push(result.value);
    if (this.#waiting === undefined) return;
    if (this.#items.length === 1) {
      nextTurn(() => {
        this.#turnIsOver = true;
        if (this.#items.length > 0) this.#wake();
      });
    }
    if (this.#turnIsOver || this.#items.length >= ITEMS) this.#wake();
    else this.#ask();
  };

  readonly #failed = (error: unknown): void => this.#end({ error });

  #end(failure: { error: unknown } | undefined): void {
    this.#asked = false;
    if (!this.#ended) this.#failure = failure;
    this.#ended = true;
    this.#wake();
  }

  #wake(): void {
    this.#waiting?.();
    this.#waiting = undefined;
  }
}

/** Blocks of several sources, in order of arrival. It holds at most one block of each source. */
class MergedBlocks implements BlockSource {
  readonly #sources: readonly BlockSource[];
  readonly #idle: Set<BlockSource>;
  #running = 0;
  #ready: { source: BlockSource; block: Block }[] = [];
  #failure: { error: unknown } | undefined;
  #wake: () => void = () => {};

  constructor(sources: readonly BlockSource[]) {
    this.#sources = sources;
    this.#idle = new Set(sources);
  }

  async next(): Promise<Block | null> {
    if (this.#failure === undefined) for (const source of this.#idle) this.#ask(source);
    this.#idle.clear();
    for (;;) {
      const ready = this.#ready.shift();
      if (ready !== undefined) {
        // The next block is requested when this one has been used, because its memory is reused.
        this.#idle.add(ready.source);
        return ready.block;
      }
      if (this.#failure !== undefined) {
        await this.close();
        throw this.#failure.error;
      }
      if (this.#running === 0) return null;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  commandEnds(): readonly CommandEnd[] {
    return this.#sources.flatMap((source) => source.commandEnds?.() ?? []);
  }

  async close(): Promise<void> {
    await Promise.all(this.#sources.map((source) => source.close()));
  }

  #ask(source: BlockSource): void {
    this.#running++;
    source.next().then(
      (block) => {
        this.#running--;
        if (block !== null) this.#ready.push({ source, block });
        this.#wake();
      },
      (error) => {
        this.#running--;
        this.#failure ??= { error };
        this.#wake();
      },
    );
  }
}

/** Sources whose blocks are passed on as they arrive. */
export function mergeBlocks(sources: readonly BlockSource[]): BlockSource {
  return new MergedBlocks(sources);
}
