// Columns of CSV, lines and JSON: the shared vectors, values read back by apache-arrow and compared with those of other
// parsers, and errors with their places.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { gzipSync } from "node:zlib";
import {
  type Data,
  DataType,
  type RecordBatch,
  RecordBatchReader,
  type Table,
  tableFromIPC,
  type Vector,
} from "apache-arrow";
import fc from "fast-check";
import {
  bson,
  columns,
  command,
  csv,
  delimiter,
  from,
  jsonLines,
  lineFramer,
  type MillstreamError,
  open,
  openSplit,
  planSplits,
  type RecordColumns,
  type RecordColumnsOptions,
  shell,
} from "millstream";
import { cases, failure, pieces, repository, toArray } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
after(() => rmSync(directory, { recursive: true }));

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** Columns of CSV in memory. */
const ofText = (text: string, options: RecordColumnsOptions = {}) =>
  columns(bytesOf(text), { format: "csv", ...options });

/** The rows as objects; 64-bit integers as numbers. */
async function rowsOf(of: RecordColumns): Promise<unknown[]> {
  return plain(await tableFromIPC(of));
}

function plain(table: Table | RecordBatch): unknown[] {
  const text = JSON.stringify(table.toArray(), (_, value) => (typeof value === "bigint" ? Number(value) : value));
  return JSON.parse(text);
}

async function collect(of: RecordColumns, parts: Uint8Array[]): Promise<void> {
  for await (const part of of) parts.push(part);
}

/** The rows before an error, and the error. */
async function untilError(of: RecordColumns): Promise<{ rows: unknown[]; error: MillstreamError }> {
  const parts: Uint8Array[] = [];
  const error = await failure(collect(of, parts));
  const rows: unknown[] = [];
  for (const batch of RecordBatchReader.from(parts)) rows.push(...plain(batch));
  return { rows, error };
}

const placeOf = ({ kind, record, line, column, offset, path }: MillstreamError) => ({
  kind,
  record,
  line,
  column,
  offset,
  path,
});

// ---- vectors ----

const ESCAPES: { [letter: string]: string } = { n: "\n", r: "\r", t: "\t", "\\": "\\" };

/** Returns the bytes of a text with escape sequences. */
function unescaped(text: string): Buffer {
  const pieces = text.match(/\\x..|\\.|[^\\]+/g) ?? [];
  return Buffer.concat(
    pieces.map((piece) =>
      piece.startsWith("\\x")
        ? Buffer.from(piece.slice(2), "hex")
        : Buffer.from(piece.startsWith("\\") ? ESCAPES[piece[1]] : piece),
    ),
  );
}

function optionsOf(words: string): RecordColumnsOptions {
  const options: RecordColumnsOptions = {};
  const nulls: string[] = [];
  for (const word of words.split(" ")) {
    const [name, value = ""] = word.split("=");
    if (name === "decimals") options.decimals = true;
    else if (name === "special") options.specialNumbers = true;
    else if (name === "first") options.infer = Number(value);
    else if (name === "null") nulls.push(value);
    else if (name === "type") options.schema = { value: value.replaceAll("_", " ") };
    else assert.equal(word, "default");
  }
  return { ...options, nulls };
}

/** The type as apache-arrow prints it. */
function arrowName(type: string): string {
  const [, base, inside = ""] = /^([a-z0-9]+)(?:[[(](.*)[\])])?$/.exec(type) ?? [];
  const [first, second] = inside.split(", ");
  switch (base) {
    case "bool":
    case "binary":
    case "null":
      return base[0].toUpperCase() + base.slice(1);
    case "string":
      return "Utf8";
    case "date32":
      return "Date32<DAY>";
    case "decimal128":
      return `Decimal[${first}e${second === "0" ? "" : "+"}${second}]`;
    case "time64":
      return `Time64<${UNITS[first].name}>`;
    case "timestamp":
      return `Timestamp<${UNITS[first].name}${second === undefined ? "" : `, ${second}`}>`;
    default:
      return base.replace("uint", "Uint").replace(/^[if]/, (letter) => letter.toUpperCase());
  }
}

const UNITS: { [unit: string]: { name: string; digits: number } } = {
  s: { name: "SECOND", digits: 0 },
  ms: { name: "MILLISECOND", digits: 3 },
  us: { name: "MICROSECOND", digits: 6 },
  ns: { name: "NANOSECOND", digits: 9 },
};

