/** A source of the records that contain a text; other records never become items. */

import { misuse } from "../error.js";
import { checkOption, TEXT_OR_BYTES } from "../options.js";
import { Reader, takeMatching } from "../reader.js";
import { platform } from "../text.js";
import type { Block } from "./block.js";
import { Pipeline } from "./pipe.js";
import { OfReader } from "./source.js";

class MatchingBlocks extends OfReader {
  constructor(
    reader: Reader<any>,
    readonly what: Uint8Array,
  ) {
    super(reader);
  }

  protected async take(): Promise<Block | null> {
    const taken = await takeMatching(this.reader, this.what);
    if (taken === null) return null;
    const { items, first, from, isText } = taken;
    return { items, of: this.of(isText), first, shift: 0, origin: { from, shift: 0, parent: null } };
  }
}

/** Returns the records of a reader whose content contains `what`, in order; a string is encoded as UTF-8.
 *
 * Bytes are searched block by block, and only matching records become strings or views. If matches are rare, this is
 * many times as fast as `filter`.
 */
export function matching<T extends string | Uint8Array>(reader: Reader<T>, what: string | Uint8Array): Pipeline<T> {
  if (!(reader instanceof Reader)) {
    throw misuse({ found: typeof reader, expected: "a reader" });
  }
  checkOption("matching", "what", what ?? null, TEXT_OR_BYTES);
  const wanted = typeof what === "string" ? platform.encode(what) : what;
  return new Pipeline<T>(new MatchingBlocks(reader, wanted));
}
