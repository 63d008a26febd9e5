/** Writers to files, descriptors, standard output and commands. */

import { isatty } from "node:tty";
import { argvOf, COMMAND_RULES, type CommandOptions, nativeCommand } from "./command.js";
import { showArgv } from "./error.js";
import { type NativeOptions, nativeOptions, neededBinding } from "./native.js";
import { checkOption, checkOptions, either, type Rule, type Rules, whole } from "./options.js";
import { pathOf } from "./path.js";
import { STDOUT, type Stdout, WRITER_SETTINGS, type WriterSettings } from "./settings.js";
import { NativeSink } from "./sink/native.js";
import { Writer as PlainWriter, WRITER_RULES, type WriterOptions } from "./writer.js";

/** Options of writers that the native part writes. */
export interface EncodedWriterOptions
  extends WriterOptions,
    Pick<WriterSettings, "encode" | "level" | "stallTimeout"> {}

/** Options of `Writer.path`. */
export interface PathWriterOptions
  extends EncodedWriterOptions,
    Pick<WriterSettings, "existing" | "partial" | "durability"> {}

/** Options of `Writer.fd` and `Writer.stdout`. */
export interface FdWriterOptions extends EncodedWriterOptions, Pick<WriterSettings, "durability" | "linger"> {}

/** Options of `Writer.command`. */
export interface CommandWriterOptions extends EncodedWriterOptions, CommandOptions {
  /**
   * The command's standard output: the standard output of this process (the default), nothing, or a file descriptor.
   */
  stdout?: Stdout | number;
}

const FD: Rule = whole(0, 0x7fffffff);
const ENCODED_RULES: Rules<EncodedWriterOptions> = {
  ...WRITER_RULES,
  encode: WRITER_SETTINGS.encode,
  level: WRITER_SETTINGS.level,
  stallTimeout: WRITER_SETTINGS.stallTimeout,
};
const PATH_RULES: Rules<PathWriterOptions> = {
  ...ENCODED_RULES,
  existing: WRITER_SETTINGS.existing,
  partial: WRITER_SETTINGS.partial,
  durability: WRITER_SETTINGS.durability,
};
const FD_RULES: Rules<FdWriterOptions> = {
  ...ENCODED_RULES,
  durability: WRITER_SETTINGS.durability,
  linger: WRITER_SETTINGS.linger,
};
const COMMAND_WRITER_RULES: Rules<CommandWriterOptions> = {
  ...ENCODED_RULES,
  ...COMMAND_RULES,
  stdout: either(STDOUT, FD),
};

/** The library's options, but for those that `Writer` has itself. */
const NATIVE_OPTIONS = (Object.keys(WRITER_SETTINGS) as (keyof WriterSettings)[]).filter(
  (name) => !(name in WRITER_RULES),
);

/** The options for the native part. */
function settings(options: WriterSettings): NativeOptions {
  return nativeOptions(options, NATIVE_OPTIONS);
}

/** Writes bytes and strings to a sink through a buffer: the sinks of every platform, and those of Node. */
export class Writer extends PlainWriter {
  /** Writes a file, which appears complete when the writer is closed, or which is appended to or written in place
   * (`existing`, `partial`). It is compressed if its name ends in `.gz`, `.bgz`, `.zst` or `.xz`.
   *
   * The file is opened immediately; the first call that waits reports `open_failed`.
   *
   * @throws `unsupported`, before anything is opened, for a name that implies another compression, such as `.lz4`, and
   * if the native part of this package is not installed.
   */
  static path(path: string | URL, options: PathWriterOptions = {}): Writer {
    checkOptions("Writer.path", options, PATH_RULES);
    const name = pathOf("Writer.path", path);
    const { NativeWriter } = neededBinding("Writer.path");
    const { existing = "replace", partial = "remove" } = options;
    const isNothingAtExit = existing === "replace" && partial === "remove";
    const start = (wake: () => void) => NativeWriter.path(name, settings(options), wake);
    return new Writer(new NativeSink(start, { name, isNothingAtExit }), options);
  }

  /** Writes to a file descriptor, which the caller still owns. */
  static fd(fd: number, options: FdWriterOptions = {}): Writer {
    checkOption("Writer.fd", "fd", fd ?? null, FD);
    checkOptions("Writer.fd", options, FD_RULES);
    const { NativeWriter } = neededBinding("Writer.fd");
    const start = (wake: () => void) => NativeWriter.fd(fd, settings(options), wake);
    return new Writer(new NativeSink(start, { name: `fd ${fd}`, isTerminal: isatty(fd) }), options);
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
    checkOptions("Writer.command", options, COMMAND_WRITER_RULES);
    const { NativeWriter } = neededBinding("Writer.command");
    const { stdout = "inherit" } = options;
    const output = typeof stdout === "number" ? { stdout: "null", stdoutFd: stdout } : { stdout };
    const words = nativeCommand(argv, options, { stdin: "null", ...output });
    const start = (wake: () => void) => NativeWriter.command(words, settings(options), wake);
    return new Writer(new NativeSink(start, { name: showArgv(argv) }), options);
  }
}
