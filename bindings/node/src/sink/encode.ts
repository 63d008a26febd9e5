/** Compresses bytes before they are passed to a sink. */

import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import * as zlib from "node:zlib";
import { MillstreamError, misuse } from "../error.js";
import { promisedBy } from "../format.js";
import type { Encode } from "../settings.js";
import type { ByteSink } from "./sink.js";

/**
 * Returns the compression for a file with this name.
 *
 * @throws `unsupported` for a name that implies a format that cannot be written.
 */
export function encodingOf(name: string): Encode {
  const promised = promisedBy(name);
  if (promised === undefined) return "off";
  if (promised.format === "gzip" || promised.format === "zstd") return promised.format;
  throw new MillstreamError("unsupported", {
    stream: name,
    found: `a name that implies ${promised.format ?? promised.unreadable}`,
    expected: 'gzip or zstd, or the option encode (encode: "off" writes the bytes as they are)',
  });
}

/** What compresses. */
type Encoded = Exclude<Encode, "auto" | "off">;

export class EncodedSink implements ByteSink {
  readonly name: string;
  readonly endsWithTrailer = true;
  readonly #inner: ByteSink;
  readonly #encoder: zlib.Gzip;
  /** Resolves when the inner sink has accepted all output of the encoder; rejects if it does not accept it. */
  readonly #pumped: Promise<void>;
  #isPumping = false;
  #failure: { error: unknown } | undefined;

  /** @throws `unsupported` or `invalid_option` before `open` is called. */
  constructor(open: () => ByteSink, encoding: Encoded, level: number | undefined, name: string) {
    this.#encoder = makeEncoder(encoding, level, name);
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

function makeEncoder(encoding: Encoded, level: number | undefined, name: string): zlib.Gzip {
  const [least, most] = encoding === "zstd" ? [1, 22] : [0, 9];
  if (level !== undefined && (level < least || level > most)) {
    const found = `the level ${level} of ${encoding}`;
    throw misuse({ stream: name, found, expected: `a level from ${least} to ${most}` }, "invalid_option");
  }
  if (encoding === "gzip") return zlib.createGzip({ chunkSize: 64 << 10, level });
  if (encoding !== "zstd") {
    throw new MillstreamError("unsupported", { stream: name, found: `${encoding} output`, expected: "gzip or zstd" });
  }
  const { createZstdCompress } = zlib as { createZstdCompress?: (options: object) => zlib.Gzip };
  if (createZstdCompress !== undefined) {
    const parameter = (zlib.constants as { ZSTD_c_compressionLevel?: number }).ZSTD_c_compressionLevel as number;
    const params = level === undefined ? {} : { [parameter]: level };
    return createZstdCompress({ chunkSize: 64 << 10, params });
  }
  throw new MillstreamError("unsupported", {
    stream: name,
    found: `zstd output in Node ${process.version}`,
    expected: "Node 22.15 or newer for zstd",
  });
}