/** The stored form of a value as the vectors print it: a number or `bigint`, text, or hexadecimal digits. */
function stored(type: string, text: string): unknown {
  if (text === "null") return null;
  if (type === "bool") return text === "true";
  if (type.startsWith("float")) return type === "float32" ? Math.fround(numberOf(text)) : numberOf(text);
  if (/^u?int/.test(type)) return type.endsWith("64") ? BigInt(text) : Number(text);
  if (type.startsWith("decimal")) return BigInt(text.replace(".", ""));
  if (type === "date32") return Date.parse(`${text}T00:00:00Z`) / 86_400_000;
  const unit = /^time.*\[([mun]?s)/.exec(type)?.[1];
  if (unit === undefined) return text;
  const { digits } = UNITS[unit];
  const [, whole, fraction = "", zone = "Z"] = /^(.*?\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-].*)?$/.exec(text) ?? [];
  const seconds = Date.parse(`${type.startsWith("time64") ? "1970-01-01T" : ""}${whole}${zone}`) / 1000;
  return BigInt(seconds) * 10n ** BigInt(digits) + BigInt(fraction.padEnd(digits, "0").slice(0, digits) || "0");
}

const numberOf = (text: string) => Number(text.replace("inf", "Infinity"));

/** The stored values of a column. */
function valuesOf(column: Vector): unknown[] {
  return column.data.flatMap((data: Data) =>
    Array.from({ length: data.length }, (_, row) => {
      if (DataType.isNull(data.type) || !data.getValid(row)) return null;
      if (DataType.isDecimal(data.type)) {
        const words = Array.from(data.values.subarray(4 * row, 4 * row + 4) as Uint32Array, BigInt);
        return BigInt.asIntN(
          128,
          words.reduceRight((high, low) => (high << 32n) | low, 0n),
        );
      }
      if (DataType.isUtf8(data.type) || DataType.isBinary(data.type)) {
        const content = Buffer.from(data.values.subarray(data.valueOffsets[row], data.valueOffsets[row + 1]));
        return content.toString(DataType.isUtf8(data.type) ? "utf8" : "hex");
      }
      if (DataType.isBool(data.type))
        return ((data.values[(data.offset + row) >> 3] >> ((data.offset + row) & 7)) & 1) === 1;
      return data.values[row];
    }),
  );
}

describe("vectors", () => {
  for (const [name, words, fields, type, values, end] of cases("infer.tsv")) {
    test(name, async () => {
      const parts = (text: string) => (text === "-" && name !== "only_a_minus" ? [] : text.split(" | ").map(unescaped));
      // The second field keeps lines with an empty field from being blank.
      const lines = parts(fields).map((field) => Buffer.concat([field, Buffer.from(",\n")]));
      const all = Buffer.concat([Buffer.from("value,end\n"), ...lines]);
      const of = columns(all, { format: "csv", ...optionsOf(words) });
      assert.equal((await of.fields())[0].type, type);
      const received: Uint8Array[] = [];
      const error = await failure(collect(of, received)).catch(() => undefined);
      const found: unknown[] = [];
      for (const batch of RecordBatchReader.from(received)) {
        const column = batch.getChild("value")!;
        assert.equal(String(column.type), arrowName(type));
        found.push(...valuesOf(column));
      }
      assert.equal(error?.kind ?? "end", end);
      const expected = parts(values).map(String);
      assert.deepEqual(
        found,
        expected.map((text) => stored(type, text)),
      );
      assert.equal(of.rows, expected.length);
    });
  }
});

// ---- values ----

const LINES = '{"id": 1, "tags": ["a", null], "at": {"x": 1.5}}\n{"id": 2, "at": {"x": -2}, "new": true}\n';
const ROWS = [
  { id: 1, tags: ["a", null], at: { x: 1.5 }, new: null },
  { id: 2, tags: null, at: { x: -2 }, new: true },
];

test("every kind of source", async () => {
  const text = 'name,age\n"Ann, B.",41\nBob,17\n';
  const rows = [
    { name: "Ann, B.", age: 41 },
    { name: "Bob", age: 17 },
  ];
  const path = join(directory, "people.csv");
  writeFileSync(path, text);
  writeFileSync(`${path}.gz`, gzipSync(text));
  const format = "csv";
  for (const of of [
    columns(path),
    columns(`${path}.gz`),
    columns(new URL(`file://${path}`)),
    columns(bytesOf(text), { format }),
    columns(bytesOf(text).buffer as ArrayBuffer, { format }),
    columns(gzipSync(text), { format }),
    columns(pieces(bytesOf(text), [3, 10, 11]), { format }),
    columns(new Blob([text]), { format }),
    columns(new Blob([text]).stream(), { format }),
    columns(new Response(text), { format }),
    columns(from(text), { format }),
    columns(from(text, { framer: csv() })),
    columns(open(path), { format }),
    columns(open(path, { framer: csv(), as: "bytes" })),
    columns(command("cat", [path]), { format }),
    columns(shell("cat", { input: text }), { format }),
    columns(command("cat", [], { input: pieces(bytesOf(text), [9]) }), { format }),
  ]) {
    assert.deepEqual(await rowsOf(of), rows, of.name);
    assert.deepEqual([of.rows, of.rejected, of.rejects], [2, 0, []]);
  }
});

