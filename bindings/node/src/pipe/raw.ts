/** A reader's bytes, unchanged. */

import { type Block, sourceBlock } from "./block.js";
import { OfReader } from "./source.js";

/** Delivers complete records as they are in the stream, delimiters and prefixes included. */
export class RawBlocks extends OfReader {
  #failure: { error: unknown } | undefined;

  protected async take(): Promise<Block | null> {
    if (this.#failure !== undefined) throw this.#failure.error;
    try {
      const batch = await this.reader.nextBatch();
      if (batch === null) return null;
      const { bytes, offsets, length, firstRecord } = batch;
      return sourceBlock([bytes.subarray(offsets[0], offsets[length])], firstRecord);
    } catch (error) {
      const { unfinished, position } = this.reader;
      if (unfinished === undefined) throw error;
      // These bytes are not a record, but they are delivered too.
      this.#failure = { error };
      return sourceBlock([unfinished], position.records);
    }
  }
}
