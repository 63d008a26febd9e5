/** Readers for files, objects, descriptors, standard input and commands. The native part reads them. */

import { fileURLToPath } from "node:url";
import { argvOf, COMMAND_RULES, type CommandOptions, lineOf, nativeCommand, showArgv } from "./command.js";
import { misuse } from "./error.js";
import { INVALID_OPTION } from "./errors.js";
import type { Input } from "./from.js";
import { CommandInput } from "./input.js";
import { elementFramer } from "./json.js";
import { type NativeOptions, nativeOptions, neededBinding } from "./native.js";
import { type Check, checkOption, range, refuseTogether, show, type Tables } from "./options.js";
import { type As, checkReaderOptions, type ItemOf, READER_RULES, Reader, type ReaderOptions } from "./reader.js";
import { nativeRemote, placeOf } from "./remote.js";
import { COMMAND_SETTINGS, READER_SETTINGS, type ReaderSettings, type Stdin } from "./settings.js";
import { NativeSource } from "./source/native.js";
import { platform } from "./text.js";
import type { Remote } from "./url.js";

/** Options of readers of files, objects, descriptors and commands. */
export interface OpenOptions<A extends As = As> extends ReaderOptions<A>, ReaderSettings {}

/** Options of `command`, `pipeline` and `shell`. */
export interface CommandReaderOptions<A extends As = As> extends OpenOptions<A>, CommandOptions {
  /** The command's standard input: nothing (the default), the standard input of this process, a file descriptor or an
   * object that has one (`FileHandle`), or a file, by its URL.
   */
  stdin?: Stdin | number | { readonly fd: number } | URL | undefined;
  /** The content of its standard input, instead of `stdin`: a string, bytes, anything else that `from` accepts, or a
   * reader, whose bytes are passed on.
   *
   * The command need not read all of it. If the content cannot be read, the command gets the end of its input, and after
   * the command's last record you get that error.
   */
  input?: Input | Reader<any> | undefined;
}

const FD: Check = /* @__PURE__ */ range(0, 0x7fffffff);

export const OPEN_RULES: Tables<OpenOptions> = [READER_SETTINGS, READER_RULES];
const FILE: Check = {
  expected: "a FileHandle or a file URL",
  accepts: (value) =>
    typeof value === "object" && value !== null && (FD.accepts(value.fd) || value.protocol === "file:"),
};
const CONTENT: Check = {
  expected: "a string, bytes, an iterable, a stream or a reader",
  accepts: (value) => typeof value === "string" || (typeof value === "object" && value !== null),
};
const COMMAND_READER_RULES: Tables<CommandReaderOptions> = [
  READER_SETTINGS,
  READER_RULES,
  COMMAND_RULES,
  COMMAND_SETTINGS,
  { stdin: ["null", "inherit", FD, FILE], input: CONTENT },
];

/** Reads a file, or an object of a web server or an object store: a path, `https://…`, `http://…`, `s3://BUCKET/KEY`, or
 * the result of `remote`. The first read opens it and reports `open_failed`.
 *
 * Compressed content is detected from its first bytes. The end means that the whole file was read, or every byte of one
 * version of the object.
 *
 * @throws `unsupported` if the native part of this package is not installed
 */
export function open<A extends As = "text">(
  path: string | URL | Remote,
  options: OpenOptions<A> = {},
): Reader<ItemOf<A>> {
  checkReaderOptions("open", options, OPEN_RULES);
  const place = placeOf("open", path);
  const { NativeReader } = neededBinding("open");
  if (typeof place !== "string") {
    const start = (wake: () => void) => NativeReader.url(nativeRemote(place), settings(options), wake);
    return readerOf(NativeSource.late(place.name, start), options);
  }
  const start = (wake: () => void) => NativeReader.path(place, settings(options), wake);
  return readerOf(NativeSource.late(place, start), options);
}

/** Reads a file descriptor of a file, a pipe or a socket. The caller still owns the descriptor. */
export function fd<A extends As = "text">(fd: number, options: OpenOptions<A> = {}): Reader<ItemOf<A>> {
  checkOption("fd", "fd", fd ?? null, FD);
  checkReaderOptions("fd", options, OPEN_RULES);
  const { NativeReader } = neededBinding("fd");
  const start = (wake: () => void) => NativeReader.fd(fd, settings(options), wake);
  return readerOf(NativeSource.late(`file descriptor ${fd}`, start), options);
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
  return started("command", showArgv(argv), [argv], options);
}

