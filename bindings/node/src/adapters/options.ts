/** The options of all adapters. */

import { misuse } from "../error.js";
import { INVALID_OPTION } from "../errors.js";
import { type Rule, type Rules, SIGNAL, type Tables, TEXT_OR_BYTES } from "../options.js";
import type { PipeOptions } from "../pipe/types.js";
import { type As, checkReaderOptions, type ItemOf, type ReaderOptions } from "../reader.js";

/** Whether a stream contains bytes or unchanged items. */
export type Content = "bytes" | "objects";

/** Options of an adapter that is written to: how records are found in its input, and the options of its pipeline. */
export interface InputOptions<A extends As = As> extends ReaderOptions<A>, PipeOptions {
  /** The input: bytes, in which records are found (the default), or objects, each of which is an item. */
  input?: Content | undefined;
  /**
   * Ends it when it is triggered, as the streams of its platform end: with an `AbortError` in Node, otherwise with
   * the reason.
   */
  signal?: AbortSignal | undefined;
}

/** Options of an adapter that is read. */
export interface OutputOptions {
  /** The output: records as bytes (the default), or unchanged items. */
  output?: Content | undefined;
  /** The bytes after each record: a line feed by default. */
  delimiter?: string | Uint8Array | undefined;
  /**
   * Ends it when it is triggered, as the streams of its platform end: with an `AbortError` in Node, otherwise with
   * the reason.
   */
  signal?: AbortSignal | undefined;
}

export const CONTENT: Rule = ["bytes", "objects"];

export const OUTPUT_RULES: Rules<OutputOptions> = { output: CONTENT, delimiter: TEXT_OR_BYTES, signal: SIGNAL };

/** Throws unless these are valid options for an adapter with these rules and can be combined. */
export function checkAdapterOptions<O extends InputOptions & OutputOptions>(
  call: string,
  options: O,
  tables: Tables<O>,
): void {
  checkReaderOptions(call, options, tables);
  const { input, output, delimiter } = options;
  const framed = (["as", "framer", "keepDelimiter", "recordLimit", "invalidUtf8"] as const).find(
    (name) => options[name] !== undefined,
  );
  if (input === "objects" && framed !== undefined) refuse(call, `input: "objects" together with ${framed}`);
  if (output === "objects" && delimiter !== undefined) refuse(call, 'output: "objects" together with delimiter');
}

function refuse(call: string, found: string): never {
  throw misuse({ stream: call, found, expected: "one of them: there are no bytes" }, INVALID_OPTION);
}

/** The input type of the first stage of an adapter with these options; `A` if they do not define it. */
export type FirstItem<O, A> = O extends { input: "objects" }
  ? any
  : O extends { as: infer T extends As }
    ? ItemOf<T>
    : A;

/** Whether a stream contains objects and not bytes. */
export function isObjects(content: Content | undefined): boolean {
  return content === "objects";
}
