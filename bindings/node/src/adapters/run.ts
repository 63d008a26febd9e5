/** A running pipeline inside an adapter that is written to, read from, or both. */

import { from } from "../from.js";
import { type BlockSource, sourceBlock } from "../pipe/block.js";
import { pipe } from "../pipe/pipe.js";
import { RawBlocks } from "../pipe/raw.js";
import { BLOCKS, blocksOf, type PipeSource } from "../pipe/source.js";
import type { PipeOptions } from "../pipe/types.js";
import { Reader } from "../reader.js";
import type { Chunk } from "../source/chunks.js";
import type { Feed } from "./feed.js";
import { type InputOptions, isObjects, type OutputOptions } from "./options.js";

/** A pipeline that can be stopped from outside. */
export class Run<R> {
  readonly #controller = new AbortController();
  /** The result of the pipeline. Its rejection counts as handled, because the adapter reports it. */
  readonly result: Promise<R>;
  /** Settles when the whole pipeline has ended, and never rejects. */
  readonly ended: Promise<void>;
  hasEnded = false;

  /** @throws Errors in the parts. */
  constructor(source: PipeSource<any>, parts: readonly unknown[], options: PipeOptions) {
    const { stamp, stats, onError, onSummary } = options;
    const { signal } = this.#controller;
    const start = pipe.options({ stamp, stats, onError, onSummary, signal }) as (...of: unknown[]) => Promise<R>;
    this.result = start(source, ...parts);
    const end = () => {
      this.hasEnded = true;
    };
    this.ended = this.result.then(end, end);
  }

  /** Stops the pipeline in any state, and waits until its source is closed and its sink aborted. */
  stop(reason: unknown): Promise<void> {
    if (!this.hasEnded) this.#controller.abort(reason);
    return this.ended;
  }
}

/** Returns a pipeline's source for a feed: the records in its chunks, or the items in its arrays. */
export function sourceOf(feed: Feed<any>, options: InputOptions): PipeSource<any> {
  if (isObjects(options.input)) return blocks(new FedItems(feed));
  const { as, framer, keepDelimiter, recordLimit, invalidUtf8, name = "stream" } = options;
  return from(feed as Feed<Chunk>, { as, framer, keepDelimiter, recordLimit, invalidUtf8, name });
}

/** Returns what to read and the options for it: a reader's own bytes stay unchanged. */
export function outputOf<O extends OutputOptions>(source: PipeSource<any>, options: O): [PipeSource<any>, O] {
  const isRaw = source instanceof Reader && !isObjects(options.output) && options.delimiter === undefined;
  return isRaw ? [blocks(new RawBlocks(source)), { ...options, delimiter: "" }] : [source, options];
}

/** Closes a source that has not been read from. */
export async function closeSource(source: PipeSource<any>): Promise<void> {
  await blocksOf(source)
    .close()
    .catch(() => {});
}

function blocks(source: BlockSource): PipeSource<any> {
  return { [BLOCKS]: () => source } as never;
}

class FedItems implements BlockSource {
  readonly #feed: Feed<any[]>;
  #count = 0;

  constructor(feed: Feed<any[]>) {
    this.#feed = feed;
  }

  async next() {
    const { done, value } = await this.#feed.next();
    if (done) return null;
    this.#count += value.length;
    return sourceBlock(value, this.#count - value.length);
  }

  async close(): Promise<void> {
    await this.#feed.return();
  }
}
