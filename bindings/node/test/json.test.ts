// JSON: the shared vectors, records as values, and errors.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { from, jsonLines, type MillstreamError, open, openSplit, planSplits, type Reader, shell } from "millstream";
import { cases, failure, pieces, toArray } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
after(() => rmSync(directory, { recursive: true }));

const ESCAPES: { [letter: string]: string } = { n: "\n", r: "\r", t: "\t", "\\": "\\" };

/** Returns the bytes of a text with escape sequences, in Latin-1. */
function unescaped(text: string): string {
  return text.replaceAll(/\\(?:x([0-9a-f]{2})|([[\]])(\d+)\]|(.))/g, (_, hex, bracket, count, letter) => {
    if (bracket !== undefined) return bracket.repeat(Number(count));
    return hex === undefined ? ESCAPES[letter] : String.fromCharCode(Number.parseInt(hex, 16));
  });
}

/** Returns the records that are not blank, and how reading ended. */
async function read(reader: Reader<Uint8Array>, isLines: boolean): Promise<[string[], string]> {
  const found: string[] = [];
  try {
    for await (const record of reader) found.push(Buffer.from(record).toString("latin1"));
    return [found.filter((record) => !isLines || !/^(\xef\xbb\xbf)?[ \t\r\n]*$/.test(record)), "end"];
  } catch (error) {
    const { kind, offset } = error as MillstreamError;
    return [found.filter((record) => !isLines || !/^(\xef\xbb\xbf)?[ \t\r\n]*$/.test(record)), `${kind} at ${offset}`];
  }
}

for (const [name, framing, input, records, end] of cases("json.tsv")) {
  test(`vector ${name}`, async () => {
    const bytes = Buffer.from(unescaped(input), "latin1");
    const expected = [records === "-" ? [] : records.split(" / ").map(unescaped), end];
    if (framing.startsWith("elements ")) {
      const path = join(directory, `${name}.json`);
      writeFileSync(path, bytes);
      const jsonElements = Buffer.from(unescaped(framing.slice(9)), "latin1").toString();
      const reader = open(path, { as: "bytes", jsonElements, decode: "off" });
      assert.deepEqual(await read(reader, false), expected);
      return;
    }
    const framer = jsonLines({ check: framing === "checked" });
    for (let cut = 0; cut <= bytes.length; cut += bytes.length > 2000 ? 9973 : 1) {
      const reader = from(pieces(bytes, [cut]), { framer, as: "bytes" });
      assert.deepEqual(await read(reader, true), expected, `cut at ${cut}`);
    }
  });
}

const VALUES = [{ id: 1, name: "é\u2028🦀" }, [2, null, true], "text", -1.5e300, {}];

test("values of lines and of elements", async () => {
  const text = `\ufeff${VALUES.map((value) => JSON.stringify(value)).join("\r\n\n \n")}`;
  for (const check of [false, true]) {
    assert.deepEqual(await toArray(from(text, { framer: jsonLines({ check }) }).json()), VALUES);
    const chunks = pieces(Buffer.from(text), [3, 20, 21]);
    assert.deepEqual(await toArray(from(chunks, { framer: jsonLines({ check }), as: "bytes" }).json()), VALUES);
  }
  const path = join(directory, "values.json");
  writeFileSync(path, JSON.stringify({ n: 0, items: VALUES }, null, 2));
  assert.deepEqual(await toArray(open(path, { jsonElements: "/items" }).json()), VALUES);
  const elements: string[] = await toArray(open(path, { jsonElements: "/items" }));
  assert.deepEqual(
    elements.map((element) => JSON.parse(element)),
    VALUES,
  );
  const lengths = open(path, { jsonElements: "/items" }).json<number>({ parse: (element) => element.length });
  assert.deepEqual(
    await toArray(lengths),
    elements.map((element) => element.length),
  );
  const failed = shell("echo 1; exit 3", { framer: jsonLines() }).json();
  assert.equal((await failure(toArray(failed))).kind, "command_failed");
});

test("every loop continues after the last value", async () => {
  const reader = from("1\n\n[2]\n3\n4\n", { framer: jsonLines() });
  for await (const value of reader.json()) {
    assert.equal(value, 1);
    break;
  }
  assert.deepEqual(reader.position, { bytes: 3, records: 2 });
  assert.deepEqual((await reader.json().next()).value, [2]);
  assert.deepEqual(await toArray(reader.lines()), ["3", "4"]);
});

