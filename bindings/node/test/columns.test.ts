// Columns by WebAssembly and by the native part: both are compared with the results of `bson.decode`, and with each
// other.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import * as ms from "millstream";
import { bson, type Columns, type ColumnsOptions, type MillstreamError, native } from "millstream";
import { repository } from "./twin.js";

function vectorsOf(name: string): string[][] {
  const text = readFileSync(new URL(`vectors/${name}`, repository), "utf8");
  const rows = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return rows.map((row) => row.split("\t"));
}

const vectors = vectorsOf("bson.tsv");

// Encodes documents in the simplest way.

type Made = [type: number, payload: Buffer];

const int32 = (value: number) => Buffer.from(Int32Array.of(value).buffer);
const cstring = (text: string) => Buffer.from(`${text}\0`);

function document(members: [string, Made][]): Buffer {
  const inside = members.flatMap(([key, [type, payload]]) => [Buffer.of(type), cstring(key), payload]);
  const bytes = Buffer.concat([int32(0), ...inside, Buffer.of(0)]);
  bytes.writeInt32LE(bytes.length);
  return bytes;
}

const int = (value: number): Made => [0x10, int32(value)];
const long = (value: bigint): Made => [0x12, Buffer.from(BigInt64Array.of(value).buffer)];
const double = (value: number): Made => [0x01, Buffer.from(Float64Array.of(value).buffer)];
const text = (value: string, type = 0x02): Made => [
  type,
  Buffer.concat([int32(Buffer.byteLength(value) + 1), cstring(value)]),
];
const bool = (value: boolean): Made => [0x08, Buffer.of(value ? 1 : 0)];
const date = (value: bigint): Made => [0x09, Buffer.from(BigInt64Array.of(value).buffer)];
const bytes = (value: Uint8Array): Made => [0x05, Buffer.concat([int32(value.length), Buffer.of(0), value])];
const object = (members: [string, Made][]): Made => [0x03, document(members)];
const array = (items: Made[]): Made => [0x04, document(items.map((item, index) => [String(index), item]))];
const NULL: Made = [0x0a, Buffer.alloc(0)];

/** The whole content of columns, or the error. */
function outcome(call: () => Columns): unknown {
  try {
    const columns = call();
    const { schema, length, mismatched, unknown } = columns;
    return { schema, length, mismatched, unknown, columns: columns.columns };
  } catch (error) {
    if (!(error instanceof ms.MillstreamError)) throw error;
    const { kind, offset, record, path, found, expected } = error;
    return { kind, offset, record, path, found, expected };
  }
}

/** Checks that both implementations agree, and returns the result. */
function same(input: Uint8Array, options: ColumnsOptions = {}): any {
  const plain = outcome(() => bson.columns(input, { ...options, native: false }));
  if (native.available)
    assert.deepEqual(
      outcome(() => bson.columns(input, { ...options, native: true })),
      plain,
    );
  return plain;
}

function thrown(call: () => unknown): MillstreamError {
  try {
    call();
  } catch (error) {
    return error as MillstreamError;
  }
  throw new Error("no error was reported");
}

test("the shared vectors: every document as columns, in both implementations", () => {
  for (const [name, hex, canonical] of vectors) {
    const input = Buffer.from(hex, "hex");
    const found = same(input, { unknown: "count" });
    if (canonical.startsWith("error")) continue;
    assert.equal(found.length, 1, name);
    for (const mixed of ["json", "error"] as const) same(input, { mixed });
    // A value of every requested type, if there is one.
    for (const key of Object.keys(bson.decode(input))) {
      const path = JSON.stringify(key);
      for (const type of ["null", "bool", "int", "long", "double", "string", "binData", "objectId"] as const) {
        for (const mismatch of ["error", "null"] as const) same(input, { schema: { [path]: type }, mismatch });
      }
      for (const type of ["date", "timestamp", "decimal", "json", ["int"], ["json"], { a: "json" }] as const) {
        for (const mismatch of ["error", "null"] as const) same(input, { schema: { [path]: type }, mismatch });
      }
    }
  }
});

