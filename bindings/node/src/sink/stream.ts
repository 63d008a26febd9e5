/**
 * Streams of others as sinks: Node's `Writable`, without an import of Node, and the web's `WritableStream`.
 *
 * A byte stream gets the records of a batch in one chunk, each with a line feed behind it. A stream in object mode gets
 * item by item, and a web stream, which does not say what it takes, gets items that are neither strings nor bytes so.
 */

import type { RunningSink } from "../pipe/sink.js";
import { encodeRecords } from "../record.js";
import type { ByteSink } from "./sink.js";

/** As much of Node's `Writable` as is needed here. */
export interface NodeWritable {
  readonly writableObjectMode?: boolean;
  readonly writableNeedDrain?: boolean;
  readonly destroyed?: boolean;
  write(chunk: any, callback?: (error?: Error | null) => void): boolean;
  end(callback?: () => void): unknown;
  destroy?(error?: Error): unknown;
  on(event: string, listener: (...of: any[]) => void): unknown;
  off(event: string, listener: (...of: any[]) => void): unknown;
}

const LINE_FEED = Uint8Array.of(10);

/** A promise that a stream keeps or breaks by its events. */
function until(stream: NodeWritable, event: "drain" | "finish"): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (done: () => void) => {
      stream.off(event, succeed);
      stream.off("error", fail);
      stream.off("close", close);
      done();
    };
    const succeed = () => settle(resolve);
    const fail = (error: unknown) => settle(() => reject(error));
    const close = () => fail(new Error("the stream was closed before all was written"));
    stream.on(event, succeed);
    stream.on("error", fail);
    stream.on("close", close);
  });
}

/** A `Writable` that takes chunks. */
class NodeStream {
  #error: unknown;
  #failed = false;

  constructor(readonly stream: NodeWritable) {
    stream.on("error", (error) => {
      this.#failed = true;
      this.#error ??= error;
    });
  }

  /** Writes, and waits if the stream is full. */
  push(chunk: unknown): void | Promise<void> {
    if (this.#failed) throw this.#error;
    if (this.stream.destroyed) throw new Error("the stream was closed before all was written");
    if (!this.stream.write(chunk)) return until(this.stream, "drain");
  }

  /** Writes, and waits until it was taken. */
  put(chunk: Uint8Array): Promise<void> {
    if (this.#failed) return Promise.reject(this.#error);
    return new Promise((resolve, reject) => {
      this.stream.write(chunk, (error) => (error ? reject(error) : resolve()));
    });
  }

  async end(): Promise<void> {
    if (this.#failed) throw this.#error;
    // The process's own streams cannot be ended.
    const { process } = globalThis as { process?: { stdout?: unknown; stderr?: unknown } };
    if (this.stream === process?.stdout || this.stream === process?.stderr) return this.put(new Uint8Array(0));
    const finished = until(this.stream, "finish");
    this.stream.end();
    await finished;
  }

  abandon(error: unknown): void {
    this.stream.destroy?.(error instanceof Error ? error : undefined);
  }
}

/** A `Writable` at the end of a pipeline. */
export function toNodeWritable(stream: NodeWritable): RunningSink {
  const node = new NodeStream(stream);
  const write = stream.writableObjectMode
    ? (items: any[]) => {
        for (let index = 0; index < items.length; index++) {
          const full = node.push(items[index]);
          if (full !== undefined) return rest(full, items.slice(index + 1));
        }
      }
    : (items: any[]) => node.push(encodeRecords(items, LINE_FEED));
  const rest = async (full: Promise<void>, items: any[]) => {
    await full;
    for (const item of items) await node.push(item);
  };
  return {
    write,
    finish: () => node.end(),
    abandon: async (error) => node.abandon(error),
  };
}

/** A `WritableStream` at the end of a pipeline. */
export function toWebStream(stream: WritableStream<any>): RunningSink {
  const writer = stream.getWriter();
  writer.closed.catch(() => {});
  writer.ready.catch(() => {});
  const put = async (chunk: unknown) => {
    await writer.ready;
    const written = writer.write(chunk);
    written.catch(() => {});
    await writer.ready;
  };
  return {
    async write(items) {
      if (items.every((item) => typeof item === "string" || item instanceof Uint8Array)) {
        await put(encodeRecords(items, LINE_FEED));
      } else {
        for (const item of items) await put(item);
      }
    },
    finish: () => writer.close(),
    async abandon(error) {
      await writer.abort(error).catch(() => {});
    },
  };
}

/** A `Writable` under a `Writer`. */
export class NodeStreamSink implements ByteSink {
  readonly name = "stream";
  readonly #node: NodeStream;

  constructor(stream: NodeWritable) {
    this.#node = new NodeStream(stream);
  }

  write(chunk: Uint8Array): Promise<void> {
    return this.#node.put(chunk);
  }

  finish(): Promise<void> {
    return this.#node.end();
  }

  async abandon(error: unknown): Promise<void> {
    this.#node.abandon(error);
  }
}

/** A `WritableStream` under a `Writer`. */
export class WebStreamSink implements ByteSink {
  readonly name = "stream";
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;

  constructor(stream: WritableStream<any>) {
    this.#writer = stream.getWriter();
    this.#writer.closed.catch(() => {});
    this.#writer.ready.catch(() => {});
  }

  async write(chunk: Uint8Array): Promise<void> {
    await this.#writer.ready;
    // Web streams may keep a chunk for as long as they like.
    await this.#writer.write(new Uint8Array(chunk));
  }

  finish(): Promise<void> {
    return this.#writer.close();
  }

  async abandon(error: unknown): Promise<void> {
    await this.#writer.abort(error).catch(() => {});
  }
}