test("formats", async () => {
  for (const [name, content, rows] of [
    ["a.TSV", "x\ty\n1\t2\n", [{ x: 1, y: 2 }]],
    ["b.txt", "one\n\ntwo", [{ line: "one" }, { line: "" }, { line: "two" }]],
    ["c.jsonl", LINES, ROWS],
    ["d.ndjson", LINES, ROWS],
    ["e.json", `[${LINES.replace("}\n{", "},{")}]`, ROWS],
  ] as const) {
    const path = join(directory, name);
    writeFileSync(path, content);
    assert.deepEqual(await rowsOf(columns(path)), rows, name);
    for (const end of ["gz", "zst", "xz", "bgz"]) {
      assert.equal((await failure(rowsOf(columns(`${path}.${end}`)))).kind, "open_failed");
    }
  }
  const document = `{"items": [${LINES.replace("}\n{", "},{")}]}`;
  writeFileSync(join(directory, "f.json"), document);
  const items = () => open(join(directory, "f.json"), { jsonElements: "/items" });
  assert.deepEqual(await rowsOf(columns(items())), ROWS);
  assert.deepEqual(await rowsOf(columns(items(), { format: "json" })), ROWS);
  const array = document.slice(10, -1);
  assert.deepEqual(await rowsOf(columns(bytesOf(array), { format: "json" })), ROWS);
  assert.deepEqual(await rowsOf(columns(pieces(bytesOf(array), [1, 30]), { format: "json" })), ROWS);
  assert.deepEqual(await rowsOf(columns(from(LINES), { format: "jsonl" })), ROWS);
  assert.deepEqual(await rowsOf(columns(from(LINES, { framer: jsonLines() }))), ROWS);
  assert.deepEqual(await rowsOf(columns(from("a\nb"), { format: lineFramer() })), [{ line: "a" }, { line: "b" }]);
  const semicolons = csv({ delimiter: ";", quote: "'", comment: "#", lineEnd: "lf" });
  assert.deepEqual(await rowsOf(columns(from("a;b\n#\n1;'x;'\n"), { format: semicolons })), [{ a: 1, b: "x;" }]);
});

test("types are inferred from all records", async () => {
  const late = (value: string) => `n\n${"1\n".repeat(20_000)}${value}\n`;
  const path = join(directory, "late.csv");
  for (const [value, type] of [
    ["2", "int64"],
    ["2.5", "float64"],
    ["x", "string"],
  ]) {
    const text = late(value);
    writeFileSync(path, text);
    writeFileSync(`${path}.gz`, gzipSync(text));
    const bytes = [bytesOf(text), gzipSync(text)];
    for (const source of [path, `${path}.gz`, ...bytes, open(path), open(path, { framer: csv(), as: "bytes" })]) {
      const of = columns(source, { format: "csv", infer: "all" });
      assert.deepEqual(await of.fields(), [{ name: "n", type }]);
      assert.equal((await rowsOf(of)).length, 20_001);
    }
  }
  const document = join(directory, "late.json");
  writeFileSync(document, `[${'{"a": 1}, '.repeat(20_000)}{"b": true}]`);
  const fields = [
    { name: "a", type: "int64" },
    { name: "b", type: "bool" },
  ];
  assert.deepEqual(await columns(document, { infer: "all" }).fields(), fields);
  const used = open(path, { framer: csv() });
  await used.nextBatch();
  for (const [source, what] of [
    [command("cat", [path]), "a command"],
    [from(late("2")), "a pipe"],
    [pieces(bytesOf(late("2")), [9]), "a pipe"],
    [used, "a pipe"],
  ] as const) {
    const error = await failure(rowsOf(columns(source, { format: "csv", infer: "all" })));
    assert.equal(error.kind, "invalid_option");
    assert.match(
      error.message,
      new RegExp(`types from all records of ${what}, which .* infer from a number of records`),
    );
  }
  const missing = await failure(rowsOf(columns(join(directory, "none.csv"), { infer: "all" })));
  assert.equal(missing.kind, "open_failed");
  // Closing ends the second reading.
  const closed = columns(path, { infer: "all" });
  await closed.fields();
  await closed.close();
});