const key = fc.constantFrom("a", "b", "c", "a.b", "0", "1", "größe", "__proto__");

const leaf: fc.Arbitrary<Made> = fc.oneof(
  fc.integer().map(int),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(long),
  fc.constantFrom(2n ** 53n, 2n ** 53n + 1n, -(2n ** 31n), 2n ** 31n, 7n).map(long),
  fc.double().map(double),
  fc.constantFrom(1, -0, 0.5, 1e6, 123456.789, 1e-5, 1e21, 1.5e300, 2 ** 31, -(2 ** 63), 2 ** 63).map(double),
  fc.string({ unit: "binary" }).map((value) => text(value.replaceAll("\0", ""))),
  fc.string({ minLength: 40, maxLength: 90 }).map((value) => text(value)),
  fc.constantFrom(text("symbol", 0x0e), text("code", 0x0d)),
  fc.boolean().map(bool),
  fc.constantFrom(0n, 999n, 1000n, -1n, 253_402_300_800_000n, 2n ** 62n).map(date),
  fc.uint8Array({ maxLength: 5 }).map(bytes),
  fc.uint8Array({ minLength: 12, maxLength: 12 }).map((id): Made => [0x07, Buffer.from(id)]),
  fc.uint8Array({ minLength: 8, maxLength: 8 }).map((value): Made => [0x11, Buffer.from(value)]),
  fc.uint8Array({ minLength: 16, maxLength: 16 }).map((value): Made => [0x13, Buffer.from(value)]),
  fc.constantFrom<Made>([0x0b, Buffer.from("a.b\0xmi\0")], [0x06, Buffer.alloc(0)], [0xff, Buffer.alloc(0)], NULL),
);

const { value } = fc.letrec<{ value: Made; inner: Made }>((tie) => ({
  value: fc.oneof({ maxDepth: 4, depthSize: "small" }, leaf, tie("inner")),
  inner: fc.oneof(
    fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map(object),
    fc.array(tie("value"), { maxLength: 4 }).map(array),
  ),
}));

const members = fc.array(fc.tuple(key, value), { maxLength: 6 });

const columnType = fc.letrec<{ type: ms.ColumnType }>((tie) => ({
  type: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.constantFrom<ms.ColumnType>("null", "bool", "int", "long", "double", "string", "binData", "objectId", "date"),
    fc.constantFrom<ms.ColumnType>("timestamp", "decimal", "json", "int!", "string!"),
    tie("type")
      .filter((type) => typeof type !== "string" || !type.endsWith("!"))
      .map((type): ms.ColumnType => [type]),
    fc.tuple(tie("type"), tie("type")).map(([a, b]): ms.ColumnType => ({ a, b })),
  ),
})).type;

const schema: fc.Arbitrary<ms.Schema> = fc.oneof(
  fc.record({ a: columnType, b: columnType, c: columnType }),
  fc.record({ c: columnType, "a.b": columnType, "b.1": columnType, "a.a.c": columnType, '"a.b"': columnType }),
);

test("any documents with any schema: both implementations agree in every bit and every error", () => {
  const mismatch = fc.constantFrom<"error" | "null">("error", "null");
  const unknown = fc.constantFrom<"count" | "error" | "ignore">("count", "count", "ignore", "error");
  const absent = fc.constantFrom<"error" | "null">("error", "null", "null");
  const memoryLimit = fc.oneof(fc.constant(1 << 30), fc.nat(2000));
  const documents = fc.array(members, { maxLength: 12 });
  fc.assert(
    fc.property(documents, fc.record({ schema, mismatch, unknown, absent, memoryLimit }), (all, options) => {
      same(Buffer.concat(all.map(document)), options);
    }),
    { numRuns: 1000 },
  );
});

