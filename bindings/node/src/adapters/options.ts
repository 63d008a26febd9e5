/** What all adapters can be told. */

import { MillstreamError } from "../error.js";
import type { PipeOptions } from "../pipe/pipe.js";
import type { As, ItemOf, ReaderOptions } from "../reader.js";

/** Whether a stream is of bytes, or of items as they are. */
export type Content = "bytes" | "objects";

/** Options of an adapter that is written to: how records are found in what comes, and those of its pipeline. */
export interface InputOptions<A extends As = As> extends ReaderOptions<A>, PipeOptions {
  /** What is written to it: bytes, in which records are found, unless told otherwise; or objects, each of them an item. */
  input?: Content;
  /** Ends it when it is triggered, as the streams of its platform end: with an `AbortError` in Node, else with the reason. */
  signal?: AbortSignal;
}

/** Options of an adapter that is read. */
export interface OutputOptions {
  /** What is read from it: records as bytes unless told otherwise, or each item as it is. */
  output?: Content;
  /** What is behind each record in the bytes: a line feed unless told otherwise. */
  delimiter?: string | Uint8Array;
  /** Ends it when it is triggered, as the streams of its platform end: with an `AbortError` in Node, else with the reason. */
  signal?: AbortSignal;
}

/** What the first stage of an adapter with these options gets; `A` where they do not say. */
export type FirstItem<O, A> = O extends { input: "objects" }
  ? any
  : O extends { as: infer T extends As }
    ? ItemOf<T>
    : A;

/** Whether it is objects, and not bytes. */
export function isObjects(content: Content | undefined, name: "input" | "output"): boolean {
  if (content === undefined || content === "bytes") return false;
  if (content === "objects") return true;
  throw new MillstreamError("invalid_option", {
    found: `${name}: ${String(content)}`,
    expected: '"bytes" or "objects"',
  });
}
