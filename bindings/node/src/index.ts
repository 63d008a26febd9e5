/** Millstream for Node. */

import { usePlatform } from "./platform.js";
import { useCompressed } from "./source/compressed.js";

usePlatform();
useCompressed();

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
export { bson } from "./bson/node.js";
export {
  columns,
  RecordColumns,
  type RecordColumnsOptions,
  type RecordColumnType,
  type RecordField,
  type RecordFormat,
  type RecordSchema,
  type RecordType,
  type Reject,
} from "./columns.js";
export type { CommandOptions } from "./command.js";
export type { Framing } from "./framing.js";
export { type Native, native } from "./native.js";
export { type CommandReaderOptions, command, fd, type OpenOptions, open, pipeline, shell, stdin } from "./open.js";
export { type ParallelOptions, parallel } from "./pipe/parallel.js";
export { type RemoteOptions, remote } from "./remote.js";
export type { Duplicates, OnBad, Stderr, Stdin, Stdout } from "./settings.js";
export {
  openSplit,
  type PlanOptions,
  planSplits,
  type Split,
  type SplitOptions,
  type Splits,
  shardSplits,
} from "./splits.js";
export { type ThroughOptions, through, throughShell } from "./through.js";
export type { Remote } from "./url.js";
export {
  type CommandWriterOptions,
  type EncodedWriterOptions,
  type FdWriterOptions,
  type PathWriterOptions,
  Writer,
} from "./write.js";
