/**
 * Compressed sources: gzip (bgzf among it) and zstd are recognised by their first bytes and decoded in process.
 *
 * Damage and truncation are errors, and so is anything behind the last compressed byte that is not compressed. What was
 * good has been delivered before.
 */

import { Buffer } from "node:buffer";
import type { Transform } from "node:stream";
import * as zlib from "node:zlib";
import { type CommandEnd, MillstreamError } from "../error.js";
import type { Source } from "./source.js";

type Format = "gzip" | "zstd";

/** How many bytes it takes to tell. */
const MAGIC_BYTES = 18;

/** The block that every bgzf file ends with. */
const BGZF_END = Buffer.from("1f8b08040000000000ff0600424302001b0003000000000000000000", "hex");

/** A source whose content is decoded if its first bytes say so. */
export class DecodedSource implements Source {
  readonly name: string;
  readonly #inner: Source;
  #state: "new" | "plain" | Decoding = "new";
  /** The first bytes, where they are plain, and whether they are one chunk of the inner source's. */
  #first: Uint8Array | null = null;
  #isOneChunk = false;
  /** Whether the chunk that was read last is the inner source's as it is. */
  #passes = false;

  constructor(inner: Source) {
    this.name = inner.name;
    this.#inner = inner;
  }

  async read(): Promise<Uint8Array | null> {
    if (this.#state === "new") await this.#look();
    if (this.#state instanceof Decoding) return this.#state.read();
    const first = this.#first;
    this.#first = null;
    this.#passes = first === null || this.#isOneChunk;
    return first ?? this.#inner.read();
  }

  get lineEnds(): Uint32Array | undefined {
    return this.#passes ? this.#inner.lineEnds : undefined;
  }

  get headroom(): number | undefined {
    return this.#state === "plain" && this.#first === null ? this.#inner.headroom : undefined;
  }

  reuse(chunk: Uint8Array): void {
    if (this.#state === "plain") this.#inner.reuse?.(chunk);
  }

  finish(): Promise<void> {
    return this.#inner.finish();
  }

  async close(): Promise<void> {
    if (this.#state instanceof Decoding) this.#state.stop();
    await this.#inner.close();
  }

  commandEnds(): readonly CommandEnd[] {
    return this.#inner.commandEnds();
  }

  async #look(): Promise<void> {
    let first: Uint8Array = new Uint8Array(0);
    let chunk: Uint8Array | null = first;
    // More than one read only where the bytes so far could be the beginning of something compressed.
    while (chunk !== null && first.length < MAGIC_BYTES && couldBeCompressed(first)) {
      chunk = await this.#inner.read();
      if (chunk !== null) first = first.length === 0 ? chunk : Buffer.concat([first, chunk]);
    }
    const promised = promisedBy(this.name);
    const format = formatOf(first);
    if (format === undefined && promised !== undefined && first.length < MAGIC_BYTES) {
      throw new MillstreamError("decode_truncated", {
        stream: this.name,
        found: `${first.length} bytes`,
        expected: `a ${promised} stream, as the name says`,
      });
    }
    if (format !== undefined) {
      this.#state = new Decoding(this.#inner, first, format);
      return;
    }
    this.#state = "plain";
    this.#isOneChunk = first === chunk;
    this.#first = first.length === 0 ? null : first;
  }
}

function couldBeCompressed(first: Uint8Array): boolean {
  const starts = (magic: readonly number[]) => magic.every((byte, i) => i >= first.length || first[i] === byte);
  return starts([0x1f, 0x8b]) || starts([0x28, 0xb5, 0x2f, 0xfd]);
}

function formatOf(first: Uint8Array): Format | undefined {
  if (first.length >= 2 && first[0] === 0x1f && first[1] === 0x8b) return "gzip";
  if (first.length >= 4 && couldBeCompressed(first)) return "zstd";
  return undefined;
}

function promisedBy(name: string): Format | undefined {
  if (/\.(gz|bgz|bgzf)$/.test(name)) return "gzip";
  return name.endsWith(".zst") ? "zstd" : undefined;
}

function isBgzf(first: Uint8Array): boolean {
  return first.length >= MAGIC_BYTES && (first[3] & 4) !== 0 && first[12] === 0x42 && first[13] === 0x43;
}

function makeDecoder(format: Format, name: string): Transform & { bytesWritten: number } {
  if (format === "gzip") return zlib.createGunzip({ chunkSize: 64 << 10 });
  const { createZstdDecompress } = zlib as { createZstdDecompress?: (options: object) => zlib.Gunzip };
  if (createZstdDecompress !== undefined) return createZstdDecompress({ chunkSize: 64 << 10 });
  throw new MillstreamError("unsupported", {
    stream: name,
    found: `zstd, and Node ${process.version}`,
    expected: "Node 22.15 or newer for zstd",
  });
}

class Decoding {
  readonly #inner: Source;
  readonly #decoder: Transform & { bytesWritten: number };
  readonly #bgzf: boolean;
  #fed = 0;
  /** The last bytes that came in, as many as the end of a bgzf file has. */
  #tail: Uint8Array;
  #error: unknown;
  #waiting: (() => void) | undefined;

  constructor(inner: Source, first: Uint8Array, format: Format) {
    this.#inner = inner;
    this.#bgzf = format === "gzip" && isBgzf(first);
    this.#tail = first;
    this.#decoder = makeDecoder(format, inner.name);
    const wake = () => this.#wake();
    this.#decoder.on("readable", wake).on("end", wake).on("close", wake);
    this.#decoder.on("error", (error) => {
      this.#error ??= this.#asOurs(error);
      wake();
    });
    this.#feed(first).catch((error) => {
      this.#error ??= error;
      wake();
    });
  }

  async read(): Promise<Uint8Array | null> {
    for (;;) {
      const chunk: Uint8Array | null = this.#decoder.read();
      if (chunk !== null) return chunk;
      if (this.#error !== undefined) {
        this.stop();
        throw this.#error;
      }
      if (this.#decoder.readableEnded) {
        this.#checkEnd();
        return null;
      }
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
  }

  stop(): void {
    this.#decoder.destroy();
    this.#wake();
  }

  #wake(): void {
    this.#waiting?.();
    this.#waiting = undefined;
  }

  async #feed(first: Uint8Array): Promise<void> {
    const decoder = this.#decoder;
    for (let chunk: Uint8Array | null = first; chunk !== null; chunk = await this.#inner.read()) {
      this.#fed += chunk.length;
      this.#tail = chunk.length >= BGZF_END.length ? chunk : Buffer.concat([this.#tail, chunk]);
      this.#tail = this.#tail.subarray(-BGZF_END.length);
      if (!decoder.write(chunk)) {
        await new Promise<void>((resolve) => {
          const done = () => {
            decoder.off("drain", done).off("close", done);
            resolve();
          };
          decoder.on("drain", done).on("close", done);
        });
      }
      if (decoder.destroyed) return;
    }
    decoder.end();
  }

  /** What the decoder does not say: bytes behind the end that it left alone, a bgzf file without its last block. */
  #checkEnd(): void {
    const stream = this.#inner.name;
    if (this.#decoder.bytesWritten < this.#fed) {
      throw new MillstreamError("decode_damaged", {
        stream,
        found: `${this.#fed - this.#decoder.bytesWritten} bytes behind the end of the compressed data`,
        expected: "the end",
      });
    }
    if (this.#bgzf && !BGZF_END.equals(this.#tail)) {
      throw new MillstreamError("decode_truncated", { stream, expected: "the end-of-file block of bgzf" });
    }
  }

  #asOurs(cause: unknown): MillstreamError {
    const { code } = cause as { code?: unknown };
    const truncated = code === "Z_BUF_ERROR" || code === "ZSTD_error_srcSize_wrong";
    return new MillstreamError(truncated ? "decode_truncated" : "decode_damaged", { stream: this.#inner.name, cause });
  }
}