test("any documents with inferred columns agree with bson.decode", () => {
  fc.assert(
    fc.property(fc.array(members, { maxLength: 12 }), (all) => {
      const input = Buffer.concat(all.map(document));
      const found = same(input, { unknown: "count" });
      const documents = bson.decodeAll(input);
      assert.equal(found.length, documents.length);
      if (all.some((members) => new Set(members.map(([key]) => key)).size < members.length)) return;
      for (const column of found.columns) {
        // Text of other types is compared only with the native part.
        if (!["int", "bool", "string", "objectId", "date", "binData", "timestamp", "decimal"].includes(column.kind))
          continue;
        const values = documents.map((document) =>
          Object.getOwnPropertyDescriptor(document, column.name)?.value === undefined
            ? null
            : Object.getOwnPropertyDescriptor(document, column.name)?.value,
        );
        const plain = values.map((value) => (value instanceof ms.Code ? value.code : value));
        const texts = plain.map((value) => (value instanceof ms.BsonSymbol ? value.symbol : value));
        assert.deepEqual(column.toArray(), texts, column.name);
      }
    }),
    { numRuns: 500 },
  );
});

test("any bytes are columns or an error with a position, in both implementations", () => {
  const samples = vectors.map(([, hex]) => Buffer.from(hex, "hex"));
  const change = fc.tuple(fc.nat(200), fc.nat(255));
  fc.assert(
    fc.property(fc.constantFrom(...samples), fc.array(change), fc.option(schema), (sample, changes, schema) => {
      const input = Buffer.concat([sample, sample]);
      for (const [at, byte] of changes) if (at < input.length) input[at] = byte;
      const found = same(input, schema === null ? {} : { schema });
      if (found.kind !== undefined && found.kind !== "invalid_option") assert((found.offset ?? 0) <= input.length);
    }),
    { numRuns: 2000 },
  );
});

test("columns are typed arrays, and create objects on request", () => {
  const rows = Array.from({ length: 1000 }, (_, i) =>
    document([
      ["id", long(2n ** 40n + BigInt(i))],
      ["name", text(`näme ${i}`)],
      ["score", double(i / 4)],
      ["tags", array(Array.from({ length: i % 3 }, (_, j) => text(`t${j}`)))],
      ["active", i % 5 === 0 ? NULL : bool(i % 2 === 0)],
      ["created", date(1_500_000_000_000n + BigInt(i))],
      [
        "at",
        object([
          ["x", int(i)],
          ["y", int(-i)],
        ]),
      ],
    ]),
  );
  for (const useNative of native.available ? [false, true] : [false]) {
    const columns = bson.columns(Buffer.concat(rows), { native: useNative });
    assert.equal(columns.length, 1000);
    assert.deepEqual(
      [...columns].map(({ name, kind }) => `${name} ${kind}`),
      ["id long", "name string", "score double", "tags list", "active bool", "created date", "at struct"],
    );
    const ids = columns.column("id", "long");
    assert.equal(ids.values[999], 2n ** 40n + 999n);
    assert.equal(ids.toNumbers()[999], 2 ** 40 + 999);
    assert.equal(ids.get(1), 2 ** 40 + 1);
    assert.equal(
      columns.column("score", "double").values.reduce((a, b) => a + b),
      (999 * 1000) / 8,
    );
    const names = columns.column("name", "string");
    assert.equal(names.get(5), "näme 5");
    assert.deepEqual(names.texts(), names.toArray());
    assert.deepEqual(columns.column("tags").get(5), ["t0", "t1"]);
    assert.deepEqual(columns.column("active").toArray().slice(0, 3), [null, false, true]);
    assert.deepEqual(columns.column("created").get(2), new Date(1_500_000_000_002));
    assert.deepEqual(columns.column("at").get(3), { x: 3, y: -3 });
    assert.throws(() => columns.column("id", "int"), { kind: "argument_invalid" });
    assert.throws(() => columns.column("other"), { kind: "argument_invalid" });
    assert.throws(() => ids.get(1000), RangeError);
    // The columns own the memory, so it can be transferred to another thread.
    structuredClone(ids.values, { transfer: [ids.values.buffer] });
    assert.equal(columns.column("score", "double").values.length, 1000);
    // Inferred columns can be used as a schema.
    assert.deepEqual(bson.columns(rows[3], { schema: columns.schema, native: useNative }).schema, columns.schema);
  }
});

