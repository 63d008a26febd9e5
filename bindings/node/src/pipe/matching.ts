/** The records that contain something, as a source: the others never become items. */

import { MillstreamError } from "../error.js";
import { Reader, takeMatching } from "../reader.js";
import { platform } from "../text.js";
import type { Block, BlockSource } from "./block.js";
import { Pipeline } from "./pipe.js";

class MatchingBlocks implements BlockSource {
  constructor(
    readonly reader: Reader<any>,
    readonly what: Uint8Array,
  ) {}

  async next(): Promise<Block | null> {
    const taken = await takeMatching(this.reader, this.what);
    if (taken === null) return null;
    const { items, first, from } = taken;
    return { items, first, shift: 0, origin: { from, shift: 0, parent: null } };
  }

  async close(): Promise<void> {
    await this.reader.close().catch(() => {});
  }
}

/**
 * The records of a reader whose content contains `what` (a string: as UTF-8), in order.
 *
 * Bytes are searched, block by block: only the records that are found become strings or views. Where few are, that is many
 * times as fast as `filter`.
 */
export function matching<T extends string | Uint8Array>(reader: Reader<T>, what: string | Uint8Array): Pipeline<T> {
  if (!(reader instanceof Reader)) {
    throw new MillstreamError("argument_invalid", { found: typeof reader, expected: "a reader" });
  }
  const wanted = typeof what === "string" ? platform.encode(what) : what;
  const nothing = () => Promise.resolve();
  return new Pipeline<T>(new MatchingBlocks(reader, wanted), nothing, nothing);
}
