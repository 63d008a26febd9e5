/** Bytes compressed on their way to a sink. */

import { once } from "node:events";
import type { Transform } from "node:stream";
import * as zlib from "node:zlib";
import { MillstreamError } from "../error.js";
import type { ByteSink } from "./sink.js";

/** How a writer compresses. */
export type Encoding = "none" | "gzip" | "zstd";

/** What a name asks for. */
export function encodingOf(name: string): Encoding {
  if (/\.(gz|bgz|bgzf)$/.test(name)) return "gzip";
  return name.endsWith(".zst") ? "zstd" : "none";
}

export class EncodedSink implements ByteSink {
  readonly name: string;
  readonly #inner: ByteSink;
  readonly #encoder: Transform;
  /** Ends when all that the encoder gave is with the inner sink; rejects when it does not take it. */
  readonly #pumped: Promise<void>;
  #failure: { error: unknown } | undefined;

  constructor(inner: ByteSink, encoding: "gzip" | "zstd") {
    this.name = inner.name;
    this.#inner = inner;
    this.#encoder = makeEncoder(encoding, inner.name);
    this.#pumped = this.#pump();
    this.#pumped.catch((error) => {
      this.#failure = { error };
      this.#encoder.destroy();
    });
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.#complain();
    // The encoder may look at the chunk later, and its memory is somebody else's.
    if (this.#encoder.write(new Uint8Array(chunk))) return;
    await Promise.race([once(this.#encoder, "drain").catch(() => {}), this.#pumped]);
    this.#complain();
  }

  async finish(): Promise<void> {
    this.#encoder.end();
    await this.#pumped;
    await this.#inner.finish();
  }

  async abandon(error: unknown): Promise<void> {
    this.#encoder.end();
    await this.#pumped.catch(() => {});
    await this.#inner.abandon(error);
  }

  commandEnds() {
    return this.#inner.commandEnds?.() ?? [];
  }

  #complain(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async #pump(): Promise<void> {
    for await (const chunk of this.#encoder) await this.#inner.write(chunk);
  }
}

function makeEncoder(encoding: "gzip" | "zstd", name: string): Transform {
  if (encoding === "gzip") return zlib.createGzip({ chunkSize: 64 << 10 });
  const { createZstdCompress } = zlib as { createZstdCompress?: (options: object) => Transform };
  if (createZstdCompress !== undefined) return createZstdCompress({ chunkSize: 64 << 10 });
  throw new MillstreamError("unsupported", {
    stream: name,
    found: `zstd, and Node ${process.version}`,
    expected: "Node 22.15 or newer for zstd",
  });
}
