/** Columns as plain typed arrays, in the layout of Apache Arrow (<https://arrow.apache.org/docs/format/Columnar.html>).
 *
 * A missing value is stored as zeros, or takes no space if values have no fixed size. Objects are created on request,
 * one by one.
 */

import { Batch } from "../../batch.js";
import { IS_BIG_ENDIAN } from "../../endian.js";
import { misuse } from "../../error.js";
import { platform } from "../../text.js";
import { TRIM_NOTHING } from "../../trim.js";
import { Decimal128 } from "../decimal.js";
import { DateTime, ObjectId, Timestamp } from "../values.js";
import type { DataType, Field } from "./schema.js";

/** The index of the high word of a 64-bit integer on this machine. */
const HIGH = IS_BIG_ENDIAN ? 0 : 1;

/**
 * The memory of columns of numbers. Dates are milliseconds since 1970; timestamps are the seconds times 2³² plus the
 * increment.
 */
export interface NumberArrays {
  int: Int32Array;
  long: BigInt64Array;
  double: Float64Array;
  date: BigInt64Array;
  timestamp: BigUint64Array;
}

/** The range of `Date`, in milliseconds since 1970. */
const LAST_DATE = 8_640_000_000_000_000n;

/** The number of column names that an error lists. */
const SHOWN = 20;

/** The type of a column, including `list` and `struct`. */
export type ColumnKind = Column["kind"];

/** The type of a column of a kind. */
export type ColumnOf<K extends ColumnKind> = Extract<Column, { readonly kind: K }>;

/** A column: its values, and which of them are missing. */
export type Column =
  | NullColumn
  | BoolColumn
  | NumberColumn<"int">
  | NumberColumn<"long">
  | NumberColumn<"double">
  | NumberColumn<"date">
  | NumberColumn<"timestamp">
  | FixedColumn<"objectId">
  | FixedColumn<"decimal">
  | PieceColumn<"string">
  | PieceColumn<"json">
  | PieceColumn<"binData">
  | ListColumn
  | StructColumn;

/** The common part of all columns. */
abstract class Values<T> implements Iterable<T | null> {
  constructor(
    /** The name in the schema. */
    readonly name: string,
    /** The number of rows. */
    readonly length: number,
    /**
     * A bit for each row, the lowest bit of a byte first, that is set if there is a value. `undefined` if every row
     * has a value.
     */
    readonly validity: Uint8Array | undefined,
  ) {}

  /** Returns whether there is a value in this row. */
  isValid(row: number): boolean {
    if (!(row >= 0 && row < this.length)) throw new RangeError(`row ${row} of ${this.length}`);
    return this.validity === undefined || isSet(this.validity, row);
  }

  /** Returns the value in this row, as from `bson.decode`, or `null` if there is none. */
  get(row: number): T | null {
    return this.isValid(row) ? this.value(row) : null;
  }

  /** Returns all values, as `get` returns them. */
  toArray(): (T | null)[] {
    return Array.from({ length: this.length }, (_, row) => this.get(row));
  }

  *[Symbol.iterator](): IterableIterator<T | null> {
    for (let row = 0; row < this.length; row++) yield this.get(row);
  }

  protected abstract value(row: number): T;
}

/** A column without values. */
export class NullColumn extends Values<null> {
  readonly kind = "null";

  protected value(): null {
    return null;
  }
}

/** Booleans. */
export class BoolColumn extends Values<boolean> {
  readonly kind = "bool";

  constructor(
    name: string,
    length: number,
    validity: Uint8Array | undefined,
    /** A bit for each row, the lowest bit of a byte first. */
    readonly values: Uint8Array,
  ) {
    super(name, length, validity);
  }

  protected value(row: number): boolean {
    return isSet(this.values, row);
  }
}

interface NumberValues {
  int: number;
  long: number | bigint;
  double: number;
  date: unknown;
  timestamp: Timestamp;
}

/** Numbers, dates and timestamps. */
export class NumberColumn<K extends keyof NumberArrays> extends Values<NumberValues[K]> {
  constructor(
    readonly kind: K,
    name: string,
    length: number,
    validity: Uint8Array | undefined,
    readonly values: NumberArrays[K],
  ) {
    super(name, length, validity);
  }

