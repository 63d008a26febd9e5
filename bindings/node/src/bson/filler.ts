/** Fills columns with the core as WebAssembly, or with the native part if it is installed. */

import { type Core, errorOf } from "../core.js";
import { platform } from "../text.js";
import { type Passed, passDocuments } from "./pass.js";

/** The core's reply to `take`: `parts` are the lengths of the memory that `assemble` needs. */
export interface TakeReply {
  readonly rows: number;
  readonly mismatched: number;
  readonly unknown: number;
  /** The names of the columns for which no document has had a member since the start. */
  readonly absent: readonly string[];
  readonly parts: readonly number[];
}

/** Rows that have been taken, with their memory. */
export type Taken = Omit<TakeReply, "parts"> & { readonly parts: readonly Uint8Array[] };

/** Columns that grow by a row for each document. */
export interface Filler {
  /** Appends the documents in these bytes, until a batch is full. */
  append(bytes: Uint8Array): Passed;
  /** Takes the rows; afterwards there are none. */
  take(): Taken;
}

/** Fills columns in WebAssembly, in an instance that no other code uses at the same time. */
export class CoreFiller implements Filler {
  readonly #core: Core;

  constructor(plan: string, core: Core) {
    this.#core = core;
    if (!core.call.columns(core.put(platform.encode(plan)))) throw errorOf(core.reply());
  }

  append(bytes: Uint8Array): Passed {
    const core = this.#core;
    return passDocuments(bytes, (piece, isLast) => {
      core.call.append(core.put(piece), isLast);
      return core.reply();
    });
  }

  take(): Taken {
    const core = this.#core;
    const places = core.call.take();
    const { parts: lengths, ...taken }: TakeReply = core.reply();
    const starts = core.words(places, lengths.length);
    return {
      ...taken,
      parts: lengths.map((length, index) => core.memory.slice(starts[index], starts[index] + length)),
    };
  }
}
