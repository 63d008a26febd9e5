/** The core as WebAssembly. `bindings/node/wasm` describes each function.
 *
 * The module is a file of the package in base64, and is compiled by the first call that needs it. So programs that do not need it pay
 * nothing, `require` works, and synchronous functions (`bson.columns`) stay synchronous; browsers compile a module of
 * this size without a promise.
 *
 * Bytes are copied into the module's memory, and results are copied out of it. The memory may move when it grows, so
 * callers never get a view of it.
 */

import MODULE from "./core-wasm.js";
import { type ErrorDetails, MillstreamError } from "./error.js";
import { type Kind, MEMORY_LIMIT, UNSUPPORTED } from "./errors.js";
import { platform } from "./text.js";

/** The functions of the module. Addresses are signed here, because WebAssembly's integers are. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  input(length: number): number;
  reply(): number;
  reply_length(): number;
  delimiter(length: number): void;
  any_of(): void;
  fixed(length: number): void;
  length_prefixed(width: number, isBig: boolean, countsItself: boolean): void;
  documents(): void;
  json_lines(isChecked: boolean, depth: number): void;
  csv(length: number): boolean;
  batch(length: number, eof: boolean, max: number): number;
  ends(): number;
  inner_lines(count: number): number;
  offsets(count: number): number;
  rows(length: number, terminated: boolean, isText: boolean, isStrict: boolean): number;
  step(length: number, eof: boolean, scanned: number, state: number): number;
  step_length(): number;
  step_scanned(): number;
  step_state(): number;
  check(length: number, isLast: boolean): void;
  path_at(length: number, at: number): void;
  sample(): void;
  observe(length: number, isLast: boolean, documents: number, bytes: number): void;
  fields(mixedIsJson: boolean): void;
  columns(length: number): number;
  append(length: number, isLast: boolean): void;
  take(): number;
}

/** An instance of the module with its own memory. */
export class Core {
  readonly call: Exports;
  /** The framer that was selected last. */
  framer: unknown;
  /** The whole memory; the view is empty after the memory has grown. */
  #memory = new Uint8Array(0);
  /** The address and the size of the input buffer. */
  #input = 0;
  #space = 0;

  constructor() {
    this.call = new WebAssembly.Instance(compiled()).exports as unknown as Exports;
  }

  /** Returns the memory, which is valid until the next call. */
  get memory(): Uint8Array {
    if (this.#memory.length === 0) this.#memory = new Uint8Array(this.call.memory.buffer);
    return this.#memory;
  }

  /** Copies bytes to the input of the next call, and returns their number. */
  put(bytes: Uint8Array): number {
    const { length } = bytes;
    if (length > this.#space) {
      this.#input = this.#allocate(length);
      this.#space = length;
    }
    this.memory.set(bytes, this.#input);
    return length;
  }

  /** Allocates the input. WebAssembly has 4 GiB, and stops the program if they do not suffice. */
  #allocate(length: number): number {
    try {
      return this.call.input(length) >>> 0;
    } catch (cause) {
      if (shared === this) shared = undefined;
      const found = `${length} bytes at once`;
      throw new MillstreamError(MEMORY_LIMIT, { found, expected: "less than WebAssembly has memory for", cause });
    }
  }

  /** Returns the reply to the last call. */
  reply(): any {
    const start = this.call.reply() >>> 0;
    const end = start + (this.call.reply_length() >>> 0);
    return JSON.parse(platform.decode(this.memory, start, end));
  }

  /** Returns numbers in the memory, which are valid until the next call. */
  words(start: number, count: number): Uint32Array {
    return new Uint32Array(this.call.memory.buffer, start >>> 0, count);
  }
}

let module: WebAssembly.Module | undefined;

function compiled(): WebAssembly.Module {
  if (module !== undefined) return module;
  try {
    module = new WebAssembly.Module(platform.fromBase64(MODULE));
  } catch (cause) {
    const expected = "a platform with WebAssembly; in a page with a content security policy, 'wasm-unsafe-eval' in it";
    throw new MillstreamError(UNSUPPORTED, { expected, cause });
  }
  return module;
}

let shared: Core | undefined;

/** Instances with more memory than this are not reused: a long record needed it, and memory cannot shrink. */
const MOST_MEMORY = 16 << 20;

/** The instance for calls that do not depend on an earlier one. */
export function core(): Core {
  if (shared === undefined || shared.memory.length > MOST_MEMORY) shared = new Core();
  return shared;
}

/** The description of an error of the core. */
export interface Failure extends Kind, ErrorDetails {}

/** Creates an error from the core's description. */
export function errorOf({ kind, advice, ...details }: Failure): MillstreamError {
  return new MillstreamError({ kind, advice }, details);
}
