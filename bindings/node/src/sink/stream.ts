/** Sinks for other streams: Node's `Writable`, without importing Node, and the web's `WritableStream`.
 *
 * A byte stream gets the records of a batch in one chunk, each with a line feed after it. A stream in object mode gets
 * one item at a time. A web stream, whose type is unknown, also gets one item at a time if the items are neither
 * strings nor bytes.
 */

import { MillstreamError } from "../error.js";
import { STALLED } from "../errors.js";
import { encodeRecords } from "../record.js";
import type { ByteSink, RunningSink } from "./sink.js";

/** The part of Node's `Writable` that is needed here. */
export interface NodeWritable {
  readonly writableObjectMode?: boolean | undefined;
  readonly writableNeedDrain?: boolean | undefined;
  readonly destroyed?: boolean | undefined;
  readonly isTTY?: boolean | undefined;
  write(chunk: any, callback?: (error?: Error | null) => void): boolean;
  end(callback?: () => void): unknown;
  destroy?(error?: Error): unknown;
  on(event: string, listener: (...of: any[]) => void): unknown;
  off(event: string, listener: (...of: any[]) => void): unknown;
}

const LINE_FEED = /* @__PURE__ */ Uint8Array.of(10);

/** A promise that is settled by a stream's events. */
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
    const close = () => fail(new Error("the stream was closed before everything was written"));
    stream.on(event, succeed);
    stream.on("error", fail);
    stream.on("close", close);
  });
}

/** A `Writable` that takes chunks. */
class NodeStream {
  #error: unknown;
  #failed = false;

  constructor(
    readonly stream: NodeWritable,
    readonly linger: number,
  ) {
    stream.on("error", (error) => {
      this.#failed = true;
      this.#error ??= error;
    });
  }

  /** Writes, and waits if the stream is full. */
  push(chunk: unknown): void | Promise<void> {
    if (this.#failed) throw this.#error;
    if (this.stream.destroyed) throw new Error("the stream was closed before everything was written");
    if (!this.stream.write(chunk)) return until(this.stream, "drain");
  }

  /** Writes, and waits until the chunk was accepted. */
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
    const socket = socketOf(this.stream);
    // If a socket is closed with unread input, the kernel sends a reset, which discards the data that was sent last.
    const closed = socket && peerCloses(socket, this.linger);
    closed?.catch(() => {});
    const finished = until(this.stream, "finish");
    this.stream.end();
    await finished;
    await closed;
  }

  abandon(error: unknown): void {
    this.stream.destroy?.(error instanceof Error ? error : undefined);
  }
}

/** The additional properties of a Node socket, which identify it, because this module does not import Node. */
interface Socket extends NodeWritable {
  readonly readableEnded: boolean;
  readonly readableFlowing: boolean | null;
  resume(): unknown;
  listenerCount(event: string): number;
  destroySoon(): void;
}

function socketOf(stream: NodeWritable): Socket | undefined {
  return "destroySoon" in stream && "connecting" in stream && "readableFlowing" in stream
    ? (stream as unknown as Socket)
    : undefined;
}

/** Settles when the peer has closed its side, which confirms that it has read everything. Data that the peer sends is
 * discarded unless another reader takes it.
 */
function peerCloses(socket: Socket, linger: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (done: () => void) => {
      clearTimeout(timer);
      socket.off("end", end);
      socket.off("close", close);
      socket.off("error", fail);
      done();
    };
    const end = () => settle(resolve);
    const close = () => (socket.readableEnded ? end() : fail(new Error("the connection was closed before its end")));
    const fail = (error: unknown) => settle(() => reject(error));
    const timer = setTimeout(() => {
      fail(
        new MillstreamError(STALLED, {
          found: `no end of the connection from the peer within ${linger} ms`,
          expected: "the peer to close its side when it has read all, or a longer linger",
        }),
      );
    }, linger);
    if (socket.readableEnded) {
      end();
      return;
    }
    socket.on("end", end);
    socket.on("close", close);
    socket.on("error", fail);
    const isRead = socket.listenerCount("data") + socket.listenerCount("readable") > 0;
    if (!isRead) socket.resume();
  });
}

/** The time limit for a socket's peer in a pipeline without a `Writer`. */
const LINGER = 30_000;

/** A `Writable` at the end of a pipeline. */
export function toNodeWritable(stream: NodeWritable): RunningSink {
  const node = new NodeStream(stream, LINGER);
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
    async abandon(error, now) {
      const aborted = writer.abort(error).catch(() => {});
      // It waits for the chunk that is being written.
      if (!now) await aborted;
    },
  };
}

/** A `Writable` under a `Writer`. */
export class NodeStreamSink implements ByteSink {
  readonly name = "stream";
  readonly isTerminal: boolean;
  readonly #node: NodeStream;

  constructor(stream: NodeWritable, linger: number) {
    this.isTerminal = stream.isTTY === true;
    this.#node = new NodeStream(stream, linger);
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
    // Web streams may keep a chunk for any length of time.
    await this.#writer.write(new Uint8Array(chunk));
  }

  finish(): Promise<void> {
    return this.#writer.close();
  }

  async abandon(error: unknown, now = false): Promise<void> {
    const aborted = this.#writer.abort(error).catch(() => {});
    // It waits for the chunk that is being written.
    if (!now) await aborted;
  }
}
