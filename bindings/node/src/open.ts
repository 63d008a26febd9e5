/** Readers for files, descriptors, standard input and commands. The native part reads them. */

import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";
import { argvOf, COMMAND_RULES, type CommandOptions } from "./command.js";
import { showArgv } from "./error.js";
import { type NativeCommand, type NativeOptions, neededBinding } from "./native.js";
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
  const start = (wake: () => void) => NativeReader.path(name, nativeOptions(options), wake);
  return new Reader<ItemOf<A>>(NativeSource.late(name, start), options);
}

/** Reads a file descriptor of a file, a pipe or a socket. The caller still owns the descriptor. */
export function fd<A extends As = "text">(fd: number, options: OpenOptions<A> = {}): Reader<ItemOf<A>> {
  checkOption("fd", "fd", fd ?? null, FD);
  checkReaderOptions("fd", options, OPEN_RULES);
  const { NativeReader } = neededBinding("fd");
  const start = (wake: () => void) => NativeReader.fd(fd, nativeOptions(options), wake);
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
  const words = nativeCommand(argv, options);
  const start = (wake: () => void) => NativeReader.command(words, nativeOptions(options), wake);
  return new Reader<ItemOf<A>>(NativeSource.started(showArgv(argv), start), options);
}

function nativeCommand(argv: readonly string[], options: CommandReaderOptions): NativeCommand {
  const { currentDir, stdin = "null", stderr = "forward", allowFailure = false } = options;
  // A worker's `process.env` is a separate copy.
  const all = options.env ?? (isMainThread ? undefined : process.env);
  const given = Object.entries(all ?? {}).filter(([, value]) => value !== undefined);
  const env = all && Object.fromEntries(given.map(([name, value]) => [name, `${value}`]));
  const input = typeof stdin === "number" ? { stdin: "null", stdinFd: stdin } : { stdin };
  const directory = currentDir instanceof URL ? fileURLToPath(currentDir) : currentDir;
  return { argv, currentDir: directory, env, ...input, stderr, allowFailure };
}

/**
 * What the native part needs to know: the library's options that were given, but for those that `Reader` has itself.
 */
function nativeOptions(options: OpenOptions): NativeOptions {
  const given = (Object.keys(READER_SETTINGS) as (keyof ReaderSettings)[])
    .filter((name) => !(name in READER_RULES) && options[name] !== undefined)
    .map((name) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), options[name]]);
  return Object.fromEntries(given);
}
