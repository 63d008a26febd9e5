/** BSON with the Node-only parts: files, and the native part. */

import { type Bson, bson as plain } from "../bson.js";
import { MillstreamError } from "../error.js";
import { INTERNAL } from "../errors.js";
import { type NativeColumns, native, nativeBinding } from "../native.js";
import { open } from "../open.js";
import { platform } from "../text.js";
import { DocumentFile } from "./file.js";
import type { Filler, Taken, TakeReply } from "./filler.js";
import { nodeOnly } from "./node-only.js";
import { type Passed, passDocuments } from "./pass.js";

export const bson: Bson = onNode();

// @__NO_SIDE_EFFECTS__
function onNode(): Bson {
  nodeOnly.openDocument = DocumentFile.open;
  nodeOnly.open = (path) => open(path, { as: "bytes" });
  nodeOnly.filler = (plan) => {
    const binding = nativeBinding();
    return binding && new NativeFiller(new binding.NativeColumns(plan));
  };
  nodeOnly.checker = () => {
    const binding = nativeBinding();
    return binding && ((bytes) => passAll(bytes, (all) => binding.checkDocuments(all)));
  };
  nodeOnly.reason = () => native.reason;
  return plain;
}

class NativeFiller implements Filler {
  readonly #columns: NativeColumns;

  constructor(columns: NativeColumns) {
    this.#columns = columns;
  }

  append(bytes: Uint8Array): Passed {
    return passAll(bytes, (all) => this.#columns.append(all));
  }

  take(): Taken {
    const { parts: lengths, ...taken }: TakeReply = JSON.parse(this.#columns.take());
    const parts = lengths.map((length) => (length === 0 ? new Uint8Array(0) : platform.allocate(length)));
    if (!this.#columns.fill(parts.filter((part) => part.length > 0))) {
      throw new MillstreamError(INTERNAL, { found: "columns of unexpected sizes" });
    }
    return { ...taken, parts };
  }
}

/**
 * Passes all bytes at once, because they are not copied. Memory that another thread could change must not be used
 * without a copy.
 */
function passAll(bytes: Uint8Array, call: (bytes: Uint8Array) => string): Passed {
  const all = bytes.buffer instanceof SharedArrayBuffer ? bytes.slice() : bytes;
  return passDocuments(all, (piece) => JSON.parse(call(piece)), all.length);
}
