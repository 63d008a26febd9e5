/** Compresses bytes before they are passed to a sink. */

import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import * as zlib from "node:zlib";
import { MillstreamError } from "../error.js";
import { promisedBy } from "../format.js";
import type { ByteSink } from "./sink.js";

/** The compression of a writer. */
export type Encoding = "none" | "gzip" | "zstd";

/** Returns the compression for a file with this name.
 *
 * @throws `unsupported` for a name that implies a format that cannot be written.
 */
export function encodingOf(name: string): Encoding {
  const promised = promisedBy(name);
  if (promised === undefined) return "none";
  if (promised.format === "gzip" || promised.format === "zstd") return promised.format;
  throw new MillstreamError("unsupported", {
    stream: name,
    found: `a name that implies ${promised.format ?? promised.unreadable}`,
    expected: 'gzip or zstd, or the option encode (encode: "none" writes the bytes as they are)',
  });
}

export class EncodedSink implements ByteSink {
  readonly name: string;
  readonly endsWithTrailer = true;
  readonly #inner: ByteSink;
  readonly #encoder: zlib.Gzip;
  /** Resolves when the inner sink has accepted all output of the encoder; rejects if it does not accept it. */
  readonly #pumped: Promise<void>;
  #isPumping = false;
  #failure: { error: unknown } | undefined;

  /** @throws `unsupported` before `open` is called. */
  constructor(open: () => ByteSink, encoding: "gzip" | "zstd", name: string) {
    this.#encoder = makeEncoder(encoding, name);
    this.#inner = open();
    this.name = this.#inner.name;
    this.#pumped = this.#pump();
    this.#pumped.catch((error) => {
      this.#failure = { error };
      this.#encoder.destroy();
    });
  }

  get taken(): number | undefined {
    return this.#inner.taken;
  }

  get vanishes(): boolean | undefined {
    return this.#inner.vanishes;
  }

  get isNothingAtExit(): boolean | undefined {
    return this.#inner.isNothingAtExit;
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.#complain();
    // The encoder may read the chunk later, but the caller owns its memory.
    if (this.#encoder.write(new Uint8Array(chunk))) return;
    await Promise.race([once(this.#encoder, "drain").catch(() => {}), this.#pumped]);
    this.#complain();
  }

  async finish(): Promise<void> {
    this.#encoder.end();
    await this.#pumped;
    await this.#inner.finish();
  }

  /** Accepted bytes are written without a trailer, so that readers do not mistake the output for complete. */
  async abandon(error: unknown, now = false): Promise<void> {
    if (!now && this.#failure === undefined) {
      await Promise.race([new Promise<void>((done) => this.#encoder.flush(done)), this.#pumped.catch(() => {})]);
      while (this.#failure === undefined && (this.#isPumping || this.#encoder.readableLength > 0)) await sleep(1);
    }
    this.#encoder.destroy();
    await this.#inner.abandon(error, now);
  }

  commandEnds() {
    return this.#inner.commandEnds?.() ?? [];
  }

  #complain(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async #pump(): Promise<void> {
    for await (const chunk of this.#encoder) {
      this.#isPumping = true;
      await this.#inner.write(chunk);
      this.#isPumping = false;
    }
  }
}

function makeEncoder(encoding: "gzip" | "zstd", name: string): zlib.Gzip {
  if (encoding === "gzip") return zlib.createGzip({ chunkSize: 64 << 10 });
  const { createZstdCompress } = zlib as { createZstdCompress?: (options: object) => zlib.Gzip };
  if (createZstdCompress !== undefined) return createZstdCompress({ chunkSize: 64 << 10 });
  throw new MillstreamError("unsupported", {
    stream: name,
    found: `zstd output in Node ${process.version}`,
    expected: "Node 22.15 or newer for zstd",
  });
}
