/** Writers to files, descriptors, standard output and commands. */

import { argvOf, COMMAND_RULES, type CommandOptions, Running } from "./command.js";
import { misuse } from "./error.js";
import { checkOption, checkOptions, either, type Rule, type Rules, whole } from "./options.js";
import { pathOf } from "./path.js";
import { type Encode, STDOUT, type Stdout, WRITER_SETTINGS, type WriterSettings } from "./settings.js";
import { CommandSink } from "./sink/command.js";
import { EncodedSink, encodingOf } from "./sink/encode.js";
import { FdSink, PathSink } from "./sink/file.js";
import type { ByteSink } from "./sink/sink.js";
import { Writer as PlainWriter, WRITER_RULES, type WriterOptions } from "./writer.js";

/** Options of writers that can compress. */
export interface EncodedWriterOptions extends WriterOptions, Pick<WriterSettings, "encode" | "level"> {}

/** Options of `Writer.command`. */
export interface CommandWriterOptions extends WriterOptions, CommandOptions {
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
};
const COMMAND_WRITER_RULES: Rules<CommandWriterOptions> = {
  ...WRITER_RULES,
  ...COMMAND_RULES,
  stdout: either(STDOUT, FD),
};

/** Writes bytes and strings to a sink through a buffer: the sinks of every platform, and those of Node. */
export class Writer extends PlainWriter {
  /** Writes a file, which appears complete when the writer is closed. It is compressed if its name ends in `.gz` or
   * `.zst`.
   *
   * The file is opened immediately; the first call that waits reports `open_failed`.
   *
   * @throws `unsupported`, before anything is opened, for a name that implies another compression, such as `.bgz` or `.xz`, and
   * for zstd before Node 22.15.
   */
  static path(path: string | URL, options: EncodedWriterOptions = {}): Writer {
    checkOptions("Writer.path", options, ENCODED_RULES);
    const name = pathOf("Writer.path", path);
    const { encode = "auto", level } = options;
    const encoding = encode === "auto" ? encodingOf(name) : encode;
    return new Writer(
      encoded(() => new PathSink(name), encoding, level, name),
      options,
    );
  }

  /** Writes to a file descriptor, which the caller still owns. */
  static fd(fd: number, options: EncodedWriterOptions = {}): Writer {
    checkOption("Writer.fd", "fd", fd ?? null, FD);
    checkOptions("Writer.fd", options, ENCODED_RULES);
    const name = `fd ${fd}`;
    const { encode = "auto", level } = options;
    return new Writer(
      encoded(() => new FdSink(fd, name), encode, level, name),
      options,
    );
  }

  /**
   * Writes to standard output without `process.stdout`: bytes that are buffered in the two are not ordered relative
   * to each other.
   */
  static stdout(options: EncodedWriterOptions = {}): Writer {
    checkOptions("Writer.stdout", options, ENCODED_RULES);
    return Writer.fd(1, { name: "standard output", ...options });
  }

  /**
   * Starts a command without a shell and writes to its standard input. `close` waits for it and fails if the command
   * fails.
   */
  static command(file: string, args: readonly string[] = [], options: CommandWriterOptions = {}): Writer {
    const argv = argvOf("Writer.command", file, args);
    checkOptions("Writer.command", options, COMMAND_WRITER_RULES);
    const { stdout = "inherit" } = options;
    const running = new Running(argv, "pipe", (stdout === "null" ? "ignore" : stdout) as "inherit", options);
    return new Writer(new CommandSink(running), options);
  }
}

function encoded(sink: () => ByteSink, encode: Encode, level: number | undefined, name: string): ByteSink {
  if (encode !== "auto" && encode !== "off") return new EncodedSink(sink, encode, level, name);
  if (level === undefined) return sink();
  throw misuse({ stream: name, found: "a level without an encoding", expected: "encode" }, "invalid_option");
}
