/**
 * One walk over a document that appends a row to every column: a twin of the core's, for where the native part is not.
 *
 * `test/columns.test.ts` holds the two together. A document that does not fit leaves nothing behind.
 */

import { MillstreamError } from "../../error.js";
import { platform } from "../../text.js";
import { Cursor, invalidAt } from "../cursor.js";
import { appendJson } from "../json.js";
import { locate } from "../path.js";
import type { Appended, Filler, FillerOptions, Taken } from "./filler.js";
import type { DataType, Field } from "./schema.js";

/** What is counted on the walk, and what it goes by. */
interface Walk {
  readonly mismatchIsNull: boolean;
  readonly unknownIsError: boolean;
  readonly memoryLimit: number;
  /** How many bytes the columns have, at most. */
  used: number;
  unknown: number;
  mismatched: number;
}

function spend(walk: Walk, bytes: number): void {
  walk.used += bytes;
  if (walk.used > walk.memoryLimit) {
    const found = `columns of ${walk.used} bytes or more`;
    throw new MillstreamError("memory_limit", { found, expected: `at most ${walk.memoryLimit}` });
  }
}

/** Columns that grow by a row for each document. */
export class PlainFiller implements Filler {
  readonly #fields: readonly Field[];
  readonly #batchBytes: number;
  readonly #walk: Walk;
  #root = new Members();
  /** The columns of the fields. */
  #columns: Growing[] = [];
  #rows = 0;
  #width = 0;

  constructor(fields: readonly Field[], { batchBytes, ...options }: FillerOptions) {
    this.#fields = fields;
    this.#batchBytes = batchBytes;
    this.#walk = { ...options, used: 0, unknown: 0, mismatched: 0 };
    this.#begin();
  }

  get isFull(): boolean {
    return this.#walk.used >= this.#batchBytes;
  }

