// CSV: the shared vectors, rows and objects, and errors.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import {
  asyncMap,
  type CsvOptions,
  count,
  csv,
  delimiter,
  filter,
  forEach,
  from,
  type MillstreamError,
  map,
  matching,
  open,
  openSplit,
  pipe,
  planSplits,
  type Reader,
  shell,
  Writer,
} from "millstream";
import { cases, failure, pieces, toArray } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
after(() => rmSync(directory, { recursive: true }));

const ESCAPES: { [letter: string]: string } = { n: "\n", r: "\r", t: "\t", "\\": "\\" };

/** Returns the bytes of a text with escape sequences, in Latin-1. */
function unescaped(text: string): string {
  return text.replaceAll(/\\(?:x([0-9a-f]{2})|(.))/g, (_, hex, letter) =>
    hex === undefined ? ESCAPES[letter] : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

function optionsOf(words: string): CsvOptions {
  const options: CsvOptions = {};
  for (const word of words.split(" ")) {
    const [name, value] = word.split("=");
    if (name === "delimiter") options.delimiter = Number.parseInt(value, 16);
    else if (name === "quote" || name === "escape" || name === "comment") {
      options[name] = value === "none" ? null : String.fromCharCode(Number.parseInt(value, 16));
    } else if (name === "ends") options.lineEnd = value as "lf";
    else if (word === "doubled=off") options.doubledQuotes = false;
    else if (word === "stray=literal") options.literalQuotes = true;
    else if (word === "blank=records") options.blankRecords = true;
    else if (word === "mark=content") options.detectMark = false;
    else assert.equal(word, "default");
  }
  return options;
}

for (const [name, words, input, records, end] of cases("csv.tsv")) {
  test(`vector ${name}`, async () => {
    const bytes = Buffer.from(unescaped(input), "latin1");
    const expected = records === "-" ? [] : records.split(" / ").map((row) => row.split(" | ").map(unescaped));
    for (let cut = 0; cut <= bytes.length; cut++) {
      const reader = from(pieces(bytes, [cut]), { framer: csv(optionsOf(words)), as: "bytes" });
      const found: string[][] = [];
      let outcome = "end";
      try {
        for await (const row of reader.rows()) found.push(row.map((field) => Buffer.from(field).toString("latin1")));
      } catch (error) {
        const { kind, offset } = error as MillstreamError;
        outcome = `${kind} at ${offset}`;
      }
      assert.deepEqual([found, outcome], [expected, end], `cut at ${cut}`);
    }
  });
}

const TEXT = '\nid,"the name"\n1,"a, b"\n\n2,"say ""hi"""\n';

test("rows and objects", async () => {
  const path = join(directory, "t.csv");
  writeFileSync(path, TEXT);
  const rows: string[][] = await toArray(open(path, { framer: csv() }).rows());
  assert.deepEqual(rows, [
    ["id", "the name"],
    ["1", "a, b"],
    ["2", 'say "hi"'],
  ]);
  const objects: { [name: string]: string }[] = await toArray(open(path, { framer: csv() }).objects());
  assert.deepEqual(objects, [
    { id: "1", "the name": "a, b" },
    { id: "2", "the name": 'say "hi"' },
  ]);
  const binary = from("größe;b\nü;'2'", { framer: csv({ delimiter: ";", quote: "'" }), as: "bytes" });
  assert.deepEqual(await toArray(binary.objects()), [
    { größe: new Uint8Array(Buffer.from("ü")), b: new Uint8Array(Buffer.from("2")) },
  ]);
  assert.deepEqual(await toArray(from("", { framer: csv() }).objects()), []);
  assert.deepEqual(await toArray(from("a,b\n", { framer: csv() }).objects()), []);
});

test("names that JavaScript's objects have, and equal names", async () => {
  const [object] = await toArray(from("__proto__,constructor,1,a,a\n1,2,3,4,5\n", { framer: csv() }).objects());
  assert.deepEqual(Object.entries(object), [
    ["1", "3"],
    ["__proto__", "1"],
    ["constructor", "2"],
    ["a", "5"],
  ]);
  assert.equal(Object.getPrototypeOf(object), Object.prototype);
});

test("fields of any text, in any chunks", async () => {
  const field = fc.string({
    unit: fc.constantFrom("a", ",", '"', "\n", "\r", " ", "é", "→", "🦀", "\ufeff"),
    maxLength: 8,
  });
  const rows = fc.array(fc.array(field, { minLength: 1, maxLength: 4 }), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(rows, fc.array(fc.nat(200), { maxLength: 8 }), fc.boolean(), async (all, cuts, isStrict) => {
      const text = all.map((row) => row.map((one) => `"${one.replaceAll('"', '""')}"`).join(",")).join("\r\n");
      const chunks = pieces(
        Buffer.from(text),
        cuts.toSorted((a, b) => a - b),
      );
      const reader = from(chunks, { framer: csv(), invalidUtf8: isStrict ? "error" : "replace" });
      assert.deepEqual(await toArray(reader.rows()), all);
    }),
  );
});

test("a loop that ends early is continued by another one, of any kind", async () => {
  const reader = from("id,n\n\n1,a\n# x\n\n2,b\n3,c\n4,d\n", { framer: csv({ comment: "#" }) });
  for await (const { id } of reader.objects()) if (id === "1") break;
  // The two lines that are not records are passed over.
  assert.deepEqual(reader.position, { bytes: 15, records: 5 });
  for await (const row of reader.rows()) {
    assert.deepEqual(row, ["2", "b"]);
    break;
  }
  for await (const record of reader) {
    assert.equal(record, "3,c");
    break;
  }
  assert.deepEqual(await toArray(reader.objects()), [{ id: "4", n: "d" }]);
  assert.deepEqual(reader.position, { bytes: 27, records: 8 });
});

test("the header is the first record, read once", async () => {
  const text = '# x\n\nid,"the name",id\n1,a,b\n2,c,d\n';
  const names = ["id", "the name", "id"];
  for (const as of ["text", "bytes"] as const) {
    const reader = from(text, { framer: csv({ comment: "#" }), as });
    assert.deepEqual(await Promise.all([reader.header(), reader.header()]), [names, names]);
    const field = (value: string) => (as === "text" ? value : new Uint8Array(Buffer.from(value)));
    for await (const object of reader.objects()) {
      assert.deepEqual(object, { id: field("b"), "the name": field("a") });
      break;
    }
    assert.deepEqual(await reader.header(), names);
    assert.deepEqual(await toArray<unknown>(reader.rows()), [["2", "c", "d"].map(field)]);
    assert.deepEqual(await reader.header(), names);
  }
  const objects = from(text, { framer: csv({ comment: "#" }) });
  await objects.objects().next();
  assert.deepEqual(await objects.header(), names);
  assert.deepEqual(await from("", { framer: csv() }).header(), []);

  // It does not wait for the record after the header.
  const command = shell("echo a,b; exec sleep 60", { framer: csv() });
  assert.deepEqual(await command.header(), ["a", "b"]);
  await command.close();
  assert.equal((await failure(from("").header())).kind, "argument_invalid");
  assert.equal((await failure(from('a"\n', { framer: csv() }).header())).kind, "csv_invalid");
});

test("the failure of a command follows the rows", async () => {
  const reader = shell("echo a,b; exit 3", { framer: csv() }).rows();
  assert.deepEqual((await reader.next()).value, ["a", "b"]);
  assert.equal((await failure(reader.next())).kind, "command_failed");
});

test("a record with another number of fields is an error after the earlier records", async () => {
  const reader = from("a,b\n\n1,2\n3\n4,5\n", { framer: csv(), name: "t.csv" });
  const objects = reader.objects();
  assert.deepEqual((await objects.next()).value, { a: "1", b: "2" });
  const error = await failure(objects.next());
  assert.deepEqual(
    [error.kind, error.stream, error.record, error.offset, error.found, error.expected],
    ["field_count_mismatch", "t.csv", 3, 9, "1 field", "2, as in the header"],
  );
  assert.deepEqual(await toArray(objects), []);
  assert.equal(await failure(reader.close()), error);
});

test("rows are checked once the header has been read", async () => {
  const text = "a,b\n1,2\n3\n";
  assert.deepEqual(await toArray(from(text, { framer: csv() }).rows()), [["a", "b"], ["1", "2"], ["3"]]);
  const readers = [
    async (reader: Reader<string>) => reader.header(),
    async (reader: Reader<string>) => {
      for await (const _ of reader.objects()) break;
    },
  ];
  for (const read of readers) {
    const reader = from(text, { framer: csv(), name: "t.csv" });
    await read(reader);
    const error = await failure(toArray(reader.rows()));
    assert.deepEqual(
      [error.kind, error.stream, error.record, error.line, error.found, error.expected],
      ["field_count_mismatch", "t.csv", 2, 3, "1 field", "2, as in the header"],
    );
  }
  // A loop that began before the header was read.
  const reader = from(`x\n${text}`, { framer: csv() });
  const rows = reader.rows();
  assert.deepEqual((await rows.next()).value, ["x"]);
  assert.deepEqual(await reader.header(), ["a", "b"]);
  assert.deepEqual((await rows.next()).value, ["1", "2"]);
  assert.equal((await failure(rows.next())).kind, "field_count_mismatch");
});

test("missing fields are empty if ragged records are padded", async () => {
  const open = () => from("a,b\n1\n1,2\n1,2,3\n", { framer: csv() });
  const objects = open().objects({ ragged: "pad" });
  assert.deepEqual((await objects.next()).value, { a: "1", b: "" });
  assert.deepEqual((await objects.next()).value, { a: "1", b: "2" });
  // No data is dropped.
  const error = await failure(objects.next());
  assert.deepEqual([error.kind, error.found], ["field_count_mismatch", "3 fields"]);
  const reader = open();
  await reader.header();
  const rows = reader.rows({ ragged: "pad" });
  assert.deepEqual((await rows.next()).value, ["1", ""]);
  // Without a header there is nothing to compare with.
  assert.deepEqual((await toArray(open().rows({ ragged: "pad" })))[1], ["1"]);
  const [object] = await toArray(from("a,b\n1\n", { framer: csv(), as: "bytes" }).objects({ ragged: "pad" }));
  assert.deepEqual(object, { a: new Uint8Array([49]), b: new Uint8Array() });
});

test("additional fields are kept if ragged records are collected", async () => {
  const reader = from("a,b\n1\n1,2,3,4\n1,2\n", { framer: csv() });
  assert.throws(() => reader.objects({ ragged: "collect" }), {
    kind: "invalid_option",
    message: /ragged.*collect.*error.*pad/,
  });
  assert.deepEqual(await reader.header(), ["a", "b"]);
  assert.deepEqual(await toArray(reader.rows({ ragged: "collect" })), [
    ["1", ""],
    ["1", "2", "3", "4"],
    ["1", "2"],
  ]);
});

test("bytes that are not UTF-8", async () => {
  const bytes = Buffer.from('a,b\n1,"x\xff"\n2,\xc3\n\xa9,3\n', "latin1");
  assert.deepEqual(await toArray(from(bytes, { framer: csv() }).rows()), [
    ["a", "b"],
    ["1", "x\ufffd"],
    ["2", "\ufffd"],
    ["\ufffd", "3"],
  ]);
  const reader = from(bytes, { framer: csv(), invalidUtf8: "error" }).rows();
  assert.deepEqual((await reader.next()).value, ["a", "b"]);
  const error = await failure(reader.next());
  assert.deepEqual([error.kind, error.record, error.offset], ["utf8_invalid", 1, 6]);
});

test("quotes are followed through records that are longer than a block", async () => {
  const chunk = Buffer.from("x\n\r,".repeat(16 << 10));
  function* chunks() {
    yield 'a,b\n1,"';
    for (let i = 0; i < 20; i++) yield chunk;
    yield '"\n2,3\n4,"';
    for (let i = 0; i < 20; i++) yield chunk;
  }
  const open = (recordLimit: number) => from(chunks(), { framer: csv(), recordLimit });
  const rows: string[][] = [];
  const error = await failure(
    (async () => {
      for await (const row of open(64 << 20).rows()) rows.push(row);
    })(),
  );
  assert.deepEqual([rows.length, rows[1][1].length, rows[2]], [3, 20 * chunk.length, ["2", "3"]]);
  // The position of the quote that is not closed.
  const offset = 'a,b\n1,""\n2,3\n4,'.length + 20 * chunk.length;
  assert.deepEqual([error.kind, error.offset, error.record], ["csv_invalid", offset, 3]);

  // A record beyond the limit is skipped, although it contains line ends.
  const reader = open(1000);
  const short = reader.rows();
  assert.deepEqual((await short.next()).value, ["a", "b"]);
  assert.equal((await failure(short.next())).kind, "record_too_long");
  assert.equal(await reader.skipRecord(), true);
  assert.deepEqual((await short.next()).value, ["2", "3"]);
  assert.equal((await failure(short.next())).kind, "record_too_long");
  // The rest is skipped.
  assert.equal(await reader.skipRecord(), true);
  assert.deepEqual(await toArray(short), []);
});

/** The line and the column of a byte, if every line ends with LF. */
function placeOf(text: string, offset: number): [number, number] {
  const before = Buffer.from(text).subarray(0, offset).toString("latin1").split("\n");
  return [before.length, before.at(-1)!.length + 1];
}

test("errors have the line and the column, also after line feeds in quotes", async () => {
  const records = [
    "a,b\n",
    "c\r\n",
    '"é\ne",f\n',
    '"g\r\n\n"\r\n',
    "\n",
    '"h\r""\n"\n',
    "# comment\n",
    `"${"long\n".repeat(20_000)}"\n`,
  ];
  const bad = ['x"y\n', '"z\n\n"1\n', '1,"\n\nnever closed\n'];
  const some = fc.array(fc.constantFrom(...records), { maxLength: 30 });
  const cuts = fc.array(fc.nat(400), { maxLength: 5 }).map((all) => all.toSorted((a, b) => a - b));
  await fc.assert(
    fc.asyncProperty(some, fc.constantFrom(...bad), cuts, fc.nat(3), fc.nat(5), async (good, end, cuts, way, count) => {
      const text = good.join("") + end;
      const options = { framer: csv({ comment: "#" }), name: "t.csv" } as const;
      const reader = from(pieces(Buffer.from(text), cuts), options);
      const error = await failure(
        (async () => {
          // A loop that ends early gives records back.
          for (let taken = 0; taken < count; taken++) for await (const _ of reader.rows()) break;
          const left = good.length - reader.position.records;
          if (way === 0) while ((await reader.nextBatch()) !== null);
          if (way === 1) for (let skipped = 0; skipped < left; skipped++) await reader.skipRecord();
          await toArray<unknown>(way === 2 ? reader : reader.rows());
        })(),
      );
      assert.deepEqual([error.kind, error.stream, error.record], ["csv_invalid", "t.csv", good.length]);
      assert.deepEqual([error.line, error.column], placeOf(text, error.offset!));
      assert.match(error.message, new RegExp(`, at line ${error.line}, column ${error.column};`));
    }),
    { numRuns: 300 },
  );
});

test("errors of fields have the line and the column", async () => {
  const text = 'a,b\n"1\n\n",2\n\n"3\n4",5,6\n7,8\n';
  const error = await failure(toArray(from(text, { framer: csv() }).objects()));
  assert.deepEqual([error.kind, error.record, error.line, error.column], ["field_count_mismatch", 3, 6, 1]);
  assert.equal(error.offset, text.indexOf('"3'));

  const bytes = Buffer.from('a,b\n"1\n\n",2\n"3\n4","5\nx\xff"\n7,8\n', "latin1");
  const options = { framer: csv(), invalidUtf8: "error" } as const;
  for (const records of [from(bytes, options).rows(), from(bytes, options).objects()]) {
    const invalid = await failure(toArray<unknown>(records));
    assert.deepEqual([invalid.kind, invalid.record, invalid.line, invalid.column], ["utf8_invalid", 2, 6, 4]);
  }
  const invalid = await failure(toArray(from(bytes, options)));
  assert.deepEqual([invalid.kind, invalid.record, invalid.line, invalid.column], ["utf8_invalid", 2, 5, 1]);
});

test("errors of stages and sinks have the line of the record", async () => {
  const text = `a,b\n"1\n\n",2\n${"x,y\n".repeat(3000)}"3\n4",5\nbad,"6\n7"\n"8",9\n`;
  const line = placeOf(text, text.indexOf("bad"))[0];
  const fail = (record: string) => {
    if (record.startsWith("bad")) throw new Error("bad");
    return record;
  };
  const reader = () => from([text.slice(0, 6000), text.slice(6000)], { framer: csv() });
  const begun = reader();
  for await (const _ of begun) break;
  for (const pipeline of [
    pipe(reader(), map(fail), count()),
    pipe(begun, map(fail), count()),
    pipe(
      reader(),
      filter((record) => !record.startsWith("x")),
      asyncMap(async (record) => fail(record), { concurrency: 2 }),
      count(),
    ),
    pipe(matching(reader(), "6"), map(fail), count()),
    pipe(reader(), forEach(fail)),
  ]) {
    const error = await failure(pipeline);
    assert.deepEqual([error.kind, error.record, error.line], ["stage_failed", 3003, line]);
  }
  const refused = pipe(
    reader(),
    map((record) => (record.startsWith("bad") ? 1 : record)),
    Writer.memory(),
  );
  assert.equal((await failure(refused)).line, line);
});

test("a CR ends the lines inside a record if only CR ends records", async () => {
  const error = await failure(toArray(from('a\r"b\rc\n"\rd"\r', { framer: csv({ lineEnd: "cr" }) }).rows()));
  assert.deepEqual([error.kind, error.record, error.line, error.column], ["csv_invalid", 2, 4, 2]);
});

test("the line is unknown after records that are not lines", async () => {
  const reader = from('1;a\n2,"b\n', { framer: csv() });
  for await (const record of reader.records(delimiter(";"))) {
    assert.equal(record, "1");
    break;
  }
  const error = await failure(toArray(reader.rows()));
  assert.deepEqual([error.kind, error.line, error.column], ["csv_invalid", undefined, undefined]);
});

test("a record that was too long is counted with its lines", async () => {
  const open = (end: string) => from(`a\n"${"x\n".repeat(50)}"\n${end}`, { framer: csv(), recordLimit: 60 });
  for (const [end, ...place] of [
    ['b"\n', 53, 2],
    ['"b\nb"c\n', 54, 3],
  ] as const) {
    const reader = open(end);
    const rows = reader.rows();
    await rows.next();
    assert.equal((await failure(rows.next())).kind, "record_too_long");
    assert.equal(await reader.skipRecord(), true);
    const error = await failure(rows.next());
    assert.deepEqual([error.kind, error.record, error.line, error.column], ["csv_invalid", 2, ...place]);
  }
});

test("a split knows its rows and the lines of its file", async () => {
  const path = join(directory, "split.csv");
  const bad = '"c\n"d\n';
  for (const [good, line] of [
    ["", 2],
    ['"a\nb"\n'.repeat(20), 42],
  ] as const) {
    writeFileSync(path, good + bad);
    const { splits } = await planSplits(path, { framer: csv(), size: 64 });
    assert.deepEqual(
      splits.map((split) => split.rows),
      good === "" ? [undefined] : [11, undefined],
    );
    const error = await failure(toArray(openSplit(splits.at(-1)!).rows()));
    assert.deepEqual([error.kind, error.line, error.offset], ["csv_invalid", line, good.length + 4]);
  }
});

test("a framer in JavaScript has a state, too", async () => {
  const quoted = {
    trim: { head: 0, tail: 1, carriageReturn: false },
    step(input: Uint8Array, scanned: number, eof: boolean, state = 0) {
      let isInside = state === 1;
      for (let at = scanned; at < input.length; at++) {
        if (input[at] === 39) isInside = !isInside;
        else if (input[at] === 10 && !isInside) return { length: at + 1, terminated: true };
      }
      if (eof) return { length: input.length, terminated: false };
      return { scanned: input.length, need: 0, state: Number(isInside) };
    },
  };
  assert.deepEqual(await toArray(from(["a'", "\n", "\n'", "\nb"], { framer: quoted })), ["a'\n\n'", "b"]);
});

test("only readers of CSV have rows, and dialects are checked", () => {
  for (const call of ["rows", "objects"] as const) {
    assert.throws(() => from("")[call](), { name: "TypeError", kind: "argument_invalid", message: /not CSV.*csv\(\)/ });
  }
  assert.throws(() => csv({ delimiter: '"' }), {
    name: "TypeError",
    kind: "invalid_option",
    found: "the byte '\\\"' as the delimiter and as the quote",
  });
  assert.throws(() => csv({ comment: 10 }), { kind: "invalid_option", found: /as the comment prefix/ });
});