test("each option has an effect", async () => {
  const typesOf = async (text: string, options: RecordColumnsOptions) =>
    (await ofText(text, options).fields()).map(
      ({ name, type, nullable = true }) => `${name}:${type}${nullable ? "" : "!"}`,
    );
  assert.deepEqual(await typesOf("a,b\n1,x\n", {}), ["a:int64", "b:string"]);
  assert.deepEqual(await typesOf("1,x\n", { header: false }), ["0:int64", "1:string"]);
  assert.deepEqual(await typesOf("a\n1\n", { infer: "off" }), ["a:string"]);
  assert.deepEqual(await typesOf("a\n1\n2.5\n", { infer: 1 }), ["a:int64"]);
  assert.deepEqual(await typesOf("a\n1\nNA\n €,\n2\n", { nulls: ["NA", " €,"], format: "tsv" }), ["a:int64"]);
  assert.deepEqual(await typesOf("a\nNaN\n", { specialNumbers: true }), ["a:float64"]);
  assert.deepEqual(await typesOf("a\n2.5\n", { decimals: true }), ["a:decimal128(38, 1)"]);
  assert.deepEqual(await typesOf("b,a\n1,2\n", { schema: { a: "int8!" } }), ["a:int8!"]);
  assert.deepEqual(await rowsOf(ofText("a,b\n1\n2,3\n", { ragged: "pad" })), [
    { a: 1, b: null },
    { a: 2, b: 3 },
  ]);
  for (const duplicates of ["first", "last"] as const) {
    const of = ofText('{"a": 1, "a": 2}\n', { format: "jsonl", duplicates });
    assert.deepEqual(await rowsOf(of), [{ a: duplicates === "first" ? 1 : 2 }]);
  }
  const nested = { at: { x: "float64" }, tags: ["string!"] } as const;
  const of = ofText(LINES.replace(", null", ""), { format: "jsonl", schema: nested });
  const fields = [
    { name: "at", type: "struct", fields: [{ name: "x", type: "float64" }] },
    { name: "tags", type: "list", item: { type: "string", nullable: false } },
  ];
  assert.deepEqual(await of.fields(), fields);
  const rows = [
    { at: { x: 1.5 }, tags: ["a"] },
    { at: { x: -2 }, tags: null },
  ];
  assert.deepEqual(await rowsOf(of), rows);
  for (const schema of [fields, JSON.stringify({ fields })]) {
    assert.deepEqual(await rowsOf(ofText(LINES.replace(", null", ""), { format: "jsonl", schema })), rows);
  }
});

test("tables of any content, cut anywhere, equal those of another parser", async () => {
  const field = fc.oneof(
    fc.integer({ min: -1000, max: 1000 }).map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.string({ unit: fc.constantFrom("a", ",", '"', "\n", "\r", " ", "é", "0", ".") }),
  );
  const table = fc
    .integer({ min: 1, max: 4 })
    .chain((width) => fc.array(fc.array(field, { minLength: width, maxLength: width })));
  await fc.assert(
    fc.asyncProperty(table, fc.array(fc.nat(200)), fc.integer({ min: 1, max: 3 }), async (rows, cuts, threads) => {
      const width = rows[0]?.length ?? 1;
      const names = Array.from({ length: width }, (_, index) => `c${index}`);
      const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
      const bytes = bytesOf([names, ...rows].map((row) => `${row.map(quoted).join(",")}\n`).join(""));
      const options = { format: "csv", threads, infer: "off" } as const;
      const expected = rows.map((row) => Object.fromEntries(row.map((text, index) => [names[index], text])));
      for (const source of [
        bytes,
        pieces(
          bytes,
          cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b),
        ),
      ]) {
        assert.deepEqual(await rowsOf(columns(source, options)), expected);
      }
      // Numbers have the value that JavaScript finds, and all other columns are text.
      const typed = await tableFromIPC(columns(bytes, { ...options, infer: 10_000 }));
      for (const [index, name] of names.entries()) {
        const column = typed.getChild(name)!;
        const texts = rows.map((row) => row[index]);
        const [isText, isFloat] = [DataType.isUtf8(column.type), DataType.isFloat(column.type)];
        const parse = (text: string) => (isText ? text : isFloat ? Number(text) : BigInt(text));
        assert.deepEqual(valuesOf(column), texts.map(parse));
      }
    }),
  );
});

test("JSON lines equal those of JSON.parse", async () => {
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.string(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie("value")),
      fc.dictionary(fc.string(), tie("value")),
    ),
  })).value;
  // Values of a column that have different types are the text of their JSON.
  await fc.assert(
    fc.asyncProperty(fc.array(fc.dictionary(fc.constantFrom("a", "b", "__proto__", "é"), value)), async (objects) => {
      const text = objects.map((object) => `${JSON.stringify(object)}\n`).join("");
      const table = await tableFromIPC(columns(bytesOf(text), { format: "jsonl", infer: "off" }));
      assert.equal(table.numRows, objects.length);
      for (const { name } of table.schema.fields) {
        const parsed = objects.map((object) => JSON.parse(JSON.stringify(object)));
        const expected = parsed.map((object) => (Object.hasOwn(object, name) ? object[name] : null));
        const found = Array.from(table.getChild(name)!, (cell) => (cell === null ? null : JSON.parse(cell as string)));
        assert.deepEqual(found, expected);
      }
    }),
  );
});

