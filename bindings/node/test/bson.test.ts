// The shared vectors, and tests specific to JavaScript: numbers, keys, streams of documents.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import {
  type Batch,
  Binary,
  BsonSymbol,
  bson,
  Code,
  collect,
  DateTime,
  DbPointer,
  Decimal128,
  from,
  MaxKey,
  MillstreamError,
  MinKey,
  map,
  native,
  ObjectId,
  pipe,
  RegularExpression,
  Timestamp,
} from "millstream";
import { failure, pieces, repository } from "./twin.js";

function vectors(name: string): string[][] {
  const text = readFileSync(new URL(`vectors/${name}`, repository), "utf8");
  const rows = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return rows.map((row) => row.split("\t"));
}

const bytesOf = (hex: string) => new Uint8Array(Buffer.from(hex, "hex"));

/** The values that canonical Extended JSON represents. */
function values(json: any): unknown {
  if (Array.isArray(json)) return json.map(values);
  if (typeof json !== "object" || json === null) return json;
  const [[key, value] = ["", undefined], second] = Object.entries<any>(json);
  switch (key) {
    case "$numberDouble":
      return Number(value);
    case "$numberInt":
      return Number(value);
    case "$numberLong":
      return Number.isSafeInteger(Number(value)) ? Number(value) : BigInt(value);
    case "$numberDecimal":
      return value;
    case "$binary": {
      const bytes = new Uint8Array(Buffer.from(value.base64, "base64"));
      return value.subType === "00" ? bytes : new Binary(Number.parseInt(value.subType, 16), bytes);
    }
    case "$undefined":
      return undefined;
    case "$oid":
      return new ObjectId(bytesOf(value));
    case "$date": {
      const date = new Date(Number(value.$numberLong));
      return Number.isNaN(date.valueOf()) ? new DateTime(BigInt(value.$numberLong)) : date;
    }
    case "$regularExpression":
      return new RegularExpression(value.pattern, value.options);
    case "$dbPointer":
      return new DbPointer(value.$ref, values(value.$id) as ObjectId);
    case "$code":
      return second === undefined ? new Code(value) : new Code(value, values(second[1]) as any);
    case "$symbol":
      return new BsonSymbol(value);
    case "$timestamp":
      return new Timestamp(value.t, value.i);
    case "$minKey":
      return new MinKey();
    case "$maxKey":
      return new MaxKey();
  }
  return Object.fromEntries(Object.entries(json).map(([key, value]) => [key, values(value)]));
}

/** Decimal numbers as text, because several bit patterns represent the same number. */
function withoutDecimals(value: any): unknown {
  if (value instanceof Decimal128) return String(value);
  if (Array.isArray(value)) return value.map(withoutDecimals);
  if (value?.constructor !== Object) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withoutDecimals(member)]));
}

function thrown(call: () => unknown): MillstreamError {
  try {
    call();
  } catch (error) {
    return error as MillstreamError;
  }
  throw new Error("it did not fail");
}

test("the shared vectors of documents", () => {
  for (const [name, hex, canonical] of vectors("bson.tsv")) {
    const bytes = bytesOf(hex);
    if (canonical.startsWith("error ")) {
      const { kind, offset } = thrown(() => bson.decode(bytes));
      assert.equal(kind, canonical.slice("error ".length), name);
      assert(offset !== undefined && offset <= bytes.length, name);
    } else {
      assert.deepEqual(withoutDecimals(bson.decode(bytes)), values(JSON.parse(canonical)), name);
      // Also in the middle of other memory.
      const around = Buffer.concat([Buffer.alloc(3, 7), bytes, Buffer.alloc(3, 7)]).subarray(3, -3);
      assert.deepEqual(bson.decodeAll(around), [bson.decode(bytes)], name);
    }
  }
});

test("the shared vectors of decimal numbers", () => {
  for (const [name, text, hex, canonical] of vectors("decimal128.tsv")) {
    if (hex === "error") continue;
    assert.equal(String(new Decimal128(bytesOf(hex))), canonical === "=" ? text : canonical, name);
  }
});

