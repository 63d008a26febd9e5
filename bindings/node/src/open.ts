/** Readers over what Node has: files, descriptors, standard input, commands. */

import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";
import { argvOf, type CommandOptions, Running } from "./command.js";
import { MillstreamError, showArgv } from "./error.js";
import { type NativeCommand, native, nativeBinding } from "./native.js";
import { type As, type ItemOf, Reader, type ReaderOptions } from "./reader.js";
import { CommandSource } from "./source/command.js";
import { DecodedSource } from "./source/decode.js";
import { FileSource, LateSource } from "./source/file.js";
import { NativeSource } from "./source/native.js";
import type { Source } from "./source/source.js";

/** Options of readers that can decompress. */
export interface OpenOptions<A extends As = As> extends ReaderOptions<A> {
  /** Whether what begins like gzip or zstd is decompressed: `"auto"` unless told otherwise. */
  decode?: "auto" | "off";
}

/** Whether the native part reads. What is read, and what goes wrong, is the same. */
export interface NativeOptions {
  /** If it is there, unless told otherwise; `true` makes it an error of kind `unsupported` that it is not. */
  native?: boolean;
}

/** Options of `command`. */
export interface CommandReaderOptions<A extends As = As> extends OpenOptions<A>, CommandOptions, NativeOptions {
  /** Its standard input: nothing unless told otherwise, ours, or a file descriptor. */
  stdin?: "ignore" | "inherit" | number;
}

/**
 * Reads a file. It is opened by the first read, which reports `open_failed`.
 *
 * Compressed files are recognised by their first bytes.
 */
export function open<A extends As = "text">(
  path: string | URL,
  options: OpenOptions<A> & NativeOptions = {},
): Reader<ItemOf<A>> {
  const name = typeof path === "string" ? path : fileURLToPath(path);
  const binding = bindingFor(options);
  if (binding !== undefined) {
    const start = (wake: () => void) => binding.NativeReader.path(name, wake);
    return reader(NativeSource.late(name, start), options);
  }
  return reader(new LateSource(name, () => FileSource.open(name)), options);
}

/** Reads a file descriptor, which stays the caller's: a file, a pipe, a socket. */
export function fd<A extends As = "text">(fd: number, options: OpenOptions<A> & NativeOptions = {}): Reader<ItemOf<A>> {
  const name = `fd ${fd}`;
  const binding = bindingFor(options);
  if (binding !== undefined) {
    const start = (wake: () => void) => binding.NativeReader.fd(fd, wake);
    return reader(NativeSource.late(name, start), options);
  }
  return reader(new LateSource(name, () => FileSource.fd(fd)), options);
}

/** Reads standard input. */
export function stdin<A extends As = "text">(options: OpenOptions<A> & NativeOptions = {}): Reader<ItemOf<A>> {
  return fd(0, { name: "standard input", ...options });
}

/**
 * Starts a command, without a shell, and reads its standard output.
 *
 * The end means that it succeeded: a status other than 0 or a signal is an error of kind `command_failed` behind its last
 * record, with the last it said. A program that does not exist is reported by the first read.
 */
export function command<A extends As = "text">(
  file: string,
  args: readonly string[] = [],
  options: CommandReaderOptions<A> = {},
): Reader<ItemOf<A>> {
  const argv = argvOf(file, args);
  const { stdin = "ignore" } = options;
  // A descriptor is lent to a child by Node only.
  const binding = typeof stdin === "number" ? undefined : bindingFor(options);
  if (binding !== undefined) {
    const words = nativeCommand(argv, stdin as "ignore", options);
    const start = (wake: () => void) => binding.NativeReader.command(words, wake);
    return reader(NativeSource.started(showArgv(argv), start), options);
  }
  return reader(new CommandSource(new Running(argv, stdin as "ignore", "pipe", options)), options);
}

function bindingFor({ native: wanted }: NativeOptions): ReturnType<typeof nativeBinding> {
  if (wanted === false) return undefined;
  const binding = nativeBinding();
  if (binding === undefined && wanted === true) {
    throw new MillstreamError("unsupported", { found: native.reason, expected: "the native part of this package" });
  }
  return binding;
}

function nativeCommand(argv: readonly string[], stdin: "ignore" | "inherit", options: CommandOptions): NativeCommand {
  const { cwd, stderr = "forward", failure = "error" } = options;
  // A worker's `process.env` is a copy of its own.
  const all = options.env ?? (isMainThread ? undefined : process.env);
  const given = Object.entries(all ?? {}).filter(([, value]) => value !== undefined);
  const env = all && Object.fromEntries(given.map(([name, value]) => [name, `${value}`]));
  return { argv, cwd: cwd instanceof URL ? fileURLToPath(cwd) : cwd, env, stdin, stderr, failure };
}

function reader<A extends As>(source: Source, options: OpenOptions<A>): Reader<ItemOf<A>> {
  return new Reader<ItemOf<A>>(options.decode === "off" ? source : new DecodedSource(source), options);
}
