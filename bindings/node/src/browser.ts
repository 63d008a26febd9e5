/** Millstream where there is no Node: everything that needs no operating system. */

export { Batch, type InvalidUtf8, type Trim } from "./batch.js";
export { type CommandEnd, MillstreamError } from "./error.js";
export { ERROR_ADVICE, ERROR_CODES, type ErrorKind } from "./errors.js";
export {
  anyOf,
  bson,
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
export { from, type Input, lines } from "./from.js";
export { type As, type ItemOf, type Position, Reader, type ReaderOptions } from "./reader.js";