test("errors name the place", async () => {
  const reader = from('1\n\n{"é": tru}\n3', { framer: jsonLines(), name: "a.jsonl" });
  const values = reader.json();
  assert.equal((await values.next()).value, 1);
  const error = await failure(values.next());
  assert.deepEqual(
    [error.kind, error.stream, error.record, error.line, error.offset],
    ["json_invalid", "a.jsonl", 2, 3, 3],
  );
  assert.match(error.message, /^a.jsonl: json invalid: expected a value of JSON: .*, at line 3; /);
  assert.ok(error.cause instanceof SyntaxError);
  assert.deepEqual(await values.next(), { done: true, value: undefined });

  const checked = await failure(toArray(from("1\n[1\n2", { framer: jsonLines({ check: true }), name: "c" }).json()));
  assert.deepEqual([checked.kind, checked.record, checked.line, checked.column], ["json_invalid", 1, 2, 3]);
  const deep = from("[[1]]", { framer: jsonLines({ check: true, depth: 1 }) });
  assert.equal((await failure(toArray(deep.json()))).kind, "too_deep");

  const bytes = Buffer.from('1\n"\xff"\n2', "latin1");
  const invalid = from(bytes, { framer: jsonLines() }).json();
  assert.equal((await invalid.next()).value, 1);
  const wrong = await failure(invalid.next());
  assert.deepEqual([wrong.kind, wrong.record], ["utf8_invalid", 1]);
  const replaced = from(bytes, { framer: jsonLines(), invalidUtf8: "replace" }).json();
  assert.deepEqual(await toArray(replaced), [1, "\ufffd", 2]);

  // The offset of an element in its document is not known.
  const path = join(directory, "invalid.json");
  writeFileSync(path, Buffer.from('[1, "\xff", 2]', "latin1"));
  const elements = open(path, { jsonElements: "" }).json();
  assert.equal((await elements.next()).value, 1);
  const element = await failure(elements.next());
  assert.deepEqual([element.kind, element.record, element.offset], ["utf8_invalid", 1, undefined]);
});

test("what does not fit is refused", () => {
  assert.throws(() => from("1").json(), /not JSON/);
  assert.throws(() => jsonLines({ depth: 3 }), /depth for lines that are not checked/);
  assert.throws(() => from("1", { framer: jsonLines() }).json({ parse: 1 as any }), /a function/);
});

test("splits", async () => {
  const path = join(directory, "a.jsonl");
  writeFileSync(path, Array.from({ length: 100 }, (_, n) => `{"n": ${n}}\n`).join(""));
  for (const check of [false, true]) {
    const { splits } = await planSplits(path, { framer: jsonLines({ check }), size: 100 });
    assert.deepEqual(splits[1].framing, { kind: "json_lines", checked: check });
    const found: number[] = [];
    for (const split of splits) for await (const { n } of openSplit(split).json()) found.push(n);
    assert.deepEqual(
      found,
      Array.from({ length: 100 }, (_, n) => n),
    );
  }
  // The depth limit is a part of the plan.
  const flat = join(directory, "flat.jsonl");
  writeFileSync(flat, "[[1]]\n[[[2]]]\n");
  const { splits: limited } = await planSplits(flat, { framer: jsonLines({ check: true, depth: 2 }) });
  assert.deepEqual(limited[0].framing, { kind: "json_lines", checked: true, depth: 2 });
  const values = openSplit(limited[0]).json();
  assert.deepEqual((await values.next()).value, [[1]]);
  const tooDeep = await failure(values.next());
  assert.deepEqual([tooDeep.kind, tooDeep.line], ["too_deep", 2]);
  const document = join(directory, "a.json");
  const numbers = Array.from({ length: 100 }, (_, n) => n);
  writeFileSync(document, JSON.stringify({ n: 1, items: numbers }));
  const { splits } = await planSplits(document, { jsonElements: "/items", size: 50 });
  assert.ok(splits.length > 4);
  const found: number[] = [];
  for (const split of splits) for await (const n of openSplit(JSON.stringify(split)).json()) found.push(n);
  assert.deepEqual(found, numbers);
  await assert.rejects(planSplits(document, { jsonDepth: 3 }), /jsonDepth without jsonElements/);
});
