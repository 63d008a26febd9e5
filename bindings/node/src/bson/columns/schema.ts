/** The columns and their types. */

import { MillstreamError, misuse } from "../../error.js";
import { INVALID_OPTION, TEXT_INVALID } from "../../errors.js";
import { joinPath, splitPath } from "../path.js";

/** The type of a column's values, with MongoDB's names; `json` is any value as the text of relaxed Extended JSON. */
export type ScalarName =
  | "null"
  | "bool"
  | "int"
  | "long"
  | "double"
  | "string"
  | "binData"
  | "objectId"
  | "date"
  | "timestamp"
  | "decimal"
  | "json";

/** A type: its name, an array of a type, or documents with these members. */
export type DataType = ScalarName | { readonly list: DataType } | { readonly struct: readonly Field[] };

/** A column: its name, the location of its values, and their type. */
export interface Field {
  readonly name: string;
  /** The keys of its values, the outermost first; a member of a `struct` has one key. */
  readonly keys: readonly string[];
  readonly type: DataType;
  /** Whether its values may be missing; otherwise a missing value is an error of kind `key_missing`. */
  readonly nullable: boolean;
}

/**
 * A type as users write it: a name, with `!` for a required value; `["string"]` are arrays; `{ key: type }` are
 * documents with these members.
 */
export type ColumnType =
  | ScalarName
  | `${ScalarName}!`
  | readonly [ColumnType]
  | { readonly [key: string]: ColumnType | undefined };

/**
 * Columns: a type for each path, such as `{ _id: "objectId", "customer.city": "string", tags: ["string"] }`; or the
 * fields.
 */
export type Schema = { readonly [path: string]: ColumnType | undefined } | readonly Field[];

const SCALARS = new Set<string>([
  "null",
  "bool",
  "int",
  "long",
  "double",
  "string",
  "binData",
  "objectId",
  "date",
  "timestamp",
  "decimal",
  "json",
]);

/** The maximum nesting depth of types. */
const MOST_DEPTH = 64;

/** Checks a schema and returns its fields.
 *
 * @throws `invalid_option` for an unknown type, if two columns have the same name, if one is inside another, or if
 * types are nested deeper than 64; `text_invalid` for a path that is empty or cannot be split.
 */
export function fieldsOf(schema: Schema): readonly Field[] {
  const fields = Array.isArray(schema) ? (schema as Field[]) : pathFields(schema as { [path: string]: ColumnType });
  check(fields, 0);
  return fields;
}

function refuse(found: string, expected: string): MillstreamError {
  return misuse({ found, expected }, INVALID_OPTION);
}

function pathFields(schema: { readonly [path: string]: ColumnType | undefined }): Field[] {
  if (typeof schema !== "object" || schema === null) throw refuse(`the schema ${String(schema)}`, "an object");
  return Object.entries(schema).map(([path, type]) => {
    const keys = splitPath(path);
    if (keys.length === 0) throw new MillstreamError(TEXT_INVALID, { found: "an empty path", expected: "a key" });
    return fieldOf(path, keys, type, keys.length);
  });
}

function fieldOf(name: string, keys: readonly string[], type: ColumnType | undefined, depth: number): Field {
  if (typeof type === "string" && type.endsWith("!")) {
    return { name, keys, type: typeOf(name, type.slice(0, -1) as ScalarName, depth), nullable: false };
  }
  return { name, keys, type: typeOf(name, type, depth), nullable: true };
}

function typeOf(name: string, type: ColumnType | undefined, depth: number): DataType {
  // `check` checks the depth again, but without this an object that contains itself would cause an endless loop.
  if (depth > MOST_DEPTH) throw refuse(`the column ${name} at depth ${depth}`, "at most 64");
  if (typeof type === "string" && SCALARS.has(type)) return type as ScalarName;
  if (Array.isArray(type) && type.length === 1) return { list: typeOf(name, type[0], depth + 1) };
  if (typeof type !== "object" || type === null || Array.isArray(type)) {
    throw refuse(
      `the type ${JSON.stringify(type)} of the column ${name}`,
      "the name of a type, [type] or { key: type }",
    );
  }
  const members = Object.entries(type as { [key: string]: ColumnType });
  return { struct: members.map(([key, inner]) => fieldOf(key, [key], inner, depth + 1)) };
}

function check(fields: readonly Field[], depth: number): void {
  const names = new Set<string>();
  const paths = new Set<string>();
  for (const { name, keys } of fields) {
    const path = joinPath(keys);
    if (names.has(name) || paths.has(path)) throw refuse(`two columns "${name}"`, "one for each name and each path");
    names.add(name);
    paths.add(path);
  }
  for (const { name, keys, type } of fields) {
    if (keys.length === 0) throw refuse(`the column ${name} without a key`, "at least one");
    for (let length = 1; length < keys.length; length++) {
      const outer = joinPath(keys.slice(0, length));
      if (paths.has(outer)) throw refuse(`the column ${name} inside ${outer}`, "one of both");
    }
    if (depth > 0 && keys.length !== 1) throw refuse(`the member ${name}`, "a member with one key");
    let inside = type;
    let deep = depth + keys.length;
    while (typeof inside === "object" && "list" in inside) {
      inside = inside.list;
      deep++;
    }
    if (deep > MOST_DEPTH) throw refuse(`the column ${name} at depth ${deep}`, "at most 64");
    if (typeof inside === "object") check(inside.struct, deep);
    else if (!SCALARS.has(inside)) throw refuse(`the type ${inside} of the column ${name}`, "the name of a type");
  }
}