test("numbers of 64 bits as numbers: rounded once", () => {
  const values = [0n, -1n, 2n ** 32n, -(2n ** 32n) - 1n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)];
  const input = Buffer.concat(
    values.map((value) =>
      document([
        ["n", long(value)],
        ["t", [0x11, long(value)[1]]],
      ]),
    ),
  );
  const columns = bson.columns(input, { schema: { n: "long", t: "timestamp" } });
  assert.deepEqual([...columns.column("n", "long").toNumbers()], values.map(Number));
  assert.deepEqual(
    [...columns.column("t", "timestamp").toNumbers()],
    values.map((value) => Number(BigInt.asUintN(64, value))),
  );
});

test("values at paths only, from documents of any shape", () => {
  const input = Buffer.concat([
    document([
      [
        "a",
        object([
          ["b", int(1)],
          ["c", text("not read")],
        ]),
      ],
      ["x.y", int(4)],
    ]),
    document([["a", array([int(9), object([["b", int(2)]])])]]),
    document([["a", int(3)]]),
  ]);
  const found = same(input, { schema: { "a.b": "int", "a.1.b": "long", '"x.y"': "int" } });
  assert.deepEqual(
    found.columns.map((column: ms.Column) => column.toArray()),
    [
      [1, null, null],
      [null, 2, null],
      [4, null, null],
    ],
  );
  // "c", the 9 in the array, and the number where the path expects a document.
  assert.equal(found.unknown, 3);
});

test("many columns, members in any order, and keys that are invalid text", () => {
  const many = Array.from({ length: 40 }, (_, i): [string, Made] => [`k${i}`, int(i)]);
  const good = document([...many.slice(20), ...many.slice(0, 20), ["k3", int(-1)], ["other", int(1)]]);
  // As the replacement character, this key would be one of the schema.
  const bad = document([["\ufffd", int(1)]]);
  const at = bad.indexOf(0xef);
  const broken = Buffer.concat([bad.subarray(0, at), Buffer.of(0xff), bad.subarray(at + 3)]);
  broken.writeInt32LE(broken.length);
  const schema = {
    ...Object.fromEntries(many.map(([key]): [string, "int"] => [key, "int"])),
    "\ufffd": "int" as const,
  };
  const found = same(Buffer.concat([good, bad, broken]), { schema, unknown: "count" });
  assert.deepEqual(
    found.columns.map((column: ms.Column) => column.get(0)),
    [...many.map((_, i) => i), null],
  );
  assert.deepEqual(found.columns[40].toArray(), [null, 1, null]);
  // "k3" again, "other", and the key that is invalid text.
  assert.equal(found.unknown, 3);
});

test("a value that does not fit is an error with a position, or null and counted", () => {
  const input = Buffer.concat([document([["n", int(1)]]), document([["n", text("two")]]), document([])]);
  const mismatch = thrown(() => bson.columns(input, { schema: { n: "int" } }));
  assert.deepEqual([mismatch.kind, mismatch.record, mismatch.offset], ["shape_mismatch", 1, 19]);
  const counted = same(input, { schema: { n: "int" }, mismatch: "null" });
  assert.deepEqual([counted.mismatched, counted.columns[0].toArray()], [1, [1, null, null]]);
  assert.equal(thrown(() => bson.columns(input, { schema: { n: "json!" } })).kind, "key_missing");
  assert.equal(thrown(() => bson.columns(input, { schema: {}, unknown: "error" })).kind, "shape_mismatch");
  assert.equal(thrown(() => bson.columns(input, { mixed: "error" })).kind, "shape_mismatch");
  assert.equal(thrown(() => bson.columns(input, { memoryLimit: 40 })).kind, "memory_limit");
});