test("several batches, on several threads", async () => {
  const count = 200_000;
  const path = join(directory, "many.csv");
  writeFileSync(path, `n,text\n${Array.from({ length: count }, (_, n) => `${n},text ${n}\n`).join("")}`);
  for (const threads of [1, 2, undefined]) {
    for (const source of [path, open(path), command("cat", [path])]) {
      const of = columns(source, { format: "csv", threads });
      let parts = 0;
      let next = 0n;
      const counted = (async function* () {
        for await (const part of of) {
          parts++;
          yield part;
        }
      })();
      for await (const batch of await RecordBatchReader.from(counted)) {
        assert.equal(batch.getChild("text")!.get(0), `text ${next}`);
        for (const n of valuesOf(batch.getChild("n")!)) assert.equal(n, next++);
      }
      assert.equal(next, BigInt(count));
      assert.deepEqual([of.rows, parts > 4], [count, true]);
    }
  }
});

// ---- errors ----

test("errors have places", async () => {
  const at = async (text: string, options: RecordColumnsOptions = {}) =>
    placeOf((await untilError(ofText(text, options))).error);
  const place = (kind: string, record: number, line: number, column: number, offset: number, path?: string) => ({
    kind,
    record,
    line,
    column,
    offset,
    path,
  });
  const first = { infer: 1 };
  assert.deepEqual(await at("a,b\n1,2\n3,x\n", first), place("shape_mismatch", 2, 3, 3, 10, "b"));
  assert.deepEqual(await at('a,b\n"1",2\n"x\n",y\n', first), place("shape_mismatch", 2, 3, 1, 10, "a"));
  assert.deepEqual(await at("a,b\n\n1,2\n3\n"), place("field_count_mismatch", 3, 4, 1, 9));
  assert.deepEqual(await at('a\n1\n"2\n3"4\n'), place("csv_invalid", 2, 4, 3, 9));
  assert.deepEqual(
    await at('{"a": 1}\n{"a": "x"}\n', { format: "jsonl", ...first }),
    place("shape_mismatch", 1, 2, 7, 15, "a"),
  );
  assert.deepEqual(await at('{"a": 1}\n{"a" 2}\n', { format: "jsonl" }), place("json_invalid", 1, 2, 6, 14));
  // The offset of an element in its document is not known.
  const element = {
    kind: "shape_mismatch",
    record: 1,
    line: undefined,
    column: undefined,
    offset: undefined,
    path: "a",
  };
  assert.deepEqual(await at('[{"a": 1},  {"a": "x"}]', { format: "json", ...first }), element);
  const { kind, offset } = await at('[{"a": 1},  {"a": 2} x]', { format: "json" });
  assert.deepEqual([kind, offset], ["json_invalid", 21]);
  const { rows, error } = await untilError(ofText('[{"a": 1}, {"a": 2', { format: "json" }));
  assert.deepEqual([error.kind, rows], ["document_truncated", [{ a: 1 }]]);

  const misfit = await untilError(ofText("a\n1\n2\nx\n4\n", first));
  assert.deepEqual(misfit.rows, [{ a: 1 }, { a: 2 }]);
  assert.match(
    misfit.error.message,
    /^memory: shape mismatch: found "x", expected int64.*set onBad to "skip".*, in a, at line 4, column 1;/,
  );
  assert.equal((await failure(rowsOf(columns(join(directory, "none.csv"))))).message.includes("at byte"), false);
  assert.equal((await failure(rowsOf(ofText("a,a\n")))).kind, "shape_mismatch");
  assert.equal((await failure(ofText("a\n1\n", { schema: { b: "int64" } }).fields())).kind, "key_missing");
});

