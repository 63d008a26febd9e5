/** Loads the native part, and reports whether it is installed or why not.
 *
 * The native part is an optional package for each platform; in the repository, `tools/node native` builds it. The first
 * call that needs it loads it. If it is missing, importing this package still works, and those calls throw an error
 * that names the package to install. A build of another version is rejected.
 */

import { createRequire } from "node:module";
import { MillstreamError } from "./error.js";
import { type ErrorKind, UNSUPPORTED } from "./errors.js";

declare const MILLSTREAM_VERSION: string;

/** How a command ended, as reported by the native part. */
export interface NativeEnd {
  readonly argv: readonly string[];
  readonly status?: number | undefined;
  readonly signal?: number | undefined;
  readonly stderrTail: Uint8Array;
}

/** An error, as reported by the native part. */
export interface NativeFailure {
  readonly kind: ErrorKind;
  readonly advice: string;
  readonly command?: NativeEnd | undefined;
  readonly what?: string | undefined;
  readonly lastLine?: string | undefined;
  readonly found?: string | undefined;
  readonly expected?: string | undefined;
  readonly offset?: number | undefined;
  readonly record?: number | undefined;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  readonly path?: string | undefined;
  readonly errno?: number | undefined;
  readonly system?: string | undefined;
}

/** A reader of the native part. Every call returns immediately; `native/src/reader.rs` describes each. */
export interface NativeReader {
  front(): number;
  lines(): number;
  origin(): number[] | null;
  take(bytes: Uint8Array, lineEnds: Uint32Array): boolean;
  failure(): NativeFailure | null;
  ends(): NativeEnd[];
  stop(): void;
  isGone(): boolean;
}

/** A writer of the native part. Every call but `settle` returns immediately; `native/src/writer.rs` describes each. */
export interface NativeWriter {
  encodes(): boolean;
  isRefused(): boolean;
  write(bytes: Uint8Array): boolean;
  flush(): void;
  close(): void;
  stop(now: boolean): void;
  isIdle(): boolean;
  isGone(): boolean;
  failure(): NativeFailure | null;
  written(): number;
  vanishes(): boolean;
  ends(): NativeEnd[];
  settle(bytes: Uint8Array, patience: number): boolean;
}

/** The words of a command, in the form that the native part needs. */
export interface NativeCommand {
  /** The program and its arguments; for a shell line, only the line. */
  readonly argv: readonly string[];
  readonly shell: boolean;
  readonly currentDir?: string | undefined;
  readonly env?: { readonly [name: string]: string } | undefined;
  readonly stdin: string;
  readonly stdinFd?: number | undefined;
  readonly stdinPath?: string | undefined;
  readonly stdinBytes?: Uint8Array | undefined;
  readonly stdout: string;
  readonly stdoutFd?: number | undefined;
  readonly stderr: string;
  readonly allowFailure: boolean;
  readonly settings: NativeOptions;
}

/** The given options of the library, by their names in Rust. */
export interface NativeOptions {
  readonly [name: string]: number | string | number[] | boolean;
}

/** A description of an object; `native/src/remote.rs` describes each call. */
export interface NativeRemote {
  name(): string;
  failure(): NativeFailure | null;
}

/** Columns of the native part; `native/src/bson.rs` describes each call. Replies are JSON. */
export interface NativeColumns {
  append(bytes: Uint8Array): string;
  take(): string;
  fill(targets: Uint8Array[]): boolean;
}

/** A bad record, as reported by the native part. */
export interface NativeLeftOut {
  readonly failure: NativeFailure;
  readonly raw: Uint8Array;
}

/** Columns that a thread makes; `native/src/columns.rs` describes each call. */
export interface NativeRecordColumns {
  front(): number;
  take(bytes: Uint8Array): boolean;
  schema(): string | null;
  counts(): [rows: number, rejected: number];
  rejects(): NativeLeftOut[];
  failure(): NativeFailure | null;
  stop(): void;
  isGone(): boolean;
}

/** What the columns of a thread are. */
export interface NativeColumnsOptions {
  readonly text: string;
  readonly schema?: string | undefined;
  readonly name: string;
  readonly recordLimit: number;
  readonly expectRecords?: number | undefined;
}

/** A plan that a thread makes; `native/src/splits.rs` describes each call. */
export interface NativePlan {
  json(): string | null;
  failure(): NativeFailure | null;
  stop(): void;
}

/** The options of a plan. */
export interface NativePlanOptions {
  readonly framing: string;
  readonly size: number;
  readonly pin: string;
  readonly decode: string;
  readonly index?: string | undefined;
  readonly number: boolean;
}