test("invalid schemas and options", () => {
  const refused = (options: unknown) => thrown(() => bson.columns(document([]), options as ColumnsOptions)).kind;
  let deep: ms.ColumnType = "int";
  for (let i = 0; i < 70; i++) deep = [deep];
  const circle: { [key: string]: ms.ColumnType } = {};
  circle.a = circle;
  for (const schema of [
    { a: "text" },
    { a: "int", "a.b": "int" },
    { a: "int", '"a"': "int" },
    { a: deep },
    circle,
    3,
  ]) {
    assert.equal(refused({ schema }), "invalid_option");
  }
  assert.equal(refused({ schema: { a: ["int!"] } }), "invalid_option");
  for (const path of ["", "a.", '"a', '"a"b'])
    assert.equal(refused({ schema: { [path]: "int" } }), "text_invalid", path);
  assert.equal(refused({ memoryLimit: 2 ** 31 }), "invalid_option");
  // WebAssembly would run out of memory before it reached this limit.
  assert.equal(refused({ memoryLimit: 2 ** 30 + 1, native: false }), "invalid_option");
  assert.throws(() => bson.columnBatches(document([]), { memoryLimit: 2 ** 30 + 1, native: false }), /in WebAssembly/);
  assert.equal(bson.columns(document([]), { memoryLimit: 2 ** 30, native: false }).length, 1);
  assert.equal(bson.columns(document([]), { memoryLimit: 2 ** 30 + 1, native: true }).length, 1);
  assert.equal(refused({ mismatch: "skip" }), "invalid_option");
  assert.equal(refused({ unknown: "skip" }), "invalid_option");
  assert.equal(refused({ mixed: "text" }), "invalid_option");
  assert.equal(thrown(() => bson.columns("abc" as never)).kind, "argument_invalid");
});

describe("streams", () => {
  const count = 5000;
  const rows = Array.from({ length: count }, (_, i) =>
    document([
      ["n", int(i)],
      ["text", text("x".repeat(i % 300))],
    ]),
  );
  const all = Buffer.concat(rows);
  const directory = mkdtempSync(join(tmpdir(), "millstream-columns-"));
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  const [path, packed] = [join(directory, "all.bson"), join(directory, "all.bson.gz")];
  writeFileSync(path, all);
  writeFileSync(packed, gzipSync(all));

  for (const useNative of native.available ? [false, true] : [false]) {
    const name = useNative ? "native" : "WebAssembly";

    test(`${name}: a file, a compressed one, bytes, a reader; in batches`, async () => {
      const sources = [() => path, () => new URL(`file://${packed}`), () => all, () => ms.open(path)];
      for (const source of sources) {
        let next = 0;
        let batches = 0;
        for await (const columns of bson.columnBatches(source(), { batchBytes: 100_000, native: useNative })) {
          assert.equal(columns.firstRecord, next);
          const numbers = columns.column("n", "int").values;
          assert(numbers.every((value, row) => value === next + row));
          assert.equal(columns.column("text", "string").get(0), "x".repeat(next % 300));
          next += columns.length;
          batches++;
        }
        assert.equal(next, count);
        assert(batches > 7);
      }
    });

    test(`${name}: an error after the rows before it`, async () => {
      const bad = Buffer.concat([all, document([["n", text("no number")]]), rows[0]]);
      for (const input of [
        bad,
        Buffer.concat([all, rows[9].subarray(0, -1)]),
        Buffer.concat([all, Buffer.of(3, 0, 0, 0)]),
      ]) {
        let seen = 0;
        const run = async () => {
          for await (const columns of bson.columnBatches(input, { infer: 1000, native: useNative }))
            seen += columns.length;
        };
        const error = await run().then(
          () => assert.fail("no error was reported"),
          (error) => error,
        );
        assert(error instanceof ms.MillstreamError);
        assert.deepEqual([seen, error.record], [count, count], String(error));
        assert(error.offset !== undefined && error.offset >= all.length);
      }
    });

    test(`${name}: a stream without documents`, async () => {
      for await (const _ of bson.columnBatches(new Uint8Array(0), { native: useNative })) assert.fail("a batch");
      assert.equal(bson.columns(new Uint8Array(0), { native: useNative }).length, 0);
    });
  }

  test("an iteration that ends early closes the file, but not a reader that was passed in", async () => {
    const reader = ms.open(path, { framer: bson(), as: "bytes" });
    for await (const _ of bson.columnBatches(reader, { infer: 100, batchBytes: 1000 })) break;
    assert(((await reader.nextBatch())?.length ?? 0) > 0);
    await reader.close();
    for await (const _ of bson.columnBatches(path, { infer: 100, batchBytes: 1000 })) break;
  });

  test("invalid sources", async () => {
    const run = async (source: unknown) => {
      for await (const _ of bson.columnBatches(source as string)) assert.fail("a batch");
    };
    await assert.rejects(run(join(directory, "none")), { kind: "open_failed" });
    await assert.rejects(run(3), { kind: "argument_invalid" });
  });
});

