/** A schema out of documents, by the core's rules (`Inference`). */

import { MillstreamError } from "../../error.js";
import { platform } from "../../text.js";
import { Cursor, TYPES } from "../cursor.js";
import { joinPath, locate } from "../path.js";
import type { DataType, Field, ScalarName } from "./schema.js";

/** How many columns are found at most, inner ones included: each takes room in every row. */
const MOST_COLUMNS = 10_000;

/** What is nested deeper is one value, as text. */
const MOST_DEPTH = 32;

/** What goes together, and as what. */
const TOGETHER: readonly [readonly number[], ScalarName][] = [
  [[], "null"],
  [[0x08], "bool"],
  [[0x10], "int"],
  [[0x10, 0x12], "long"],
  [[0x10, 0x12, 0x01], "double"],
  [[0x02, 0x0e, 0x0d], "string"],
  [[0x05], "binData"],
  [[0x07], "objectId"],
  [[0x09], "date"],
  [[0x11], "timestamp"],
  [[0x13], "decimal"],
];

/** The values that one member had. */
interface Shape {
  readonly types: Set<number>;
  /** Whether there was an integer that a double does not hold. */
  isInexact: boolean;
  isTooDeep: boolean;
  readonly members: Map<string, Shape>;
  items?: Shape;
}

const newShape = (): Shape => ({ types: new Set(), isInexact: false, isTooDeep: false, members: new Map() });

/** Looks at documents, and says which columns they have, in the order in which their keys came. */
export class Inference {
  readonly #root = new Map<string, Shape>();
  #columns = 0;

  /** Looks at the document at `start`, and returns where it ends. */
  observe(bytes: Uint8Array, start: number): number {
    const cursor = new Cursor(bytes);
    cursor.at = start;
    const end = cursor.documentEnd();
    cursor.end = end;
    try {
      this.#members(this.#root, cursor, 0);
    } catch (error) {
      throw locate(error, bytes, start, end);
    }
    return end;
  }

  /** @throws `shape_mismatch` where types do not go together, and that is an error. */
  schema(mixed: "json" | "error"): Field[] {
    return fields(this.#root, mixed, []);
  }

  #members(members: Map<string, Shape>, cursor: Cursor, depth: number): void {
    const outer = cursor.enter();
    for (let type = cursor.next(); type !== 0; type = cursor.next()) {
      cursor.checkText(cursor.key, cursor.keyEnd);
      const key = platform.decode(cursor.bytes, cursor.key, cursor.keyEnd);
      let shape = members.get(key);
      if (shape === undefined) {
        if (++this.#columns > MOST_COLUMNS) {
          const found = `more than ${MOST_COLUMNS} different members`;
          cursor.fail("memory_limit", cursor.at, found, "fewer, or a schema that names those to read");
        }
        shape = newShape();
        members.set(key, shape);
      }
      this.#value(shape, type, cursor, depth);
    }
    cursor.leave(outer);
  }

  #value(shape: Shape, type: number, cursor: Cursor, depth: number): void {
    shape.types.add(type);
    if ((type === 0x03 || type === 0x04) && depth === MOST_DEPTH) {
      shape.isTooDeep = true;
      cursor.skip(type);
    } else if (type === 0x03) {
      this.#members(shape.members, cursor, depth + 1);
    } else if (type === 0x04) {
      shape.items ??= newShape();
      const outer = cursor.enter();
      for (let inner = cursor.next(); inner !== 0; inner = cursor.next()) {
        this.#value(shape.items, inner, cursor, depth + 1);
      }
      cursor.leave(outer);
    } else if (type === 0x12) {
      const value = cursor.view.getBigInt64(cursor.take(8), true);
      shape.isInexact ||= BigInt(Number(value)) !== value;
    } else {
      cursor.skip(type);
    }
  }
}

function fields(members: Map<string, Shape>, mixed: "json" | "error", path: readonly string[]): Field[] {
  return Array.from(members, ([key, shape]) => ({
    name: key,
    keys: [key],
    type: typeOf(shape, mixed, [...path, key]),
    nullable: true,
  }));
}

function typeOf(shape: Shape, mixed: "json" | "error", path: readonly string[]): DataType {
  const { types, isInexact, isTooDeep, members, items } = shape;
  // Null and undefined are none in a column of any type.
  const are = (all: readonly number[]) =>
    [...types].every((type) => type === 0x0a || type === 0x06 || all.includes(type));
  const scalar = TOGETHER.find(([all, name]) => are(all) && !(name === "double" && isInexact));
  if (scalar !== undefined) return scalar[1];
  if (are([0x03]) && !isTooDeep && members.size > 0) return { struct: fields(members, mixed, path) };
  if (are([0x04]) && !isTooDeep) return items === undefined ? "json" : { list: typeOf(items, mixed, path) };
  if (mixed === "json") return "json";
  const names = Object.keys(TYPES).filter((type) => types.has(Number(type)));
  const found = `values of type ${names.map((type) => TYPES[Number(type)]).join(", ")}${isTooDeep ? ", nested too deep" : ""}`;
  const expected = "types that go together in a column, or a schema that says which";
  throw new MillstreamError("shape_mismatch", { found, expected, path: joinPath(path) });
}