interface Binding {
  version(): string;
  checkDocuments(bytes: Uint8Array): string;
  readonly NativeRecordColumns: {
    refusal(text: string, schema: string | undefined): NativeFailure | null;
    start(reader: NativeReader, options: NativeColumnsOptions, wake: () => void): NativeRecordColumns;
  };
  readonly NativeColumns: new (plan: string) => NativeColumns;
  readonly NativeRemote: new (
    url: string,
    headers: readonly (readonly [string, string])[],
    options: NativeOptions,
  ) => NativeRemote;
  readonly NativeReader: {
    commands(
      words: readonly NativeCommand[],
      options: NativeOptions,
      wake: () => void,
      input: NativeWriter | undefined,
    ): NativeReader;
    path(path: string, options: NativeOptions, wake: () => void): NativeReader;
    url(remote: NativeRemote, options: NativeOptions, wake: () => void): NativeReader;
    split(json: string, remote: NativeRemote | undefined, options: NativeOptions, wake: () => void): NativeReader;
    fd(fd: number, options: NativeOptions, wake: () => void): NativeReader;
    pipe(input: NativeWriter, options: NativeOptions, wake: () => void): NativeReader;
    memory(bytes: Uint8Array, options: NativeOptions, wake: () => void): NativeReader;
  };
  readonly NativePlan: {
    start(path: string, options: NativePlanOptions, wake: () => void): NativePlan;
    url(remote: NativeRemote, options: NativePlanOptions, wake: () => void): NativePlan;
  };
  readonly NativeWriter: {
    command(words: NativeCommand, options: NativeOptions, wake: () => void): NativeWriter;
    pipe(wake: () => void): NativeWriter;
    path(path: string, options: NativeOptions, wake: () => void): NativeWriter;
    url(remote: NativeRemote, options: NativeOptions, wake: () => void): NativeWriter;
    fd(fd: number, options: NativeOptions, wake: () => void): NativeWriter;
  };
  leaveFiles(patience: number): void;
}

/** The loaded native part, or the reason why it is not loaded. */
type Loaded = { readonly binding: Binding } | { readonly binding?: undefined; readonly reason: string };

let loaded: Loaded | undefined;

const PLATFORM = `${process.platform}-${process.arch}`;

/** On Linux, npm installs only the package for the C library of the system. */
const NAMES = process.platform === "linux" ? [`${PLATFORM}-gnu`, `${PLATFORM}-musl`] : [PLATFORM];

function load(): Loaded {
  const require = createRequire(import.meta.url);
  const places = NAMES.flatMap((name) => [`../native/millstream.${name}.node`, `millstream-${name}`]);
  let reason = `it is not installed`;
  for (const place of places) {
    try {
      const binding: Binding = require(place);
      const version = binding.version();
      if (version === MILLSTREAM_VERSION) return { binding };
      reason = `${place} has version ${version}, but this package has ${MILLSTREAM_VERSION}`;
    } catch (error) {
      if ((error as { code?: unknown }).code !== "MODULE_NOT_FOUND") reason = `${place}: ${(error as Error).message}`;
    }
  }
  return { reason };
}

/** Returns the native part, or `undefined`.
 *
 * @internal
 */
export function nativeBinding(): Binding | undefined {
  loaded ??= load();
  return loaded.binding;
}

/** Returns the native part for a call that requires it. @throws `unsupported`, with the package to install */
export function neededBinding(call: string): Binding {
  const binding = nativeBinding();
  if (binding !== undefined) return binding;
  throw new MillstreamError(UNSUPPORTED, {
    stream: call,
    found: `no native part of this package for ${PLATFORM}: ${native.reason}`,
    expected: `the package ${NAMES.map((name) => `millstream-${name}`).join(" or ")}, which npm install adds`,
  });
}

/** Returns the given options among these, and not among the others, by their names in Rust.
 *
 * @internal
 */
export function nativeOptions(options: object, among: object, others: object = {}): NativeOptions {
  const given = Object.entries(options)
    .filter(([name, value]) => value !== undefined && name in among && !(name in others))
    .map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]);
  return Object.fromEntries(given);
}

/** The state of the native part. */
export interface Native {
  /** Whether it is installed. */
  readonly available: boolean;
  /** The reason why it is not installed. */
  readonly reason?: string | undefined;
  /** Its version, which is the version of this package. */
  readonly version?: string | undefined;
}

/**
 * Whether the native part is installed, which `command`, `open`, `remote`, `fd`, `stdin` and `columns` need, and so do `Writer.path`,
 * `fd`, `stdout` and `command`.
 */
export const native: Native = {
  get available() {
    return nativeBinding() !== undefined;
  },
  get reason() {
    loaded ??= load();
    return loaded.binding === undefined ? loaded.reason : undefined;
  },
  get version() {
    return nativeBinding()?.version();
  },
};
