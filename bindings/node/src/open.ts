/** Readers over what Node has: files, descriptors, standard input, commands. */

import { fileURLToPath } from "node:url";
import { argvOf, type CommandOptions, Running } from "./command.js";
import { type As, type ItemOf, Reader, type ReaderOptions } from "./reader.js";
import { CommandSource } from "./source/command.js";
import { DecodedSource } from "./source/decode.js";
import { FileSource, LateSource } from "./source/file.js";
import type { Source } from "./source/source.js";

/** Options of readers that can decompress. */
export interface OpenOptions<A extends As = As> extends ReaderOptions<A> {
  /** Whether what begins like gzip or zstd is decompressed: `"auto"` unless told otherwise. */
  decode?: "auto" | "off";
}

/** Options of `command`. */
export interface CommandReaderOptions<A extends As = As> extends OpenOptions<A>, CommandOptions {
  /** Its standard input: nothing unless told otherwise, ours, or a file descriptor. */
  stdin?: "ignore" | "inherit" | number;
}

/**
 * Reads a file. It is opened by the first read, which reports `open_failed`.
 *
 * Compressed files are recognised by their first bytes.
 */
export function open<A extends As = "text">(path: string | URL, options: OpenOptions<A> = {}): Reader<ItemOf<A>> {
  const name = typeof path === "string" ? path : fileURLToPath(path);
  return reader(new LateSource(name, () => FileSource.open(name)), options);
}

/** Reads a file descriptor, which stays the caller's: a file, a pipe, a socket. */
export function fd<A extends As = "text">(fd: number, options: OpenOptions<A> = {}): Reader<ItemOf<A>> {
  return reader(new LateSource(`fd ${fd}`, () => FileSource.fd(fd)), options);
}

/** Reads standard input. */
export function stdin<A extends As = "text">(options: OpenOptions<A> = {}): Reader<ItemOf<A>> {
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
  const running = new Running(argvOf(file, args), (options.stdin ?? "ignore") as "ignore", "pipe", options);
  return reader(new CommandSource(running), options);
}

function reader<A extends As>(source: Source, options: OpenOptions<A>): Reader<ItemOf<A>> {
  return new Reader<ItemOf<A>>(options.decode === "off" ? source : new DecodedSource(source), options);
}