test("memory that other threads can see is copied first", () => {
  const shared = new Uint8Array(new SharedArrayBuffer(12));
  shared.set(document([["n", int(5)]]));
  assert.deepEqual(bson.columns(shared).column("n").toArray(), [5]);
});

/** Parses a schema in the form of the shared vectors. */
function schemaText(fields: readonly ms.Field[]): string {
  const typeText = (type: ms.DataType): string => {
    if (typeof type === "string") return type;
    return "list" in type ? `[${typeText(type.list)}]` : `{${schemaText(type.struct)}}`;
  };
  return fields.map(({ name, type, nullable }) => `${name}: ${typeText(type)}${nullable ? "" : "!"}`).join(", ");
}

test("the shared vectors of schemas", () => {
  for (const [name, hex, expected] of vectorsOf("bson_columns.tsv")) {
    const found = same(Buffer.from(hex, "hex"), { unknown: "count" });
    const text = found.kind === undefined ? schemaText(found.schema) : `error ${found.kind} ${found.offset}`;
    assert.equal(text, expected, name);
  }
});

/** The outcome of a case in the form of `bson_rows.tsv`, without the values that have lost their type. */
function rowsOutcome(hex: string, schema: string, options: string): string {
  const given: ColumnsOptions = {};
  if (schema !== "-") {
    given.schema = Object.fromEntries(schema.split(" ").map((field) => field.split(":") as [string, "int"]));
  }
  for (const option of options.split(" ").filter((option) => option !== "-")) {
    const [key, value] = option.split("=");
    Object.assign(given, { [key]: key === "infer" ? Number(value) : value });
  }
  const found = same(Buffer.from(hex, "hex"), given);
  if (found.kind !== undefined) return `error ${found.kind} ${found.record ?? "-"} ${found.path ?? "-"}`;
  return `${found.length} ${found.unknown} ${found.mismatched}`;
}

test("the shared vectors of rows", () => {
  for (const row of vectorsOf("bson_rows.tsv")) {
    const [name, hex, schema, options, expected] = row;
    const outcome = expected.startsWith("error") ? expected : expected.split(" ").slice(0, 3).join(" ");
    assert.equal(rowsOutcome(hex, schema, options), outcome, name);
  }
});

test("a member that first appears after the sample is an error", async () => {
  const input = Buffer.concat([...Array(10_000).fill(document([["a", int(1)]])), document([["late", int(2)]])]);
  await assert.rejects(async () => {
    for await (const _ of bson.columnBatches(input));
  });
});
