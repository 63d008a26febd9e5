/** Readers for files, descriptors, standard input and commands. The native part reads them. */

import { argvOf, COMMAND_RULES, type CommandOptions, nativeCommand } from "./command.js";
import { showArgv } from "./error.js";
import { type NativeOptions, nativeOptions, neededBinding } from "./native.js";
import { checkOption, either, type Rule, type Rules, whole } from "./options.js";
import { pathOf } from "./path.js";
import { type As, checkReaderOptions, type ItemOf, READER_RULES, Reader, type ReaderOptions } from "./reader.js";
import { READER_SETTINGS, type ReaderSettings, STDIN, type Stdin } from "./settings.js";
import { NativeSource } from "./source/native.js";

/** Options of readers of files, descriptors and commands. */
export interface OpenOptions<A extends As = As> extends ReaderOptions<A>, ReaderSettings {}

/** Options of `command`. */
export interface CommandReaderOptions<A extends As = As> extends OpenOptions<A>, CommandOptions {
  /** The command's standard input: nothing (the default), the standard input of this process, or a file descriptor. */
  stdin?: Stdin | number;
}

const FD: Rule = whole(0, 0x7fffffff);

const OPEN_RULES: Rules<OpenOptions> = { ...READER_SETTINGS, ...READER_RULES };
const COMMAND_READER_RULES: Rules<CommandReaderOptions> = {
  ...OPEN_RULES,
  ...COMMAND_RULES,
  stdin: either(STDIN, FD),
};

/** Reads a file. The first read opens the file and reports `open_failed`.
 *
 * Compressed files are detected from their first bytes.
 *
 * @throws `unsupported` if the native part of this package is not installed
 */
export function open<A extends As = "text">(path: string | URL, options: OpenOptions<A> = {}): Reader<ItemOf<A>> {
  checkReaderOptions("open", options, OPEN_RULES);
  const name = pathOf("open", path);
  const { NativeReader } = neededBinding("open");
  const start = (wake: () => void) => NativeReader.path(name, settings(options), wake);
  return new Reader<ItemOf<A>>(NativeSource.late(name, start), options);
}

/** Reads a file descriptor of a file, a pipe or a socket. The caller still owns the descriptor. */
export function fd<A extends As = "text">(fd: number, options: OpenOptions<A> = {}): Reader<ItemOf<A>> {
  checkOption("fd", "fd", fd ?? null, FD);
  checkReaderOptions("fd", options, OPEN_RULES);
  const { NativeReader } = neededBinding("fd");
  const start = (wake: () => void) => NativeReader.fd(fd, settings(options), wake);
  return new Reader<ItemOf<A>>(NativeSource.late(`fd ${fd}`, start), options);
}

/** Reads standard input. */
export function stdin<A extends As = "text">(options: OpenOptions<A> = {}): Reader<ItemOf<A>> {
  checkReaderOptions("stdin", options, OPEN_RULES);
  return fd(0, { name: "standard input", ...options });
}

/**
 * Starts a command, without a shell, and reads its standard output.
 *
 * The end means that the command succeeded: if it exits with a non-zero status or is killed by a signal, you get an
 * error of kind `command_failed` after its last record, with the last line of its standard error. The first read
 * reports that a program does not exist.
 */
export function command<A extends As = "text">(
  file: string,
  args: readonly string[] = [],
  options: CommandReaderOptions<A> = {},
): Reader<ItemOf<A>> {
  const argv = argvOf("command", file, args);
  checkReaderOptions("command", options, COMMAND_READER_RULES);
  const { NativeReader } = neededBinding("command");
  const { stdin = "null" } = options;
  const input = typeof stdin === "number" ? { stdin: "null", stdinFd: stdin } : { stdin };
  const words = nativeCommand(argv, options, { ...input, stdout: "inherit" });
  const start = (wake: () => void) => NativeReader.command(words, settings(options), wake);
  return new Reader<ItemOf<A>>(NativeSource.started(showArgv(argv), start), options);
}

/** The library's options, but for those that `Reader` has itself. */
const NATIVE_OPTIONS = (Object.keys(READER_SETTINGS) as (keyof ReaderSettings)[]).filter(
  (name) => !(name in READER_RULES),
);

/** The options for the native part. */
function settings(options: OpenOptions): NativeOptions {
  return nativeOptions(options, NATIVE_OPTIONS);
}