test("a reader continues after its position, also in errors", async () => {
  for (const source of [from, (text: string) => command("printf", ["%s", text])]) {
    const reader = source("# a\n# b\na,b\n1,2\n\n3,x\n");
    for await (const line of reader) if (line === "# b") break;
    const { rows, error } = await untilError(columns(reader, { format: "csv", infer: 1 }));
    assert.deepEqual(rows, [{ a: 1, b: 2 }]);
    assert.deepEqual(placeOf(error), { kind: "shape_mismatch", record: 5, line: 6, column: 3, offset: 19, path: "b" });
  }
  // After records of several lines.
  const rows = from('"a\n",b\n1,2\n3,x\n', { framer: csv() });
  for await (const _ of rows.rows()) break;
  const options = { header: false, infer: 1 } as const;
  const { error } = await untilError(columns(rows, options));
  assert.deepEqual(placeOf(error), { kind: "shape_mismatch", record: 2, line: 4, column: 3, offset: 13, path: "1" });
  // After records that are no lines.
  const pairs = from("x;a,b\n1,2\n3,x\n", { framer: delimiter(";") });
  for await (const _ of pairs) break;
  const after = (await untilError(columns(pairs, { format: "csv", infer: 1 }))).error;
  assert.deepEqual([after.line, after.column, after.offset], [undefined, undefined, 12]);
  // Elements.
  const elements = open(join(directory, "f.json"), { jsonElements: "/items" });
  for await (const _ of elements) break;
  assert.deepEqual(await rowsOf(columns(elements)), [{ id: 2, at: { x: -2 }, new: true }]);
});

test("splits", async () => {
  const path = join(directory, "split.csv");
  const lines = Array.from({ length: 1000 }, (_, n) => (n === 999 ? "x,y\n" : `${n},"a\nb"\n`));
  writeFileSync(path, lines.join(""));
  const plan = await planSplits(path, { framer: csv(), size: 4096 });
  assert(plan.splits.length > 2);
  const tables = plan.splits.map((split) => columns(openSplit(split), { header: false, infer: 1 }));
  const last = tables.pop()!;
  for (const table of tables) await rowsOf(table);
  const { kind, record, line, column, offset } = await failure(rowsOf(last));
  assert.deepEqual([kind, offset, column], ["shape_mismatch", lines.slice(0, 999).join("").length, 1]);
  assert.deepEqual([record, line], [999, 1999]);
  assert.equal(
    [...tables, last].reduce((sum, { rows }) => sum + rows, 0),
    999,
  );
});

test("bad records are left out", async () => {
  const text = 'a,b\n1,2\nx,3\n4\n"5"6,7\n8,9\n';
  for (const source of [bytesOf(text), pieces(bytesOf(text), [9]), command("printf", ["%s", text])]) {
    const of = columns(source, { format: "csv", infer: 1, onBad: "skip" });
    assert.deepEqual(await rowsOf(of), [
      { a: 1, b: 2 },
      { a: 8, b: 9 },
    ]);
    assert.deepEqual([of.rows, of.rejected], [2, 3]);
    const found = of.rejects.map(({ error, raw }) => [error.kind, error.line, new TextDecoder().decode(raw)]);
    assert.deepEqual(found, [
      ["shape_mismatch", 3, "x,3"],
      ["field_count_mismatch", 4, "4"],
      ["csv_invalid", 5, '"5"6,7'],
    ]);
    assert.equal(of.rejects[0].error.stream, of.name);
  }
  const of = ofText(`a\n1\n${"x\n".repeat(1500)}2\n`, { infer: 1, onBad: "skip" });
  assert.equal((await rowsOf(of)).length, 2);
  assert.deepEqual([of.rejected, of.rejects.length], [1500, 1000]);
  assert.equal(of.rejects.at(-1)!.error.line, 1002);
});

test("limits of the reader", async () => {
  const text = `a\n1\n${"2".repeat(100)}\n3\n`;
  for (const reader of [
    () => from(text, { recordLimit: 10 }),
    () => command("printf", ["%s", text], { recordLimit: 10 }),
  ]) {
    const { error } = await untilError(columns(reader(), { format: "csv" }));
    assert.deepEqual([error.kind, error.record, error.offset], ["record_too_long", 2, 4]);
  }
  const short = columns(command("printf", ["%s", text], { recordLimit: 10 }), { format: "csv", onBad: "skip" });
  assert.deepEqual(await rowsOf(short), [{ a: 1 }, { a: 3 }]);
  assert.equal(short.rejected, 1);
  const unlimited = command("printf", ["%s", text], { recordLimit: Number.POSITIVE_INFINITY });
  assert.equal((await rowsOf(columns(unlimited, { format: "csv" }))).length, 3);
  for (const reader of [
    from("a\n1\n2\n", { expectRecords: 4 }),
    command("printf", ["a\n1\n2\n"], { expectRecords: 4 }),
  ]) {
    const { rows, error } = await untilError(columns(reader, { format: "csv" }));
    assert.deepEqual([rows.length, error.kind, error.expected], [2, "content_mismatch", "4 records"]);
  }
  const named = columns(open(join(directory, "none"), { name: "the table" }), { format: "csv" });
  assert.equal(named.name, "the table");
  assert.match((await failure(named.fields())).message, /^the table: open failed/);
});

