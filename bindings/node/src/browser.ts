/// <reference lib="esnext.disposable" preserve="true" />

/** Millstream without Node: everything that needs no operating system. */

export type { Content, InputOptions, OutputOptions } from "./adapters/options.js";
export type { AtEnd, Between, Ended } from "./adapters/types.js";
export {
  toWebReadable,
  toWebTransform,
  toWebWritable,
  type WebPair,
  type WebReadableOptions,
  type WebTransformOptions,
  type WebWritableOptions,
} from "./adapters/web.js";
export { Batch, type InvalidUtf8 } from "./batch.js";
export type { CheckOptions } from "./bson/check.js";
export {
  BoolColumn,
  type Column,
  type ColumnKind,
  type ColumnOf,
  Columns,
  FixedColumn,
  ListColumn,
  NullColumn,
  type NumberArrays,
  NumberColumn,
  PieceColumn,
  StructColumn,
} from "./bson/columns/column.js";
export type { ColumnBatchesOptions, ColumnsOptions } from "./bson/columns/columns.js";
export type { ColumnType, DataType, Field, ScalarName, Schema } from "./bson/columns/schema.js";
export { Decimal128 } from "./bson/decimal.js";
export type { DecodeOptions, Document } from "./bson/decode.js";
export * from "./bson/values.js";
export { type Bson, bson } from "./bson.js";
export { column } from "./column.js";
export { type CsvOptions, csv, type RaggedOptions } from "./csv.js";
export { type CommandEnd, MillstreamError } from "./error.js";
export { ERROR_ADVICE, ERROR_CODES, type ErrorCode, type ErrorKind } from "./errors.js";
export {
  anyOf,
  type DelimiterOptions,
  delimiter,
  Ends,
  type Framer,
  fixed,
  type LengthPrefixedOptions,
  lengthPrefixed,
  lineFramer,
  type Step,
} from "./frame.js";
export { type FromOptions, from, type Input, lines } from "./from.js";
export { type JsonLinesOptions, type JsonOptions, jsonLines } from "./json.js";
export { stampingAllowed } from "./pipe/loop.js";
export { matching } from "./pipe/matching.js";
export { type Ending, type Pipe, Pipeline, pipe } from "./pipe/pipe.js";
export { collect, count, fold, forEach, type Sink, type StreamSink, type StreamSummary } from "./pipe/sink.js";
export type { PipeSource } from "./pipe/source.js";
export {
  type AsyncMapOptions,
  asyncMap,
  batch,
  filter,
  flatMap,
  inspect,
  map,
  merge,
  type Stage,
  scanState,
  skip,
  take,
  tee,
} from "./pipe/stage.js";
export type { Awaitable, OnError, Part, PipeOptions, StageStatistics, Summary } from "./pipe/types.js";
export { type As, type BatchOptions, type ItemOf, type Position, Reader, type ReaderOptions } from "./reader.js";
export type {
  CsvRagged,
  Decode,
  Durability,
  Encode,
  Endian,
  Existing,
  FlushPolicy,
  Follow,
  Latency,
  OnAbsent,
  OnMismatch,
  OnMixed,
  OnUnknown,
  Partial,
  Pin,
  PrefixCounts,
  ReaderSettings,
  WriterSettings,
} from "./settings.js";
export type { NodeWritable } from "./sink/stream.js";
export type { Trim } from "./trim.js";
export { type StreamWriterOptions, Writer, type WriterEnd, type WriterOptions } from "./writer.js";
