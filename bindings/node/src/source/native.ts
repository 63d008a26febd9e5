/**
 * A command's standard output, a file, a descriptor or compressed memory, read by the native part on a thread of its own.
 *
 * Blocks are copied from the thread into our memory, once: what a user does to a batch cannot affect a block being
 * filled, small blocks use little memory, and nothing outlives the process's environment. A command keeps the process
 * alive only while some call waits for it, as `command.ts` promises.
 */

import { constants } from "node:os";
import { getSystemErrorName } from "node:util";
import { type CommandEnd, MillstreamError } from "../error.js";
import { ERROR_CODES, type ErrorKind } from "../errors.js";
import type { NativeEnd, NativeFailure, NativeReader } from "../native.js";
import { platform } from "../text.js";
import type { Source } from "./source.js";

/** How many bytes a block has at most: `BLOCK_BYTES` of `native/src/filler.rs`. */
const BLOCK_BYTES = 240 << 10;

/** The space before a block, for the unfinished record of the one before. */
const HEADROOM = 16 << 10;

/** From here on a block gets memory that any other fits in, so that it can be reused. */
const LARGE = 16 << 10;

/** Unused memory, of any source: fresh memory costs more than its content. */
let spare: Uint8Array<ArrayBuffer> | undefined;

export class NativeSource implements Source {
  readonly name: string;
  /** Small blocks have none: copying them costs nothing, and keeping them should not cost more. */
  headroom = 0;
  lineEnds: Uint32Array | undefined;
  readonly #start: (wake: () => void) => NativeReader;
  #reader: NativeReader | undefined;
  #ends = new Uint32Array(1024);
  #woken: Promise<void> | undefined;
  #wake = () => {};

  private constructor(name: string, start: (wake: () => void) => NativeReader) {
    this.name = name;
    this.#start = start;
  }

  /** A source that starts now, such as a command. */
  static started(name: string, start: (wake: () => void) => NativeReader): NativeSource {
    const source = new NativeSource(name, start);
    source.#started();
    return source;
  }

  /** A source that the first read starts. */
  static late(name: string, start: (wake: () => void) => NativeReader): NativeSource {
    return new NativeSource(name, start);
  }

  async read(): Promise<Uint8Array | null> {
    const reader = this.#started();
    for (;;) {
      const length = reader.front();
      if (length > 0) return this.#take(reader, length);
      if (length < 0) break;
      await this.#change();
    }
    const failure = reader.failure();
    // A command that failed has delivered all it wrote: that is for `finish`.
    if (failure && !failure.command) throw this.#error(failure);
    return null;
  }

  reuse(chunk: Uint8Array): void {
    if (chunk.buffer.byteLength === HEADROOM + BLOCK_BYTES) spare = new Uint8Array(chunk.buffer as ArrayBuffer);
  }

  async finish(): Promise<void> {
    const failure = this.#reader?.failure();
    if (failure) throw this.#error(failure);
  }

  async close(): Promise<void> {
    const reader = this.#reader;
    if (reader === undefined) return;
    reader.stop();
    while (!reader.isGone()) await this.#change();
  }

  commandEnds(): readonly CommandEnd[] {
    return this.#reader?.ends().map(commandEnd) ?? [];
  }

  #started(): NativeReader {
    this.#reader ??= this.#start(() => this.#wake());
    return this.#reader;
  }

  #take(reader: NativeReader, length: number): Uint8Array {
    const lines = reader.lines();
    if (lines > this.#ends.length) this.#ends = new Uint32Array(lines * 2);
    this.headroom = length < LARGE ? 0 : HEADROOM;
    let memory: Uint8Array;
    if (this.headroom === 0) {
      memory = platform.allocate(length);
    } else {
      // It has no length if it was transferred elsewhere.
      memory = spare !== undefined && spare.length > 0 ? spare : platform.allocate(HEADROOM + BLOCK_BYTES);
      spare = undefined;
    }
    const chunk = memory.subarray(this.headroom, this.headroom + length);
    if (!reader.take(chunk, this.#ends)) {
      throw new MillstreamError("internal", { stream: this.name, found: `a block of more than ${length} bytes` });
    }
    this.lineEnds = this.#ends.subarray(0, lines);
    return chunk;
  }

  /** Resolves when something has changed since a call that reported nothing. Keeps the process alive meanwhile. */
  #change(): Promise<void> {
    this.#woken ??= new Promise((resolve) => {
      const awake = setInterval(() => {}, 0x7fffffff);
      this.#wake = () => {
        clearInterval(awake);
        this.#woken = undefined;
        this.#wake = () => {};
        resolve();
      };
    });
    return this.#woken;
  }

  #error(failure: NativeFailure): MillstreamError {
    const { kind, found, expected } = failure;
    return new MillstreamError(kind in ERROR_CODES ? (kind as ErrorKind) : "internal", {
      stream: this.name,
      found,
      expected,
      command: failure.command && commandEnd(failure.command),
      cause: systemError(failure),
    });
  }
}

function commandEnd(end: NativeEnd): CommandEnd {
  const { argv, status = null, signal, stderrTail } = end;
  return { argv, status, signal: signal === undefined ? null : signalName(signal), stderrTail };
}

function signalName(signal: number): string {
  const names = Object.entries(constants.signals);
  return names.find(([, number]) => number === signal)?.[0] ?? `SIG${signal}`;
}

/** The system's error, in Node's form. */
function systemError({ errno, system }: NativeFailure): Error | undefined {
  if (system === undefined) return undefined;
  if (errno === undefined) return new Error(system);
  const code = getSystemErrorName(-errno);
  return Object.assign(new Error(`${code}: ${system}`), { errno: -errno, code });
}