test("Extended JSON of types that JavaScript lacks", () => {
  const kinds = /^(binary|object_id|regex|db_pointer|code|symbol|timestamp|decimal|min_key|max_key|date_most)/;
  let count = 0;
  for (const [name, hex, canonical] of vectors("bson.tsv")) {
    // Bytes are a plain Uint8Array, and the scope's number is a plain number.
    if (!kinds.test(name) || canonical.startsWith("error") || /^binary_00|scope$/.test(name)) continue;
    assert.deepEqual(JSON.parse(JSON.stringify(bson.decode(bytesOf(hex)))), JSON.parse(canonical), name);
    count++;
  }
  assert(count > 12);
});

test("integers of 64 bits are numbers if these are exact", () => {
  const long = (value: bigint) => {
    const bytes = bytesOf("10000000127600000000000000000000");
    new DataView(bytes.buffer).setBigInt64(7, value, true);
    return bytes;
  };
  const most = BigInt(Number.MAX_SAFE_INTEGER);
  for (const value of [0n, 1n, -1n, most, -most, most + 1n, -most - 1n, 2n ** 63n - 1n, -(2n ** 63n)]) {
    const isExact = value <= most && value >= -most;
    assert.equal(bson.decode(long(value)).v, isExact ? Number(value) : value);
    assert.equal(bson.decode(long(value), { int64: "bigint" }).v, value);
  }
  assert.throws(() => bson.decode(long(0n), { int64: "text" as never }), { kind: "invalid_option" });
});

test("any key is accepted", () => {
  const key = (name: string) => {
    const text = Buffer.from(name);
    const bytes = Buffer.alloc(4 + 1 + text.length + 1 + 1 + 1);
    bytes.writeInt32LE(bytes.length);
    bytes[4] = 8;
    text.copy(bytes, 5);
    bytes[bytes.length - 2] = 1;
    return bytes;
  };
  for (const name of ["__proto__", "constructor", "größe", "", "x".repeat(100), "12"]) {
    const document = bson.decode(key(name));
    assert.deepEqual(Object.keys(document), [name]);
    assert.equal(Object.getOwnPropertyDescriptor(document, name)?.value, true);
    assert.equal(Object.getPrototypeOf(document), Object.prototype);
  }
  // Enough keys to replace all known ones twice.
  for (let i = 0; i < 4000; i++) assert.deepEqual(Object.keys(bson.decode(key(`key${i % 2000}`))), [`key${i % 2000}`]);
});

test("an error contains the position of the value", () => {
  // {"a": [true, 2 as a boolean]}
  const array = "0461000d000000083000010831000200";
  const bytes = Buffer.from(`15000000${array}00`, "hex");
  const { kind, path, offset, message } = thrown(() => bson.decode(bytes));
  assert.deepEqual([kind, path, offset], ["document_invalid", "a.1", 18]);
  assert.match(message, /, in a\.1, at byte 18/);
  const second = thrown(() => bson.decodeAll(Buffer.concat([Buffer.from("0500000000", "hex"), bytes])));
  assert.deepEqual([second.path, second.offset, second.record], ["a.1", 23, 1]);
});

/** The number of documents or the error, which is the same with both implementations. */
function checked(input: Uint8Array | Batch): unknown {
  const outcomes = (native.available ? [false, true] : [false]).map((native) => {
    try {
      return bson.check(input, { native });
    } catch (error) {
      if (!(error instanceof MillstreamError)) throw error;
      const { kind, offset, record, path, found, expected } = error;
      return { kind, offset, record, path, found, expected };
    }
  });
  for (const outcome of outcomes) assert.deepEqual(outcome, outcomes[0]);
  return outcomes[0];
}

test("check agrees with the shared vectors", () => {
  for (const [name, hex, canonical] of vectors("bson.tsv")) {
    const bytes = bytesOf(hex);
    // An error for one document, but not for several.
    if (name === "nothing" || name === "bytes_after") continue;
    const found = checked(bytes) as { kind?: string };
    if (canonical.startsWith("error ")) assert.equal(found.kind, canonical.slice("error ".length), name);
    else assert.equal(found, 1, name);
  }
  assert.equal(checked(new Uint8Array(0)), 0);
  assert.equal(thrown(() => bson.check("text" as never)).kind, "argument_invalid");
});