test("a command that fails, after its rows", async () => {
  const of = columns(shell("printf 'a\\n1\\n2\\n'; echo oh >&2; exit 3"), { format: "csv" });
  const { rows, error } = await untilError(of);
  assert.deepEqual([rows, error.kind, error.command?.status], [[{ a: 1 }, { a: 2 }], "command_failed", 3]);
  assert.match(error.message, /last line of standard error: oh/);
  // It is reported once, and by closing.
  assert.deepEqual(await toArray(of), []);
  assert.equal(await failure(of.close()), error);
  const allowed = columns(shell("printf 'a\\n1\\n'; exit 3", { successStatuses: [3] }), { format: "csv" });
  assert.equal((await rowsOf(allowed)).length, 1);
  assert.equal((await allowed.close())[0].status, 3);
});

test("a source in JavaScript that fails, after its whole rows", async () => {
  const cause = new Error("no");
  for (const last of ["", "3,", '3,"x', '3,"x\ny', '"']) {
    const of = columns(
      (function* () {
        yield `a,b\n1,2\n${last}`;
        throw cause;
      })(),
      { format: "csv", infer: 1 },
    );
    const { rows, error } = await untilError(of);
    assert.deepEqual([rows, error.kind, error.cause], [[{ a: 1, b: 2 }], "io", cause], last);
  }
  const document = columns(
    (async function* () {
      yield '[{"a": 1}, {"a"';
      throw cause;
    })(),
    { format: "json" },
  );
  const { rows, error } = await untilError(document);
  assert.deepEqual([rows, error.cause], [[{ a: 1 }], cause]);
  const response = columns(new Response("a\n", { status: 404 }), { format: "csv" });
  assert.equal((await failure(rowsOf(response))).kind, "open_failed");
});

// ---- closing ----

const endless = () => shell("while printf 'n\\n1\\n2\\n3\\n'; do :; done");

test("closing in the middle", async () => {
  for (const source of [endless, () => from(endlessText())]) {
    const of = columns(source(), { format: "lines" });
    const parts = of[Symbol.asyncIterator]();
    await parts.next();
    await parts.next();
    const [end] = await of.close();
    assert.notEqual(end?.status, 0);
    assert.equal((await failure(parts.next())).kind, "closed");
    assert.equal((await failure(of.fields())).kind, "closed");
    await of.close();
  }
  const waiting = columns(shell("echo a; exec sleep 60"), { format: "lines", threads: 1 });
  const parts = waiting[Symbol.asyncIterator]();
  await parts.next();
  await parts.next();
  assert.equal(waiting.rows, 1);
  const pending = failure(parts.next());
  const [end] = await waiting.close();
  assert.deepEqual([(await pending).kind, end.signal], ["closed", "SIGTERM"]);
});

async function* endlessText(): AsyncGenerator<string> {
  for (;;) yield "1\n2\n3\n".repeat(1000);
}

test("leaving a loop closes the source", async () => {
  let isClosed = false;
  const source = (async function* () {
    try {
      yield* endlessText();
    } finally {
      isClosed = true;
    }
  })();
  const of = columns(source, { format: "lines" });
  for await (const _ of of) break;
  assert(isClosed);
  assert.equal((await failure(toArray(of))).kind, "closed");
  const stopped = columns(endless(), { format: "lines" });
  for await (const _ of stopped) if (stopped.rows > 0) break;
  assert.equal((await stopped.close()).length, 1);
  // Without a read.
  await columns(endless(), { format: "lines" }).close();
  await columns(join(directory, "none.csv")).close();
  await using unread = columns(endless(), { format: "lines" });
  assert.equal(unread.rows, 0);
});

test("a source is not read faster than its columns", async () => {
  let pulled = 0;
  const source = (async function* () {
    for (; pulled < 1000; pulled++) yield `${"x".repeat(1023)}\n`.repeat(1024);
  })();
  const of = columns(source, { format: "lines" });
  for await (const _ of of) if (of.rows > 1024) break;
  assert(pulled < 50, `${pulled} MiB were read`);
});

test("a signal", async () => {
  const controller = new AbortController();
  const of = columns(shell("echo a; echo 1; exec sleep 60", { signal: controller.signal }), {
    format: "csv",
    infer: 1,
  });
  const waiting = failure(toArray(of));
  await of.fields().catch(() => {});
  controller.abort();
  const error = await waiting;
  assert.deepEqual([error.name, error.kind], ["AbortError", "cancelled"]);
  assert.equal((await of.close())[0].signal, "SIGTERM");
  const stopping = new AbortController();
  const passed = from(endlessText(), { signal: stopping.signal });
  const pumped = columns(passed, { format: "lines" });
  for (const parts = pumped[Symbol.asyncIterator](); pumped.rows === 0; ) await parts.next();
  stopping.abort();
  assert.equal((await failure(toArray(pumped))).kind, "cancelled");
  const aborted = columns(command("sleep", ["60"], { signal: AbortSignal.abort() }), { format: "csv" });
  assert.equal((await failure(aborted.fields())).kind, "cancelled");
  assert.equal((await failure(aborted.fields())).kind, "closed");
  await aborted.close();
});

