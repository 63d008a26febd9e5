/** A source of the records that contain a text; other records never become items. */

import { type MillstreamError, misuse } from "../error.js";
import { checkOption, TEXT_OR_BYTES } from "../options.js";
import { Reader, type Select } from "../reader.js";
import { platform } from "../text.js";
import type { Block } from "./block.js";
import { Pipeline } from "./pipe.js";
import { OfReader } from "./source.js";

class MatchingBlocks extends OfReader {
  readonly #select: Select;

  constructor(reader: Reader<any>, what: Uint8Array) {
    super(reader);
    this.#select = (batch, as, invalidUtf8) => {
      const records = Array.from(batch.matching(what));
      if (as === "bytes") return { items: records.map((index) => batch.record(index)), records, error: undefined };
      const items: string[] = [];
      try {
        for (const index of records) items.push(batch.text(index, invalidUtf8));
      } catch (error) {
        return { items, records, error: error as MillstreamError };
      }
      return { items, records, error: undefined };
    };
  }

  protected async take(): Promise<Block | null> {
    const taken = await Reader.takeItems(this.reader, this.#select);
    if (taken === null) return null;
    const { items, first, records } = taken;
    const from = Uint32Array.from(records!);
    return { items, of: this.of(taken), first, shift: 0, origin: { from, shift: 0, parent: null } };
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