  append(bytes: Uint8Array): Appended {
    const before = this.#rows;
    const cursor = new Cursor(bytes);
    while (cursor.at < bytes.length && !this.isFull) {
      const start = cursor.at;
      try {
        this.#append(cursor);
      } catch (error) {
        return { rows: this.#rows - before, bytes: start, error };
      }
    }
    return { rows: this.#rows - before, bytes: cursor.at };
  }

  take(): Taken {
    const parts: Uint8Array[] = [];
    for (const column of this.#columns) column.addParts(parts);
    const { unknown, mismatched } = this.#walk;
    const taken = { rows: this.#rows, unknown, mismatched, parts };
    this.#rows = 0;
    this.#walk.used = 0;
    this.#begin();
    return taken;
  }

  #begin(): void {
    this.#root = new Members();
    this.#columns = this.#fields.map((field) => place(this.#root, field));
    this.#width = this.#root.width();
  }

  /** Appends the document that the cursor is at, and passes it. */
  #append(cursor: Cursor): void {
    const { at: start, end } = cursor;
    const last = cursor.documentEnd();
    cursor.end = last;
    const { used, unknown, mismatched } = this.#walk;
    try {
      spend(this.#walk, this.#width + last - start);
      this.#root.append(cursor, this.#rows, this.#walk);
    } catch (error) {
      this.#root.truncate(this.#rows);
      Object.assign(this.#walk, { used, unknown, mismatched });
      throw locate(error, cursor.bytes, start, last);
    }
    cursor.end = end;
    this.#rows++;
  }
}

/** Makes the column of a field, and what its path goes through. */
function place(root: Members, field: Field): Growing {
  let members = root;
  for (const key of field.keys.slice(0, -1)) {
    let path = members.columns.find((column) => column instanceof Struct && column.isPath && column.key === key);
    if (path === undefined) {
      path = new Struct(key, true, true);
      members.push(path);
    }
    members = (path as Struct).members;
  }
  const column = growing(field.keys[field.keys.length - 1], field.nullable, field.type);
  members.push(column);
  return column;
}

function growing(key: string, nullable: boolean, type: DataType): Growing {
  if (typeof type === "object") {
    if ("list" in type) return new List(key, nullable, growing("item", true, type.list));
    const struct = new Struct(key, nullable, false);
    for (const { keys, nullable, type: inner } of type.struct) struct.members.push(growing(keys[0], nullable, inner));
    return struct;
  }
  switch (type) {
    case "null":
      return new Null(key, nullable);
    case "bool":
      return new Bool(key, nullable);
    case "int":
      return new Int(key, nullable);
    case "long":
      return new Long(key, nullable);
    case "double":
      return new Double(key, nullable);
    case "date":
      return new Fixed(key, nullable, 0x09, 8, "a date");
    case "timestamp":
      return new Fixed(key, nullable, 0x11, 8, "a timestamp");
    case "objectId":
      return new Fixed(key, nullable, 0x07, 12, "an object id");
    case "decimal":
      return new Fixed(key, nullable, 0x13, 16, "a decimal number");
    case "string":
      return new Text(key, nullable);
    case "binData":
      return new Bytes(key, nullable);
    case "json":
      return new Json(key, nullable);
  }
}

/** Up to so many columns are looked through one by one. */
const FEW = 16;

/** The columns of the members of documents. */
class Members {
  readonly columns: Growing[] = [];
  /** Where the column of a key is, once there are so many that it pays. */
  readonly #index = new Map<string, number>();

  push(column: Growing): void {
    this.columns.push(column);
    if (!this.#index.has(column.key)) this.#index.set(column.key, this.columns.length - 1);
  }

  width(): number {
    return this.columns.reduce((sum, column) => sum + column.width(), 0);
  }

  truncate(rows: number): void {
    for (const column of this.columns) column.truncate(rows);
  }

  /** Appends the document that the cursor is at as row `row`: then every column has this row. */
  append(cursor: Cursor, row: number, walk: Walk): void {
    const { columns } = this;
    const start = cursor.at;
    const outer = cursor.enter();
    let expected = 0;
    let filled = 0;
    for (;;) {
      // Members come in the same order, as a rule.
      let index = expected;
      let type = expected < columns.length ? cursor.nextIf(columns[expected].bytes) : 0;
      if (type === 0) {
        type = cursor.next();
        if (type === 0) break;
        index = this.#find(cursor, expected);
        if (index < 0) {
          passUnknown(cursor, type, walk);
          continue;
        }
      }
      expected = index + 1;
      const column = columns[index];
      // Of a key that repeats, the first value counts.
      if (column.length > row) {
        cursor.skip(type);
        continue;
      }
      column.append(type, cursor, walk);
      filled++;
    }
    cursor.leave(outer);
    if (filled < columns.length) this.appendMissing(row, start);
  }

  /** Appends the array that the cursor is at: its elements have positions for keys. */
  appendElements(cursor: Cursor, row: number, walk: Walk): void {
    const start = cursor.at;
    const outer = cursor.enter();
    let filled = 0;
    for (let position = 0; ; position++) {
      const type = cursor.next();
      if (type === 0) break;
      const index = this.#index.get(String(position));
      if (index === undefined) {
        passUnknown(cursor, type, walk);
        continue;
      }
      this.columns[index].append(type, cursor, walk);
      filled++;
    }
    cursor.leave(outer);
    if (filled < this.columns.length) this.appendMissing(row, start);
  }

  /** Appends what is missing of a row, of what begins at `at`. */
  appendMissing(row: number, at: number): void {
    for (const column of this.columns) if (column.length === row) column.appendMissing(at);
  }

  #find({ bytes, key, keyEnd }: Cursor, start: number): number {
    const { columns } = this;
    if (columns.length > FEW) {
      const index = this.#index.get(platform.decode(bytes, key, keyEnd));
      // What is no UTF-8 is no key of ours, whatever it became.
      return index !== undefined && isSame(columns[index].bytes, bytes, key, keyEnd) ? index : -1;
    }
    for (let i = 0; i < columns.length; i++) {
      const index = (start + i) % columns.length;
      if (isSame(columns[index].bytes, bytes, key, keyEnd)) return index;
    }
    return -1;
  }
}

/** Whether the key, which has its NUL, is this one. */
function isSame(key: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (key.length !== end - start + 1) return false;
  for (let i = 0; i < key.length; i++) if (key[i] !== bytes[start + i]) return false;
  return true;
}

function passUnknown(cursor: Cursor, type: number, walk: Walk): void {
  walk.unknown++;
  if (walk.unknownIsError) {
    cursor.fail("shape_mismatch", cursor.at, "a member that the schema does not have", "only members that it has");
  }
  cursor.skip(type);
}

/** Memory that grows. */
class Room {
  bytes: Uint8Array<ArrayBuffer> = new Uint8Array(256);
  view = new DataView(this.bytes.buffer);
  length = 0;

  /** Makes room for so many bytes more, and says where it is. Behind `length` is nothing but what was forgotten. */
  grow(count: number): number {
    const at = this.length;
    this.length = at + count;
    if (this.length > this.bytes.length) {
      const grown = new Uint8Array(Math.max(this.length, 2 * this.bytes.length));
      grown.set(this.bytes);
      this.bytes = grown;
      this.view = new DataView(grown.buffer);
    }
    return at;
  }

  zeros(count: number): void {
    const at = this.grow(count);
    this.bytes.fill(0, at, at + count);
  }

  push(bytes: Uint8Array, start: number, end: number): void {
    const at = this.grow(end - start);
    // A call costs more than some bytes.
    if (end - start > 32) this.bytes.set(bytes.subarray(start, end), at);
    else for (let i = start; i < end; i++) this.bytes[at + i - start] = bytes[i];
  }

  putInt32(value: number): void {
    const at = this.grow(4);
    this.view.setInt32(at, value, !IS_BIG);
  }

  putUint32(value: number): void {
    const at = this.grow(4);
    this.view.setUint32(at, value, !IS_BIG);
  }

  putFloat64(value: number): void {
    const at = this.grow(8);
    this.view.setFloat64(at, value, !IS_BIG);
  }

  putBigInt64(value: bigint): void {
    const at = this.grow(8);
    this.view.setBigInt64(at, value, !IS_BIG);
  }

  /** What is in it, in memory of its own. */
  part(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }
}

/** A bit for each row, the lowest of a byte first. */
class Bits {
  readonly room = new Room();
  length = 0;

  push(bit: boolean): void {
    if ((this.length & 7) === 0) this.room.zeros(1);
    if (bit) this.room.bytes[this.length >> 3] |= 1 << (this.length & 7);
    this.length++;
  }

  truncate(length: number): void {
    if (length >= this.length) return;
    this.length = length;
    this.room.length = (length + 7) >> 3;
    if ((length & 7) !== 0) this.room.bytes[length >> 3] &= (1 << (length & 7)) - 1;
  }
}

const NOTHING = new Uint8Array(0);

/** A column that grows. */
abstract class Growing {
  /** The key as it is in documents, its NUL included. */
  readonly bytes: Uint8Array;
  length = 0;
  #validity: Bits | undefined;

  constructor(
    readonly key: string,
    readonly nullable: boolean,
  ) {
    this.bytes = platform.encode(`${key}\0`);
  }

  /** How many bytes a row takes at least. */
  abstract width(): number;

  /** Appends the value of this type. One that does not fit is an error, and nothing of it is appended. */
  protected abstract convert(type: number, cursor: Cursor, walk: Walk): void;

  /** Appends what stands where no value is. */
  protected abstract appendNothing(): void;

  protected abstract truncateValues(rows: number): void;

  /** Values or offsets, and the bytes that offsets are for. */
  protected abstract parts(): [values: Uint8Array, bytes: Uint8Array];

  /** Adds the parts of what is inside. */
  protected addInside(_parts: Uint8Array[]): void {}

  /** Appends the value of this type that the cursor is at. */
  append(type: number, cursor: Cursor, walk: Walk): void {
    // Null and undefined.
    if (type === 0x0a || type === 0x06) {
      this.appendMissing(cursor.at);
      return;
    }
    if (walk.mismatchIsNull && this.nullable) {
      this.#appendIfItFits(type, cursor, walk);
      return;
    }
    this.convert(type, cursor, walk);
    this.#appended();
  }

  /** Appends a row for a value that is not there, of what begins at `at`. */
  appendMissing(at: number): void {
    if (!this.nullable) {
      const found = `no value for ${JSON.stringify(this.key)}`;
      throw new MillstreamError("key_missing", { found, expected: "one, as the schema says", offset: at });
    }
    this.appendNull();
  }

  appendNull(): void {
    this.appendNothing();
    if (this.#validity === undefined) {
      this.#validity = new Bits();
      for (let row = 0; row < this.length; row++) this.#validity.push(true);
    }
    this.#validity.push(false);
    this.length++;
  }

  truncate(rows: number): void {
    this.truncateValues(rows);
    this.#validity?.truncate(rows);
    this.length = Math.min(this.length, rows);
  }

  addParts(parts: Uint8Array[]): void {
    parts.push(this.#validity?.room.part() ?? NOTHING, ...this.parts());
    this.addInside(parts);
  }

  #appended(): void {
    this.length++;
    this.#validity?.push(true);
  }

  #appendIfItFits(type: number, cursor: Cursor, walk: Walk): void {
    const { at } = cursor;
    try {
      this.convert(type, cursor, walk);
      this.#appended();
    } catch (error) {
      const { kind } = error as MillstreamError;
      // What is wrong inside of a value that fits is wrong itself.
      if (this.isInside(type) || (kind !== "shape_mismatch" && kind !== "value_out_of_range")) throw error;
      walk.mismatched++;
      cursor.at = at;
      cursor.skip(type);
      this.appendNull();
    }
  }

  /** Whether values of this type have values inside them, which go into columns inside this one. */
  protected isInside(_type: number): boolean {
    return false;
  }
}

class Null extends Growing {
  width(): number {
    return 1;
  }

  protected convert(type: number, cursor: Cursor): void {
    cursor.mismatch(type, "null or nothing");
  }

  protected appendNothing(): void {}

  protected truncateValues(): void {}

  protected parts(): [Uint8Array, Uint8Array] {
    return [NOTHING, NOTHING];
  }
}

class Bool extends Growing {
  readonly #bits = new Bits();

  width(): number {
    return 2;
  }

  protected convert(type: number, cursor: Cursor): void {
    if (type !== 0x08) cursor.mismatch(type, "a boolean");
    this.#bits.push(cursor.bool());
  }

  protected appendNothing(): void {
    this.#bits.push(false);
  }

  protected truncateValues(rows: number): void {
    this.#bits.truncate(rows);
  }

  protected parts(): [Uint8Array, Uint8Array] {
    return [this.#bits.room.part(), NOTHING];
  }
}

/** Values of a fixed size. */
class Fixed extends Growing {
  protected readonly room = new Room();

  constructor(
    key: string,
    nullable: boolean,
    readonly type: number,
    readonly size: number,
    readonly expected: string,
  ) {
    super(key, nullable);
  }

  width(): number {
    return 1 + this.size;
  }

  protected convert(type: number, cursor: Cursor, _walk: Walk): void {
    if (type !== this.type) cursor.mismatch(type, this.expected);
    const at = cursor.take(this.size);
    this.room.push(cursor.bytes, at, cursor.at);
    // Numbers are as the machine has them; ids and decimals stay what they are.
    if (IS_BIG && this.size === 8) this.room.bytes.subarray(this.room.length - 8, this.room.length).reverse();
  }

  protected appendNothing(): void {
    this.room.zeros(this.size);
  }

  protected truncateValues(rows: number): void {
    this.room.length = Math.min(this.room.length, rows * this.size);
  }

  protected parts(): [Uint8Array, Uint8Array] {
    return [this.room.part(), NOTHING];
  }
}

/** Whether this machine has the high byte of a number first. */
const IS_BIG = new Uint8Array(Uint16Array.of(1).buffer)[0] === 0;

/** An integer of any width out of a number, that is at most this: exactly, or as an error. */
function integer(type: number, cursor: Cursor, bits: 32 | 64): bigint | number {
  const expected = `an integer of ${bits} bits`;
  const { at, view } = cursor;
  const outside = (found: string) => cursor.fail("value_out_of_range", at, found, expected);
  switch (type) {
    case 0x10:
      return view.getInt32(cursor.take(4), true);
    case 0x12: {
      const value = view.getBigInt64(cursor.take(8), true);
      return BigInt.asIntN(bits, value) === value ? value : outside(String(value));
    }
    case 0x01: {
      const value = view.getFloat64(cursor.take(8), true);
      if (!Number.isInteger(value) || value < -(2 ** 63) || value >= 2 ** 63) outside(numberText(value));
      return BigInt.asIntN(bits, BigInt(value)) === BigInt(value) ? BigInt(value) : outside(String(BigInt(value)));
    }
    default:
      return cursor.mismatch(type, expected);
  }
}

/** A number as the core shows it: without an exponent. */
function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  if (!Number.isFinite(value)) return `${sign}inf`;
  const [mantissa, exponent = "0"] = String(Math.abs(value)).split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  const digits = whole + fraction;
  const point = whole.length + Number(exponent);
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  if (point >= digits.length) return sign + digits.padEnd(point, "0");
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

class Int extends Fixed {
  constructor(key: string, nullable: boolean) {
    super(key, nullable, 0x10, 4, "an integer of 32 bits");
  }

  protected override convert(type: number, cursor: Cursor): void {
    const value = Number(integer(type, cursor, 32));
    this.room.putInt32(value);
  }
}

class Long extends Fixed {
  constructor(key: string, nullable: boolean) {
    super(key, nullable, 0x12, 8, "an integer of 64 bits");
  }

  protected override convert(type: number, cursor: Cursor, walk: Walk): void {
    if (type === 0x12) {
      super.convert(type, cursor, walk);
      return;
    }
    const value = BigInt(integer(type, cursor, 64));
    this.room.putBigInt64(value);
  }
}

class Double extends Fixed {
  constructor(key: string, nullable: boolean) {
    super(key, nullable, 0x01, 8, "a number");
  }

  protected override convert(type: number, cursor: Cursor, walk: Walk): void {
    if (type !== 0x10 && type !== 0x12) {
      super.convert(type, cursor, walk);
      return;
    }
    const { at, view } = cursor;
    let value: number;
    if (type === 0x10) {
      value = view.getInt32(cursor.take(4), true);
    } else {
      const long = view.getBigInt64(cursor.take(8), true);
      value = Number(long);
      if (BigInt(value) !== long) {
        cursor.fail("value_out_of_range", at, String(long), "an integer that a double holds exactly");
      }
    }
    this.room.putFloat64(value);
  }
}

/** Pieces of any length in one block. */
abstract class Pieces extends Growing {
  readonly #offsets = offsets();
  protected readonly room = new Room();

  width(): number {
    return 5;
  }

  /** Ends the piece whose bytes have been appended. */
  protected end(): void {
    pushOffset(this.#offsets, this.room.length);
  }

  protected appendNothing(): void {
    this.end();
  }

  protected truncateValues(rows: number): void {
    truncateOffsets(this.#offsets, rows);
    this.room.length = lastOffset(this.#offsets);
  }

  protected parts(): [Uint8Array, Uint8Array] {
    return [this.#offsets.part(), this.room.part()];
  }
}

// Where pieces end, behind a 0.
function offsets(): Room {
  const room = new Room();
  room.zeros(4);
  return room;
}

function pushOffset(room: Room, offset: number): void {
  room.putUint32(offset);
}

function truncateOffsets(room: Room, rows: number): void {
  room.length = Math.min(room.length, 4 * (rows + 1));
}

function lastOffset(room: Room): number {
  return room.view.getUint32(room.length - 4, !IS_BIG);
}

class Text extends Pieces {
  protected convert(type: number, cursor: Cursor, walk: Walk): void {
    // Symbols and JavaScript are text, too.
    if (type !== 0x02 && type !== 0x0d && type !== 0x0e) cursor.mismatch(type, "text");
    const start = cursor.string();
    const end = cursor.at - 1;
    if (invalidAt(cursor.bytes, start, end) < end) cursor.checkText(start, end);
    if (type !== 0x02) spend(walk, end - start);
    this.room.push(cursor.bytes, start, end);
    this.end();
  }
}

class Bytes extends Pieces {
  protected convert(type: number, cursor: Cursor): void {
    if (type !== 0x05) cursor.mismatch(type, "bytes");
    const start = cursor.binary();
    this.room.push(cursor.bytes, start, cursor.at);
    this.end();
  }
}

class Json extends Pieces {
  protected convert(type: number, cursor: Cursor, walk: Walk): void {
    const text = platform.encode(appendJson(type, cursor));
    spend(walk, text.length);
    this.room.push(text, 0, text.length);
    this.end();
  }
}

class List extends Growing {
  readonly #offsets = offsets();

  constructor(
    key: string,
    nullable: boolean,
    readonly items: Growing,
  ) {
    super(key, nullable);
  }

  width(): number {
    return 5;
  }

  protected convert(type: number, cursor: Cursor, walk: Walk): void {
    if (type !== 0x04) cursor.mismatch(type, "an array");
    const width = this.items.width();
    const outer = cursor.enter();
    for (let inner = cursor.next(); inner !== 0; inner = cursor.next()) {
      // A null takes three bytes in the document, and here as much as the type.
      spend(walk, width);
      this.items.append(inner, cursor, walk);
    }
    cursor.leave(outer);
    pushOffset(this.#offsets, this.items.length);
  }

  protected override isInside(type: number): boolean {
    return type === 0x04;
  }

  protected appendNothing(): void {
    pushOffset(this.#offsets, this.items.length);
  }

  protected truncateValues(rows: number): void {
    truncateOffsets(this.#offsets, rows);
    this.items.truncate(lastOffset(this.#offsets));
  }

  protected parts(): [Uint8Array, Uint8Array] {
    return [this.#offsets.part(), NOTHING];
  }

  protected override addInside(parts: Uint8Array[]): void {
    this.items.addParts(parts);
  }
}

class Struct extends Growing {
  readonly members = new Members();

  constructor(
    key: string,
    nullable: boolean,
    /** Whether it is no column of the schema, but what a path goes through to some. */
    readonly isPath: boolean,
  ) {
    super(key, nullable);
  }

  width(): number {
    return 1 + this.members.width();
  }

  override append(type: number, cursor: Cursor, walk: Walk): void {
    if (!this.isPath || type === 0x0a || type === 0x06 || type === 0x03) {
      super.append(type, cursor, walk);
    } else if (type === 0x04) {
      // A path goes through arrays, too, by position; through anything else it leads nowhere.
      this.members.appendElements(cursor, this.length, walk);
      this.length++;
    } else {
      const { at } = cursor;
      cursor.skip(type);
      this.appendMissing(at);
    }
  }

  override appendMissing(at: number): void {
    if (!this.isPath) {
      super.appendMissing(at);
      return;
    }
    this.members.appendMissing(this.length, at);
    this.length++;
  }

  protected convert(type: number, cursor: Cursor, walk: Walk): void {
    if (type !== 0x03) cursor.mismatch(type, "a document");
    this.members.append(cursor, this.length, walk);
  }

  protected override isInside(type: number): boolean {
    return type === 0x03;
  }

  protected appendNothing(): void {
    for (const member of this.members.columns) member.appendNull();
  }

  protected truncateValues(rows: number): void {
    this.members.truncate(rows);
  }

  protected parts(): [Uint8Array, Uint8Array] {
    return [NOTHING, NOTHING];
  }

  protected override addInside(parts: Uint8Array[]): void {
    for (const member of this.members.columns) member.addParts(parts);
  }
}
