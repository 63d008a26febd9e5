/** The records that contain a text, as a source: the others never become items. */

import { misuse } from "../error.js";
import { checkOption, textOrBytes } from "../options.js";
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
    const { items, first, from } = taken;
    return { items, first, shift: 0, origin: { from, shift: 0, parent: null } };
  }
}

/**
 * The records of a reader whose content contains `what` (a string: as UTF-8), in order.
 *
 * Bytes are searched, block by block: only matching records become strings or views. If matches are rare, that is many
 * times as fast as `filter`.
 */
export function matching<T extends string | Uint8Array>(reader: Reader<T>, what: string | Uint8Array): Pipeline<T> {
  if (!(reader instanceof Reader)) {
    throw misuse({ found: typeof reader, expected: "a reader" });
  }
  checkOption("matching", "what", what ?? null, textOrBytes);
  const wanted = typeof what === "string" ? platform.encode(what) : what;
  const blocks = new MatchingBlocks(reader, wanted);
  return new Pipeline<T>(
    blocks,
    () => Promise.resolve(),
    () => blocks.close(),
  );
}