test("columns that are forgotten do not keep the process alive", () => {
  const program = `
    import { columns, command, shell } from ${JSON.stringify(fileURLToPath(new URL("bindings/node/dist/index.js", repository)))};
    const of = columns(shell("while echo 1; do :; done"), { format: "lines" });
    await of[Symbol.asyncIterator]().next();
    columns(command("sleep", ["3"]), { format: "lines" });
    console.log(of.rows);
  `;
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
    timeout: 20_000,
  });
  assert.deepEqual([run.status, run.stdout], [0, "0\n"], run.stderr);
});

test("a thread of JavaScript that is terminated", async () => {
  const program = `
    const { parentPort, workerData } = require("node:worker_threads");
    import(workerData).then(async ({ columns, from, shell }) => {
      const endless = (function* () { for (;;) yield "1\\n".repeat(1000); })();
      columns(shell("exec sleep 60"), { format: "csv" }).fields();
      for (const source of [shell("while echo 1; do :; done"), from(endless)]) {
        (async () => { for await (const part of columns(source, { format: "lines" })) parentPort.postMessage(part.length); })();
      }
    });
  `;
  const workerData = new URL("bindings/node/dist/index.js", repository).href;
  const worker = new Worker(program, { eval: true, workerData });
  for (let count = 0; count < 20; count++) await once(worker, "message");
  assert.equal(await worker.terminate(), 1);
});

// ---- misuse ----

test("wrong arguments", async () => {
  const bytes = bytesOf("a\n");
  const wrong = (call: () => unknown, message: RegExp, kind = "invalid_option") =>
    assert.throws(call, (error: MillstreamError) => {
      assert.match(error.message, message);
      assert.equal(error.kind, kind);
      return error instanceof TypeError;
    });
  const given = (options: object) => () => columns(bytes, { format: "csv", ...options });
  wrong(() => columns(bytes), /a source whose name does not tell its format, expected format: "csv", "tsv"/);
  wrong(() => columns("a.dat"), /does not tell its format/);
  wrong(() => columns(from("a\n")), /a reader of lines/);
  wrong(() => columns(from("a\n", { framer: bson() })), /a reader of lines or other records/);
  wrong(given({ format: bson() }), /a framer of other records/);
  wrong(given({ format: "xml" }), /format: "xml", expected "csv"/);
  wrong(() => columns(from("[]"), { format: "json" }), /a reader with jsonElements/);
  wrong(() => columns(open("a.json", { jsonElements: "" }), { format: "csv" }), /elements of a JSON document/);
  wrong(given({ infer: 0 }), /infer: 0, expected a whole number, 1 or more, "all" or "off"/);
  wrong(given({ onbad: "skip" }), /the option "onbad"/);
  wrong(given({ onBad: "ignore" }), /onBad: "ignore"/);
  wrong(given({ nulls: "NA" }), /nulls: "NA", expected an array of strings/);
  wrong(given({ schema: { a: "int65" } }), /the type "int65" of column "a"/);
  wrong(given({ schema: { a: [] } }), /the type an array of "a"/);
  wrong(given({ schema: { a: { b: null } } }), /the type null of "b"/);
  wrong(() => columns(5 as never, { format: "csv" }), /number/, "argument_invalid");
  assert.throws(given({ schema: "{" }), /json invalid.*a schema such as/);

  const nulls = ofText("{}\n", { nulls: ["NA"], format: "jsonl" });
  assert.equal((await failure(nulls.fields())).kind, "invalid_option");
  const reader = from("a\n1\n");
  await toArray(reader);
  assert.throws(() => columns(reader, { format: "csv" }), /closed: .*found a reader that was read to its end/);
  const closed = open("a.csv");
  await closed.close();
  assert.equal((await failure(rowsOf(columns(closed, { format: "csv" })))).kind, "closed");
  const twice = command("printf", ["a\n1\n"]);
  const of = columns(twice, { format: "csv" });
  assert.throws(() => columns(twice, { format: "csv" }), /closed/);
  assert.equal((await failure(toArray(twice))).kind, "closed");
  assert.deepEqual(await rowsOf(of), [{ a: 1 }]);
});
