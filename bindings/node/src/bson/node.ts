/** What Node has of BSON besides: files, and the native part. Imported for its effect. */

import { MillstreamError } from "../error.js";
import { ERROR_CODES, type ErrorKind } from "../errors.js";
import { type NativeColumns, type NativeFailure, type NativeField, native, nativeBinding } from "../native.js";
import { open } from "../open.js";
import { platform } from "../text.js";
import type { Appended, Filler, Taken } from "./columns/filler.js";
import type { DataType, Field } from "./columns/schema.js";
import { DocumentFile } from "./file.js";
import { room } from "./room.js";

room.openDocument = DocumentFile.open;
room.open = (path) => open(path, { as: "bytes" });
room.filler = (fields, options) => {
  const binding = nativeBinding();
  return binding && new NativeFiller(new binding.NativeColumns(fields.map(nativeField), options));
};
room.checker = () => {
  const binding = nativeBinding();
  return binding && ((bytes) => withError(binding.checkDocuments(unshared(bytes))));
};
room.reason = () => native.reason;

function nativeField({ name, keys, type, nullable }: Field): NativeField {
  return { name, keys, nullable, ...nativeType(type) };
}

function nativeType(type: DataType): Pick<NativeField, "kind" | "inside"> {
  if (typeof type === "string") return { kind: type, inside: [] };
  if ("struct" in type) return { kind: "struct", inside: type.struct.map(nativeField) };
  return { kind: "list", inside: [nativeField({ name: "item", keys: ["item"], type: type.list, nullable: true })] };
}

class NativeFiller implements Filler {
  readonly #columns: NativeColumns;

  constructor(columns: NativeColumns) {
    this.#columns = columns;
  }

  get isFull(): boolean {
    return this.#columns.isFull;
  }

  append(bytes: Uint8Array): Appended {
    return withError(this.#columns.append(unshared(bytes)));
  }

  take(): Taken {
    const { parts: lengths, ...taken } = this.#columns.take();
    const parts = lengths.map((length) => (length === 0 ? new Uint8Array(0) : platform.allocate(length)));
    if (!this.#columns.fill(parts.filter((part) => part.length > 0))) {
      throw new MillstreamError("internal", { found: "columns of other sizes than were told" });
    }
    return { ...taken, parts };
  }
}

/** What another thread could change meanwhile is no memory to check and then believe. */
function unshared(bytes: Uint8Array): Uint8Array {
  return bytes.buffer instanceof SharedArrayBuffer ? bytes.slice() : bytes;
}

/** What a call says, with an error in the place of the failure. */
function withError<T extends { readonly failure?: NativeFailure }>({ failure, ...rest }: T) {
  return failure === undefined ? rest : { ...rest, error: errorOf(failure) };
}

function errorOf({ kind, found, expected, offset, path }: NativeFailure): MillstreamError {
  const known = kind in ERROR_CODES ? (kind as ErrorKind) : "internal";
  return new MillstreamError(known, { found, expected, offset, path });
}
