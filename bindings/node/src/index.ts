/** Millstream for Node. */

import "./platform.js";
import "./at-exit.js";
import "./bson/node.js";
import "./source/compressed.js";

export {
  type ReadableOptions,
  type TransformOptions,
  toReadable,
  toTransform,
  toWritable,
  type WritableInputOptions,
} from "./adapters/node.js";
export * from "./browser.js";
export type { DocumentFile, NumberArrayClass } from "./bson/file.js";
export type { CommandOptions } from "./command.js";
export { type Native, native } from "./native.js";
export { type CommandReaderOptions, command, fd, type OpenOptions, open, stdin } from "./open.js";
export type { Stderr, Stdin, Stdout } from "./settings.js";
export {
  type CommandWriterOptions,
  type EncodedWriterOptions,
  type FdWriterOptions,
  type PathWriterOptions,
  Writer,
} from "./write.js";
