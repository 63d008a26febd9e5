/** Writers to files, objects, descriptors, standard output and commands. */

import { isatty } from "node:tty";
import { useAtExit } from "./at-exit.js";
import { argvOf, COMMAND_RULES, type CommandOptions, lineOf, nativeCommand, showArgv } from "./command.js";
import { type NativeOptions, nativeOptions, neededBinding } from "./native.js";
import { type Check, checkOption, checkOptions, NUMBER, type Rules, range, type Tables, WHOLE } from "./options.js";
import { nativeRemote, placeOf } from "./remote.js";
import {
  COMMAND_SETTINGS,
  DURABILITY,
  ENCODE,
  EXISTING,
  PARTIAL,
  type Stdout,
  WRITER_SETTINGS,
  type WriterSettings,
} from "./settings.js";
import { NativeSink } from "./sink/native.js";
import type { NodeWritable } from "./sink/stream.js";
import type { Remote } from "./url.js";
import { Writer as PlainWriter, type StreamWriterOptions, WRITER_RULES, type WriterOptions } from "./writer.js";

/** Options of writers that the native part writes. */
export interface EncodedWriterOptions
  extends WriterOptions,
    Pick<WriterSettings, "encode" | "level" | "blockSize" | "stallTimeout"> {}

/** Options of `Writer.path`. */
export interface PathWriterOptions
  extends EncodedWriterOptions,
    Pick<WriterSettings, "existing" | "partial" | "durability"> {}

/** Options of `Writer.fd` and `Writer.stdout`. */
export interface FdWriterOptions extends EncodedWriterOptions, Pick<WriterSettings, "durability" | "linger"> {}

/** Options of `Writer.command` and `Writer.shell`. */
export interface CommandWriterOptions extends EncodedWriterOptions, CommandOptions {
  /**
   * The command's standard output: the standard output of this process (the default), nothing, or a file descriptor.
   */
  stdout?: Stdout | number | undefined;
}

const FD: Check = /* @__PURE__ */ range(0, 0x7fffffff);
const ENCODED_RULES: Rules<Pick<EncodedWriterOptions, "encode" | "level" | "blockSize" | "stallTimeout">> = {
  encode: ENCODE,
  level: WHOLE,
  blockSize: WHOLE,
  stallTimeout: NUMBER,
};
const PATH_RULES: Tables<PathWriterOptions> = [
  WRITER_RULES,
  ENCODED_RULES,
  { existing: EXISTING, partial: PARTIAL, durability: DURABILITY },
];
/** The only option of an object that the library does not check, because `Writer` has its own. */
const NO_DELAY: Check = {
  expected: "no delay, because an object appears when its writer is closed",
  accepts: () => false,
};
const FD_RULES: Tables<FdWriterOptions> = [WRITER_RULES, ENCODED_RULES, { durability: DURABILITY, linger: NUMBER }];
const COMMAND_WRITER_RULES: Tables<CommandWriterOptions> = [
  WRITER_RULES,
  ENCODED_RULES,
  COMMAND_RULES,
  COMMAND_SETTINGS,
  { stdout: ["inherit", "null", FD] },
];

/** The options for the native part: the library's, but for those that `Writer` has itself. */
function settings(options: WriterSettings): NativeOptions {
  return nativeOptions(options, WRITER_SETTINGS, WRITER_RULES);
}

/** Writes bytes and strings to a sink through a buffer: the sinks of every platform, and those of Node. */
export class Writer extends PlainWriter {
  static override to(stream: NodeWritable | WritableStream<any>, options: StreamWriterOptions = {}): Writer {
    useAtExit();
    return PlainWriter.to(stream, options);
  }

  /** Writes a file, which appears complete when the writer is closed, or which is appended to or written in place
   * (`existing`, `partial`); or an object of an object store, which appears complete as well: `s3://BUCKET/KEY`, or the
   * result of `remote`. It is compressed if its name ends in `.gz`, `.bgz`, `.zst` or `.xz`.
   *
   * It is opened immediately; the first call that waits reports `open_failed`, and `already_exists` for `"create_new"`.
   *
   * @throws `unsupported`, before anything is opened, for a name that implies another compression, such as `.lz4`, for
   * the URL of a web server, and if the native part of this package is not installed.
   */
  static path(path: string | URL | Remote, options: PathWriterOptions = {}): Writer {
    checkOptions("Writer.path", options, PATH_RULES);
    const place = placeOf("Writer.path", path);
    const { NativeWriter } = neededBinding("Writer.path");
    if (typeof place !== "string") {
      checkOption(place.name, "flushDelay", options.flushDelay, NO_DELAY);
      const start = (wake: () => void) => NativeWriter.url(nativeRemote(place), settings(options), wake);
      return native(new NativeSink(start, { name: place.name, isNothingAtExit: true }), options);
    }
    const { existing = "replace", partial = "remove" } = options;
    const isNothingAtExit = existing === "replace" && partial === "remove";
    const start = (wake: () => void) => NativeWriter.path(place, settings(options), wake);
    return native(new NativeSink(start, { name: place, isNothingAtExit }), options);
  }

  /** Writes to a file descriptor, which the caller still owns. */
  static fd(fd: number, options: FdWriterOptions = {}): Writer {
    checkOption("Writer.fd", "fd", fd ?? null, FD);
    checkOptions("Writer.fd", options, FD_RULES);
    const { NativeWriter } = neededBinding("Writer.fd");
    const start = (wake: () => void) => NativeWriter.fd(fd, settings(options), wake);
    return native(new NativeSink(start, { name: `file descriptor ${fd}`, isTerminal: isatty(fd) }), options);
  }

  /**
   * Writes to standard output without `process.stdout`: bytes that are buffered in the two are not ordered relative
   * to each other.
   */
  static stdout(options: FdWriterOptions = {}): Writer {
    checkOptions("Writer.stdout", options, FD_RULES);
    return Writer.fd(1, { name: "standard output", ...options });
  }

  /**
   * Starts a command without a shell and writes to its standard input. `close` waits for it and fails if the command
   * fails.
   */
  static command(file: string, args: readonly string[] = [], options: CommandWriterOptions = {}): Writer {
    const argv = argvOf("Writer.command", file, args);
    return started("Writer.command", showArgv(argv), argv, options);
  }

  /**
   * Starts a shell line, `bash -o pipefail -c line`, and writes to its standard input. Never put user input or file names
   * into the line.
   *
   * `close` waits for it and fails if a command in it fails.
   */
  static shell(line: string, options: CommandWriterOptions = {}): Writer {
    return started("Writer.shell", lineOf("Writer.shell", line), line, options);
  }
}

/** Starts a command now and returns its writer. */
function started(call: string, name: string, command: readonly string[] | string, options: CommandWriterOptions) {
  checkOptions(call, options, COMMAND_WRITER_RULES);
  const { NativeWriter } = neededBinding(call);
  const { stdout = "inherit" } = options;
  const output = typeof stdout === "number" ? { stdout: "null", stdoutFd: stdout } : { stdout };
  const words = nativeCommand(command, options, { stdin: "null", ...output });
  const start = (wake: () => void) => NativeWriter.command(words, settings(options), wake);
  return native(new NativeSink(start, { name }), options);
}

function native(sink: NativeSink, options: WriterOptions): Writer {
  useAtExit();
  return new Writer(sink, options);
}
