/** Tests of numbers in a column of a line: the shared vectors of floating point numbers, and the places of errors. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, column, from, type MillstreamError, map, pipe } from "millstream";
import { cases } from "./twin.js";

/** The numbers of an input up to the first error, as the vectors list them. */
function numbers(input: Uint8Array, separator: string | undefined): string[] {
  const found: string[] = [];
  for (let index = 0; ; index++) {
    try {
      const value = column(input, index, separator);
      found.push(Object.is(value, -0) ? "-0.0" : `${value}`);
    } catch (error) {
      const { kind } = error as MillstreamError;
      return kind === "value_missing" ? found : [...found, kind];
    }
  }
}

test("the numbers of every language", () => {
  const rows = cases("scan.tsv").filter(([, type]) => /^f64(,..)?$/.test(type));
  assert(rows.length > 25);
  for (const [name, type, input, expected = ""] of rows) {
    const code = type.split(",")[1];
    const separator = code === undefined ? undefined : String.fromCharCode(Number.parseInt(code, 16));
    const wanted = expected.split(" ").map((word) => {
      if (word.includes("_") || word === "-0.0") return word;
      return `${word === "inf" ? Infinity : word === "-inf" ? -Infinity : Number(word)}`;
    });
    assert.deepEqual(numbers(Buffer.from(input, "hex"), separator), expected === "" ? [] : wanted, name);
  }
});

function failed(...call: Parameters<typeof column>): MillstreamError {
  try {
    column(...call);
  } catch (error) {
    return error as MillstreamError;
  }
  throw new Error("it has a number");
}

test("a column of a line, and the place of an error in it", async () => {
  assert.equal(column("ann,31,1.75", 2, ","), 1.75);
  assert.equal(column("ann,31\r\n", 1, ","), 31);
  assert.equal(column("  a \t 7", 1), 7);
  const wrong = failed("ä,x7,3", 1, ",");
  assert.deepEqual([wrong.kind, wrong.column, wrong.offset, wrong.found], ["number_invalid", 4, 3, '"x7"']);
  assert.match(wrong.message, /^number invalid: found "x7", expected a number, at column 4; check /);
  assert.equal(failed(Buffer.from("ä,x7,3"), 1, ",").column, 4);
  assert.deepEqual([failed("a,,3", 1, ",").kind, failed("a,3", 2, ",").kind], ["number_invalid", "value_missing"]);
  assert.deepEqual([failed("a,", 1, ",").kind, failed("", 0).kind], ["value_missing", "value_missing"]);
  for (const call of [
    ["1", -1],
    ["1", 0.5],
    ["1", 0, ",,"],
    ["1", 0, "é"],
    [1, 0],
  ] as never[]) {
    assert.equal(failed(...(call as Parameters<typeof column>)).kind, "argument_invalid", call);
  }
  const lines = from("1,2\n1,x\n", { name: "pairs.csv" });
  const sum = pipe(
    lines,
    map((line) => column(line, 1, ",")),
    collect(),
  );
  await assert.rejects(sum, (error: MillstreamError) => {
    assert.deepEqual([error.kind, error.stream, error.line, error.column], ["stage_failed", "pairs.csv", 2, 3]);
    return true;
  });
});
