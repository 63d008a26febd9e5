/** Checks that documents are valid in every byte: types, lengths, terminators, text, depth. */

import { Batch } from "../batch.js";
import { core } from "../core.js";
import { MillstreamError, misuse } from "../error.js";
import { UNSUPPORTED } from "../errors.js";
import { checkOptions, FLAG, type Rules } from "../options.js";
import { nodeOnly } from "./node-only.js";
import { type Passed, passDocuments } from "./pass.js";

/** Options of `bson.check`. */
export interface CheckOptions {
  /** Whether to use the native part; by default it is used if it is installed. */
  native?: boolean | undefined;
}

const CHECK_RULES: Rules<CheckOptions> = { native: FLAG };

/** Checks every byte of consecutive documents in memory or in a batch of a stream. No objects are created.
 *
 * @returns the number of documents @throws The first error, with offset, record and path.
 */
export function check(input: Uint8Array | Batch, options: CheckOptions = {}): number {
  checkOptions("bson.check", options, [CHECK_RULES]);
  const isBatch = input instanceof Batch;
  if (!isBatch && !(input instanceof Uint8Array)) {
    const found = input === null ? "null" : typeof input;
    throw misuse({ found, expected: "bytes or a batch" });
  }
  const bytes = isBatch ? input.bytes.subarray(input.offsets[0], input.offsets[input.length]) : input;
  const { documents, error } = checkerOf(options)(bytes);
  if (error === undefined) return documents;
  if (!(error instanceof MillstreamError)) throw error;
  const { found, expected, path, offset = 0 } = error;
  const [before, first] = isBatch ? [input.offset + input.offsets[0], input.firstRecord] : [0, 0];
  throw new MillstreamError(error, { found, expected, path, offset: before + offset, record: first + documents });
}

function checkerOf({ native }: CheckOptions): (bytes: Uint8Array) => Passed {
  const checker = native === false ? undefined : nodeOnly.checker?.();
  if (checker === undefined && native === true) {
    const found = nodeOnly.reason?.() ?? "a platform without one";
    throw new MillstreamError(UNSUPPORTED, { found, expected: "the native part of this package" });
  }
  return checker ?? checkHere;
}

function checkHere(bytes: Uint8Array): Passed {
  const checker = core();
  return passDocuments(bytes, (piece, isLast) => {
    checker.call.check(checker.put(piece), isLast);
    return checker.reply();
  });
}
