/** Writers to what Node has: files, descriptors, standard output, commands. */

import { fileURLToPath } from "node:url";
import { argvOf, type CommandOptions, Running } from "./command.js";
import { CommandSink } from "./sink/command.js";
import { EncodedSink, type Encoding, encodingOf } from "./sink/encode.js";
import { FdSink, PathSink } from "./sink/file.js";
import type { ByteSink } from "./sink/sink.js";
import { Writer as PlainWriter, type WriterOptions } from "./writer.js";

/** Options of writers that can compress. */
export interface EncodedWriterOptions extends WriterOptions {
  /** How it is compressed: for a path as its name says (`.gz`, `.zst`), else not at all, unless told otherwise. */
  encode?: Encoding;
}

/** Options of `Writer.command`. */
export interface CommandWriterOptions extends WriterOptions, CommandOptions {
  /** Its standard output: ours unless told otherwise, nothing, or a file descriptor. */
  stdout?: "inherit" | "ignore" | number;
}

/** Writes bytes and strings to a sink through a buffer: those of every platform, and these of Node. */
export class Writer extends PlainWriter {
  /**
   * Writes a file, which appears whole when the writer is closed; compressed if its name ends in `.gz` or `.zst`.
   *
   * It is opened at once; `open_failed` is reported by the first call that waits.
   */
  static path(path: string | URL, options: EncodedWriterOptions = {}): Writer {
    const name = typeof path === "string" ? path : fileURLToPath(path);
    return new Writer(
      encoded(() => new PathSink(name), options.encode ?? encodingOf(name)),
      options,
    );
  }

  /** Writes to a file descriptor, which stays the caller's. */
  static fd(fd: number, options: EncodedWriterOptions = {}): Writer {
    return new Writer(
      encoded(() => new FdSink(fd, `fd ${fd}`), options.encode ?? "none"),
      options,
    );
  }

  /** Writes to standard output, past `process.stdout`: what waits in either is not in order with the other. */
  static stdout(options: EncodedWriterOptions = {}): Writer {
    return Writer.fd(1, { name: "standard output", ...options });
  }

  /** Starts a command, without a shell, and writes to its standard input. `close` waits for it, and its status counts. */
  static command(file: string, args: readonly string[] = [], options: CommandWriterOptions = {}): Writer {
    const running = new Running(argvOf(file, args), "pipe", (options.stdout ?? "inherit") as "inherit", options);
    return new Writer(new CommandSink(running), options);
  }
}

function encoded(sink: () => ByteSink, encoding: Encoding): ByteSink {
  if (encoding === "none") return sink();
  return new EncodedSink(sink(), encoding);
}
