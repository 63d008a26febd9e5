/**
 * A column's memory: plain typed arrays, in the layout of Apache Arrow (<https://arrow.apache.org/docs/format/Columnar.html>).
 *
 * Where a value is none, its place holds zeros, or nothing where values have no fixed size. Objects are made when they are asked
 * for, one by one.
 */

import { Batch, TRIM_NOTHING } from "../../batch.js";
import { MillstreamError } from "../../error.js";
import { platform } from "../../text.js";
import { Decimal128 } from "../decimal.js";
import { dateOf, ObjectId, Timestamp } from "../values.js";
import type { DataType, Field } from "./schema.js";

/** Which word of an integer of 64 bits is the high one, on this machine. */
const HIGH = new Uint8Array(Uint16Array.of(1).buffer)[0];

/** The memory of columns of numbers: dates are milliseconds since 1970, timestamps the seconds times 2³² plus the increment. */
export interface NumberArrays {
  int: Int32Array;
  long: BigInt64Array;
  double: Float64Array;
  date: BigInt64Array;
  timestamp: BigUint64Array;
}

/** How many names of columns an error tells. */
const SHOWN = 20;

/** The type of a column: a list and a struct are called so. */
export type ColumnKind = Column["kind"];

/** A column, by its kind. */
export type ColumnOf<K extends ColumnKind> = Extract<Column, { readonly kind: K }>;

/** A column: so many values, and which of them are none. */
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

/** What all columns have. */
abstract class Values<T> implements Iterable<T | null> {
  constructor(
    /** Its name in the schema. */
    readonly name: string,
    /** How many rows it has. */
    readonly length: number,
    /** A bit for each row, the lowest of a byte first: whether there is a value. `undefined` where all are there. */
    readonly validity: Uint8Array | undefined,
  ) {}

  /** Whether there is a value in this row. */
  isValid(row: number): boolean {
    if (!(row >= 0 && row < this.length)) throw new RangeError(`row ${row} of ${this.length}`);
    return this.validity === undefined || isSet(this.validity, row);
  }

  /** The value in this row, as `bson.decode` makes them; `null` for none. */
  get(row: number): T | null {
    return this.isValid(row) ? this.value(row) : null;
  }

  /** All values, as `get` makes them. */
  toArray(): (T | null)[] {
    return Array.from({ length: this.length }, (_, row) => this.get(row));
  }

  *[Symbol.iterator](): IterableIterator<T | null> {
    for (let row = 0; row < this.length; row++) yield this.get(row);
  }

  protected abstract value(row: number): T;
}

/** No values at all. */
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
    /** A bit for each row, the lowest of a byte first. */
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

  /**
   * All values as numbers, with zeros where there is none: for sums over 64-bit integers without a `bigint` for each. They are
   * rounded where a number does not hold them exactly.
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

/** Object ids of 12 bytes, decimal numbers of 16 (the lowest first). */
export class FixedColumn<K extends "objectId" | "decimal"> extends Values<ObjectId | Decimal128> {
  constructor(
    readonly kind: K,
    name: string,
    length: number,
    validity: Uint8Array | undefined,
    /** One value behind the other. */
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

/** Text (also that of Extended JSON) or bytes, of any length each: value `i` is `bytes[offsets[i] .. offsets[i + 1]]`. */
export class PieceColumn<K extends keyof PieceValues> extends Values<PieceValues[K]> {
  constructor(
    readonly kind: K,
    name: string,
    length: number,
    validity: Uint8Array | undefined,
    readonly offsets: Uint32Array,
    /** UTF-8, where it is text. */
    readonly bytes: Uint8Array,
  ) {
    super(name, length, validity);
  }

  /** All values as strings, empty ones where there is none: much faster than one by one. */
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

/** Documents: a column for each member, all of them as long as this one. */
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

/** Documents as columns: a row for each. */
export class Columns implements Iterable<Column> {
  constructor(
    /** Which columns there are. It can be the `schema` of others. */
    readonly schema: readonly Field[],
    /** The columns, in the order of the schema. */
    readonly columns: readonly Column[],
    /** How many rows there are. */
    readonly length: number,
    /** Which record of the stream the first row is; the stream's first is 0. */
    readonly firstRecord: number,
    /** How many values did not fit, and are none, from the beginning of the stream on: with `mismatch: "null"`. */
    readonly mismatched: number,
    /** How many members no column reads, from the beginning of the stream on. */
    readonly unknown: number,
  ) {}

  /**
   * The column of this name, which is of this kind, if that is said.
   *
   * @throws `argument_invalid` where there is none, or it is of another kind.
   */
  column(name: string): Column;
  column<K extends ColumnKind>(name: string, kind: K): ColumnOf<K>;
  column(name: string, kind?: ColumnKind): Column {
    const column = this.columns.find((one) => one.name === name);
    if (column === undefined || (kind !== undefined && column.kind !== kind)) {
      const found = column === undefined ? `no column "${name}"` : `the column "${name}" of kind ${column.kind}`;
      const some = this.columns.slice(0, SHOWN).map((one) => one.name);
      if (this.columns.length > SHOWN) some.push("…");
      throw new MillstreamError("argument_invalid", { found, expected: column === undefined ? some.join(", ") : kind });
    }
    return column;
  }

  [Symbol.iterator](): IterableIterator<Column> {
    return this.columns.values();
  }
}

/** The bit of a row. */
function isSet(bits: Uint8Array, row: number): boolean {
  return ((bits[row >> 3] >> (row & 7)) & 1) === 1;
}

/**
 * The columns of these fields, out of their memory: of each validity, values or offsets, and the bytes that offsets are for, then
 * those of what is inside. Every part has memory of its own.
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
