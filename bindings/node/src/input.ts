/** Content that becomes the standard input of a command while its output is read.
 *
 * A command need not read its whole input. If the input fails, the command gets the end of its input after what came
 * before, and its reader reports the failure after the command's last record.
 */

import type { MillstreamError } from "./error.js";
import { type Input, sourceOf } from "./from.js";
import { type NativeWriter, neededBinding } from "./native.js";
import { type BlockSource, sourceBlock } from "./pipe/block.js";
import { RawBlocks } from "./pipe/raw.js";
import { Reader } from "./reader.js";
import { NativeSink } from "./sink/native.js";
import { Writer } from "./writer.js";

/** How long bytes may wait for more, in milliseconds: as the command may have to see them to continue, not for long. */
const DELAY = 1;

export class CommandInput {
  /** What the command reads. */
  readonly pipe: NativeWriter;
  readonly #writer: Writer;
  #failure: { readonly error: unknown } | undefined;
  #stopping: Promise<void> | undefined;

  /** `put` writes the items of a block. */
  constructor(
    call: string,
    readonly upstream: BlockSource,
    readonly put: (writer: Writer, items: any[]) => void | Promise<void>,
    delimiter?: string | Uint8Array,
  ) {
    const { NativeWriter } = neededBinding(call);
    let pipe: NativeWriter | undefined;
    const start = (wake: () => void) => {
      pipe = NativeWriter.pipe(wake);
      return pipe;
    };
    const sink = new NativeSink(start, { name: "standard input", isBackground: true });
    this.pipe = pipe!;
    this.#writer = new Writer(sink, { flushDelay: DELAY, delimiter });
    // When this process exits, the command gets the end of its input.
    this.#writer.asSink();
    this.#passOn();
  }

  /** Reads content that `from` accepts, or the bytes of a reader. */
  static of(call: string, content: Input | Reader<any>): CommandInput {
    return CommandInput.ofBlocks(call, content instanceof Reader ? new RawBlocks(content) : blocksOf(content));
  }

  /** Passes on blocks of bytes. */
  static ofBlocks(call: string, blocks: BlockSource): CommandInput {
    return new CommandInput(call, blocks, async (writer, items: Uint8Array[]) => {
      for (const bytes of items) await writer.write(bytes);
    });
  }

  /** Why the input was not complete, unless the command did not need it. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  /** Called when the command has ended or is stopped. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    // It never rejects, and nothing depends on when the pipe is closed.
    this.#writer.asSink().abandon(undefined, true);
    await this.upstream.close().catch(() => {});
  }

  async #passOn(): Promise<void> {
    const writer = this.#writer;
    try {
      for (let isMore = true; isMore; ) {
        const block = await this.upstream.next();
        if (this.#stopping !== undefined) return;
        if (block === null) isMore = await this.#write(() => writer.close().then(() => false));
        else isMore = await this.#write(() => this.put(writer, block.items));
      }
    } catch (error) {
      if (this.#stopping !== undefined) return;
      this.#failure = { error };
      await writer.abort();
    }
    await this.stop();
  }

  /** Waits for the writer; returns false if there is nothing more to write, or if the command has closed its input. */
  async #write(write: () => unknown): Promise<boolean> {
    try {
      return (await write()) !== false;
    } catch (error) {
      // A call may also throw it at once, if writing has failed since the last call.
      if ((error as MillstreamError).kind === "broken_pipe") return false;
      throw error;
    }
  }
}

function blocksOf(content: Input): BlockSource {
  const source = sourceOf(content, false);
  return {
    async next() {
      const chunk = await source.read();
      return chunk === null ? null : sourceBlock([chunk], 0);
    },
    close: () => source.close(),
  };
}