/**
 * Starts commands without a shell, each of which reads the output of the previous one, and reads the output of the last.
 *
 * All of them must succeed, as with `command`; an error names the command that failed. The options apply to all of them,
 * `stdin` to the first.
 */
export function pipeline<A extends As = "text">(
  commands: readonly (readonly [file: string, ...args: string[]])[],
  options: CommandReaderOptions<A> = {},
): Reader<ItemOf<A>> {
  const refuse = (found: string) => {
    const expected = 'an array of commands: pipeline([["cat", "names.txt"], ["sort"]])';
    return misuse({ stream: "pipeline", found, expected }, INVALID_OPTION);
  };
  if (!Array.isArray(commands)) throw refuse(show(commands));
  if (commands.length === 0) throw refuse("no command");
  const argvs = commands.map((argv) => {
    if (!Array.isArray(argv)) throw refuse(`the command ${show(argv)}`);
    const [file, ...args] = argv;
    return argvOf("pipeline", file, args);
  });
  return started("pipeline", argvs.map(showArgv).join(" | "), argvs, options);
}

/** Starts a shell line, `bash -o pipefail -c line`, and reads its standard output: each command in it must succeed.
 *
 * Never put user input or file names into the line: `command` passes arguments unchanged.
 *
 * @throws `unsupported` at the first read if bash is not installed: other shells do not report every failure.
 */
export function shell<A extends As = "text">(line: string, options: CommandReaderOptions<A> = {}): Reader<ItemOf<A>> {
  lineOf("shell", line);
  return started("shell", line, [line], options);
}

/** Starts commands now and returns the reader of the last.
 *
 * @internal
 */
export function started<A extends As>(
  call: string,
  name: string,
  commands: readonly (readonly string[] | string)[],
  options: CommandReaderOptions<A>,
  items?: CommandInput,
): Reader<ItemOf<A>> {
  checkReaderOptions(call, options, COMMAND_READER_RULES);
  refuseTogether(call, options, "stdin", "input");
  const { NativeReader } = neededBinding(call);
  const { stdin = "null", input } = options;
  const bytes = bytesOf(input);
  const fed = items ?? (input === undefined || bytes !== undefined ? undefined : CommandInput.of(call, input));
  const first = { ...connected(stdin), stdinBytes: bytes };
  const all = commands.map((words, index) =>
    nativeCommand(words, options, { ...(index === 0 ? first : { stdin: "null" }), stdout: "inherit" }),
  );
  const start = (wake: () => void) => NativeReader.commands(all, settings(options), wake, fed?.pipe);
  return readerOf(NativeSource.started(name, start, fed), options);
}

/** Returns a reader. Its records are elements by default if it reads a document of JSON. */
function readerOf<A extends As>(source: NativeSource, options: OpenOptions<A>): Reader<ItemOf<A>> {
  const { jsonElements, keepDelimiter, framer } = options;
  const isDocument = jsonElements !== undefined && framer === undefined && keepDelimiter === undefined;
  return new Reader<ItemOf<A>>(source, isDocument ? { ...options, framer: elementFramer() } : options);
}

function connected(stdin: NonNullable<CommandReaderOptions["stdin"]>) {
  if (typeof stdin === "string") return { stdin };
  if (typeof stdin === "number") return { stdin: "null", stdinFd: stdin };
  return "fd" in stdin ? { stdin: "null", stdinFd: stdin.fd } : { stdin: "null", stdinPath: fileURLToPath(stdin) };
}

/** Content that is in memory: a thread writes it. */
function bytesOf(input: CommandReaderOptions["input"]): Uint8Array | undefined {
  if (typeof input === "string") return platform.encode(input);
  if (input instanceof ArrayBuffer) return new Uint8Array(input);
  return input instanceof Uint8Array ? input : undefined;
}

/** The options for the native part: the library's, but for those that `Reader` has itself. */
export function settings(options: OpenOptions): NativeOptions {
  return nativeOptions(options, READER_SETTINGS, READER_RULES);
}
