/**
 * The native part, if it is there: whether it is, and why not.
 *
 * It comes as an optional package for each platform, or from `tools/node native` in the repository. Nothing needs it, nobody
 * is warned where it is missing, and it is loaded by the first who asks. A build of another version is not taken.
 */

import { createRequire } from "node:module";
import type { FillerOptions } from "./bson/columns/filler.js";

declare const MILLSTREAM_VERSION: string;

/** How a command ended, as the native part says it. */
export interface NativeEnd {
  readonly argv: readonly string[];
  readonly status?: number;
  readonly signal?: number;
  readonly stderrTail: Uint8Array;
}

/** What went wrong, as the native part says it. */
export interface NativeFailure {
  readonly kind: string;
  readonly command?: NativeEnd;
  readonly found?: string;
  readonly expected?: string;
  readonly errno?: number;
  readonly system?: string;
  readonly offset?: number;
  readonly path?: string;
}

/** A reader of the native part. Every call returns at once; `native/src/reader.rs` says what each does. */
export interface NativeReader {
  front(): number;
  lines(): number;
  take(bytes: Uint8Array, lineEnds: Uint32Array): boolean;
  failure(): NativeFailure | null;
  ends(): NativeEnd[];
  stop(): void;
  isGone(): boolean;
}

/** The words of a command, as the native part wants them. */
export interface NativeCommand {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: { readonly [name: string]: string };
  readonly stdin: "ignore" | "inherit";
  readonly stderr: string;
  readonly failure: string;
}

/** A column, as the native part wants it: `kind` is the name of a type, `list` or `struct`. */
export interface NativeField {
  readonly name: string;
  readonly keys: readonly string[];
  readonly kind: string;
  readonly nullable: boolean;
  readonly inside: readonly NativeField[];
}

/** Columns of the native part: `native/src/bson/columns.rs` says what each call does. */
export interface NativeColumns {
  readonly isFull: boolean;
  append(bytes: Uint8Array): { rows: number; bytes: number; failure?: NativeFailure };
  take(): { rows: number; mismatched: number; unknown: number; parts: number[] };
  fill(targets: Uint8Array[]): boolean;
}

interface Binding {
  version(): string;
  checkDocuments(bytes: Uint8Array): { documents: number; failure?: NativeFailure };
  readonly NativeColumns: new (fields: readonly NativeField[], options: FillerOptions) => NativeColumns;
  readonly NativeReader: {
    command(words: NativeCommand, wake: () => void): NativeReader;
    path(path: string, wake: () => void): NativeReader;
    fd(fd: number, wake: () => void): NativeReader;
  };
}

/** The native part, loaded; or why it is not. */
type Loaded = { readonly binding: Binding } | { readonly binding?: undefined; readonly reason: string };

let loaded: Loaded | undefined;

function load(): Loaded {
  const require = createRequire(import.meta.url);
  const platform = `${process.platform}-${process.arch}`;
  // On Linux one of the two is for the C library that is there; npm installs that one only.
  const names = process.platform === "linux" ? [`${platform}-gnu`, `${platform}-musl`] : [platform];
  const places = names.flatMap((name) => [`../native/millstream.${name}.node`, `millstream-${name}`]);
  let reason = `there is none for ${platform} here`;
  for (const place of places) {
    try {
      const binding: Binding = require(place);
      const version = binding.version();
      if (version === MILLSTREAM_VERSION) return { binding };
      reason = `${place} is of version ${version}, and this is ${MILLSTREAM_VERSION}`;
    } catch (error) {
      if ((error as { code?: unknown }).code !== "MODULE_NOT_FOUND") reason = `${place}: ${(error as Error).message}`;
    }
  }
  return { reason };
}

/**
 * The native part, or `undefined`.
 *
 * @internal
 */
export function nativeBinding(): Binding | undefined {
  loaded ??= load();
  return loaded.binding;
}

/** What is known of the native part. */
export interface Native {
  /** Whether it is there. */
  readonly available: boolean;
  /** If not, why. */
  readonly reason?: string;
  /** Its version, which is this package's. */
  readonly version?: string;
}

/** Whether the native part is there, which makes `command`, `open`, `fd` and `stdin` faster, and nothing else different. */
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