test("check rejects the same documents as decode, with the same errors in both implementations", () => {
  const samples = vectors("bson.tsv").map(([, hex]) => bytesOf(hex));
  const change = fc.tuple(fc.nat(150), fc.nat(255));
  fc.assert(
    fc.property(fc.constantFrom(...samples), fc.constantFrom(...samples), fc.array(change), (one, other, changes) => {
      const bytes = new Uint8Array(Buffer.concat([one, other]));
      for (const [at, byte] of changes) if (at < bytes.length) bytes[at] = byte;
      const found = checked(bytes);
      let isDecoded = true;
      try {
        bson.decodeAll(bytes);
      } catch {
        isDecoded = false;
      }
      // Keys of arrays are not decoded, so decode cannot report invalid text in them.
      if (typeof found === "number" || (found as { kind: string }).kind !== "utf8_invalid") {
        assert.equal(typeof found === "number", isDecoded);
      }
    }),
    { numRuns: 2000 },
  );
});

test("check of a batch reports positions in the stream", async () => {
  const good = bytesOf("0c000000106e000500000000");
  const bad = Buffer.concat([good, good, bytesOf("090000000876000200")]);
  const reader = from(bad, { framer: bson(), as: "bytes" });
  for await (const _ of reader) break;
  const batch = (await reader.nextBatch()) as Batch;
  assert.deepEqual(checked(batch), {
    kind: "document_invalid",
    offset: 31,
    record: 2,
    path: "v",
    found: "0x02 for a boolean",
    expected: "0 or 1",
  });
});

test("depth has a limit", () => {
  let bytes = Buffer.from("0500000000", "hex");
  for (let depth = 0; depth < 300; depth++) {
    const outer = Buffer.alloc(bytes.length + 8);
    outer.writeInt32LE(outer.length);
    outer.write("\x03a\0", 4);
    bytes.copy(outer, 7);
    bytes = outer;
  }
  assert.equal(thrown(() => bson.decode(bytes)).kind, "too_deep");
  assert.equal(typeof bson.decode(bytes, { depth: 300 }), "object");
});

test("any bytes are a document or an error", () => {
  const samples = vectors("bson.tsv").map(([, hex]) => bytesOf(hex));
  fc.assert(
    fc.property(fc.constantFrom(...samples), fc.array(fc.tuple(fc.nat(200), fc.nat(255))), (sample, changes) => {
      const bytes = sample.slice();
      for (const [at, byte] of changes) if (at < bytes.length) bytes[at] = byte;
      try {
        bson.decode(bytes);
      } catch (error) {
        const { kind } = error as MillstreamError;
        assert(["document_invalid", "document_truncated", "utf8_invalid"].includes(kind), String(error));
      }
    }),
    { numRuns: 2000 },
  );
});

test("a stream of documents, one by one and in batches, in any pieces", async () => {
  const good = vectors("bson.tsv").filter(([, , canonical]) => !canonical.startsWith("error"));
  const all = Buffer.concat(good.map(([, hex]) => Buffer.from(hex, "hex")));
  const expected = good.map(([, hex]) => bson.decode(bytesOf(hex)));
  const cuts = Array.from({ length: 60 }, (_, i) => i * 37 + (i % 5));
  const open = () => from(pieces(all, cuts), { framer: bson(), as: "bytes" });
  assert.deepEqual(await pipe(open(), map(bson.decode), collect()), expected);
  const found: unknown[] = [];
  for await (const batch of open().batches()) found.push(...bson.decodeAll(batch.bytes));
  assert.deepEqual(found, expected);
  const second = Buffer.from([...bytesOf(good[1][1]), ...bytesOf("090000000876000200")]);
  assert.deepEqual([thrown(() => bson.decodeAll(second)).record, thrown(() => bson.decodeAll(second)).offset], [1, 23]);
  const error = await failure(pipe(from(second, { framer: bson(), as: "bytes" }), map(bson.decode), collect()));
  assert.deepEqual(
    [error.kind, error.record, (error.cause as MillstreamError).kind],
    ["stage_failed", 1, "document_invalid"],
  );
});