  /** Returns all values as numbers, with zeros for missing ones, so that sums over 64-bit integers need no `bigint` for
   * each. Values that a number cannot represent exactly are rounded.
   */
  toNumbers(): Float64Array {
    const { values, length } = this;
    if (values instanceof Float64Array || values instanceof Int32Array) return Float64Array.from(values);
    // Two words are much faster than a bigint.
    const words = new Uint32Array(values.buffer, values.byteOffset, 2 * length);
    const isSigned = values instanceof BigInt64Array;
    const numbers = new Float64Array(length);
    for (let row = 0; row < length; row++) {
      const high = words[2 * row + HIGH];
      numbers[row] = (isSigned ? high | 0 : high) * 2 ** 32 + words[2 * row + 1 - HIGH];
    }
    return numbers;
  }

  protected value(row: number): NumberValues[K] {
    const value = this.values[row];
    return (typeof value === "bigint" ? this.#of(value) : value) as NumberValues[K];
  }

  #of(value: bigint): unknown {
    if (this.kind === "date") return dateOf(value);
    if (this.kind === "timestamp") return new Timestamp(Number(value >> 32n), Number(value & 0xffffffffn));
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }
}

/** Object ids of 12 bytes, and decimal numbers of 16 bytes (the lowest first). */
export class FixedColumn<K extends "objectId" | "decimal"> extends Values<ObjectId | Decimal128> {
  constructor(
    readonly kind: K,
    name: string,
    length: number,
    validity: Uint8Array | undefined,
    /** The values, one after another. */
    readonly bytes: Uint8Array,
  ) {
    super(name, length, validity);
  }

  protected value(row: number): ObjectId | Decimal128 {
    const cut = (width: number) => this.bytes.slice(row * width, (row + 1) * width);
    return this.kind === "objectId" ? new ObjectId(cut(12)) : new Decimal128(cut(16));
  }
}

interface PieceValues {
  string: string;
  json: string;
  binData: Uint8Array;
}

/** Text (including Extended JSON) or bytes of any length: value `i` is `bytes[offsets[i] .. offsets[i + 1]]`. */
export class PieceColumn<K extends keyof PieceValues> extends Values<PieceValues[K]> {
  constructor(
    readonly kind: K,
    name: string,
    length: number,
    validity: Uint8Array | undefined,
    readonly offsets: Uint32Array,
    /** The bytes of all values; UTF-8 if they are text. */
    readonly bytes: Uint8Array,
  ) {
    super(name, length, validity);
  }

  /** Returns all values as strings, empty ones for missing values. This is much faster than one by one. */
  texts(): string[] {
    return new Batch(this.bytes, this.offsets, TRIM_NOTHING, true).texts();
  }

  protected value(row: number): PieceValues[K] {
    const [start, end] = [this.offsets[row], this.offsets[row + 1]];
    const value = this.kind === "binData" ? this.bytes.slice(start, end) : platform.decode(this.bytes, start, end);
    return value as PieceValues[K];
  }
}

/** Arrays: array `i` is the rows `offsets[i] .. offsets[i + 1]` of `items`. */
export class ListColumn extends Values<unknown[]> {
  readonly kind = "list";

  constructor(
    name: string,
    length: number,
    validity: Uint8Array | undefined,
    readonly offsets: Uint32Array,
    readonly items: Column,
  ) {
    super(name, length, validity);
  }

  protected value(row: number): unknown[] {
    const [start, end] = [this.offsets[row], this.offsets[row + 1]];
    return Array.from({ length: end - start }, (_, index) => this.items.get(start + index));
  }
}

/** Documents: a column for each member, with the same number of rows as this column. */
export class StructColumn extends Values<{ [key: string]: unknown }> {
  readonly kind = "struct";

  constructor(
    name: string,
    length: number,
    validity: Uint8Array | undefined,
    readonly members: readonly Column[],
  ) {
    super(name, length, validity);
  }

  protected value(row: number): { [key: string]: unknown } {
    return Object.fromEntries(this.members.map((member) => [member.name, member.get(row)]));
  }
}

/** Documents as columns, with one row for each document. */
export class Columns implements Iterable<Column> {
  constructor(
    /** The fields of the columns. They can be used as the `schema` for other documents. */
    readonly schema: readonly Field[],
    /** The columns, in the order of the schema. */
    readonly columns: readonly Column[],
    /** The number of rows. */
    readonly length: number,
    /** The record number of the first row; the stream's first is 0. */
    readonly firstRecord: number,
    /** With `mismatch: "null"`, the number of values that did not fit and are null, since the start of the stream. */
    readonly mismatched: number,
    /** The number of members without a column, since the start of the stream. */
    readonly unknown: number,
  ) {}

  /** Returns the column with this name and, if given, of this kind.
   *
   * @throws `argument_invalid` if there is no such column, or it has another kind.
   */
  column(name: string): Column;
  column<K extends ColumnKind>(name: string, kind: K): ColumnOf<K>;
  column(name: string, kind?: ColumnKind): Column {
    const column = this.columns.find((one) => one.name === name);
    if (column === undefined || (kind !== undefined && column.kind !== kind)) {
      const found = column === undefined ? `no column "${name}"` : `the column "${name}" of kind ${column.kind}`;
      const some = this.columns.slice(0, SHOWN).map((one) => one.name);
      if (this.columns.length > SHOWN) some.push("…");
      throw misuse({ found, expected: column === undefined ? some.join(", ") : kind });
    }
    return column;
  }

  [Symbol.iterator](): IterableIterator<Column> {
    return this.columns.values();
  }
}

/** Returns the bit of a row. */
function isSet(bits: Uint8Array, row: number): boolean {
  return ((bits[row >> 3] >> (row & 7)) & 1) === 1;
}

/** Creates the columns of these fields from their memory: for each, validity, values or offsets, and the bytes that
 * offsets refer to, followed by the parts of inner columns. Every part owns its memory.
 */
export function assemble(fields: readonly Field[], rows: number, parts: Iterator<Uint8Array>): Column[] {
  return fields.map(({ name, type }) => columnOf(name, type, rows, parts));
}

function columnOf(name: string, type: DataType, rows: number, parts: Iterator<Uint8Array>): Column {
  const part = (): Uint8Array => parts.next().value;
  const bits = part();
  const validity = bits.length === 0 ? undefined : bits;
  const [values, bytes] = [part(), part()];
  const { buffer } = values;
  if (typeof type === "object") {
    if ("struct" in type) return new StructColumn(name, rows, validity, assemble(type.struct, rows, parts));
    const offsets = new Uint32Array(buffer);
    return new ListColumn(name, rows, validity, offsets, columnOf("item", type.list, offsets[rows], parts));
  }
  switch (type) {
    case "null":
      return new NullColumn(name, rows, validity);
    case "bool":
      return new BoolColumn(name, rows, validity, values);
    case "int":
      return new NumberColumn(type, name, rows, validity, new Int32Array(buffer));
    case "long":
      return new NumberColumn(type, name, rows, validity, new BigInt64Array(buffer));
    case "date":
      return new NumberColumn(type, name, rows, validity, new BigInt64Array(buffer));
    case "timestamp":
      return new NumberColumn(type, name, rows, validity, new BigUint64Array(buffer));
    case "double":
      return new NumberColumn(type, name, rows, validity, new Float64Array(buffer));
    case "objectId":
      return new FixedColumn(type, name, rows, validity, values);
    case "decimal":
      return new FixedColumn(type, name, rows, validity, values);
    case "string":
      return new PieceColumn(type, name, rows, validity, new Uint32Array(buffer), bytes);
    case "json":
      return new PieceColumn(type, name, rows, validity, new Uint32Array(buffer), bytes);
    case "binData":
      return new PieceColumn(type, name, rows, validity, new Uint32Array(buffer), bytes);
  }
}

function dateOf(milliseconds: bigint): Date | DateTime {
  const isDate = milliseconds <= LAST_DATE && milliseconds >= -LAST_DATE;
  return isDate ? new Date(Number(milliseconds)) : new DateTime(milliseconds);
}
