// Searching whole blocks finds the same records as searching each record.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { collect, from, lengthPrefixed, lineFramer, map, matching, pipe } from "millstream";
import { failure, pieces, repository, toArray } from "./twin.js";

const line = fc.string({ unit: fc.constantFrom("a", "b", "ü", "\r", "→"), maxLength: 6 });
const wanted = fc.string({ unit: fc.constantFrom("a", "b", "ü", "\r", "\n", "→"), maxLength: 3 });
const runs = { numRuns: Number(process.env.MILLSTREAM_CASES ?? 200) };

test("the same records as a search of each record, for any chunks", async () => {
  const cuts = fc.array(fc.nat(60), { maxLength: 4 });
  const property = fc.asyncProperty(
    fc.array(line),
    wanted,
    cuts,
    fc.boolean(),
    async (all, what, at, keepDelimiter) => {
      const bytes = Buffer.from(all.map((text) => `${text}\n`).join(""));
      const source = () =>
        from(
          pieces(
            bytes,
            at.sort((a, b) => a - b),
          ),
          { keepDelimiter },
        );
      const expected = (await toArray(source())).filter((text) => text.includes(what));
      assert.deepEqual(await toArray(matching(source(), what)), expected);
    },
  );
  await fc.assert(property, runs);
});

test("also without Node's functions", async () => {
  const browser = await import(new URL("bindings/node/dist/browser.js", repository).href);
  const property = fc.asyncProperty(fc.array(line), wanted, async (all, what) => {
    const text = all.map((each) => `${each}\n`).join("");
    const expected = (await toArray(from(text))).filter((each) => each.includes(what));
    assert.deepEqual(await toArray(browser.matching(browser.from(text), what)), expected);
  });
  await fc.assert(property, runs);
});

test("indexes in a batch, of other records than lines, and of an unfinished one", async () => {
  const batch = await from("one\r\ntwo\nnone\nten").nextBatch();
  assert.deepEqual([...batch!.matching("ne")], [0, 2]);
  assert.deepEqual([...batch!.matching("\n")], []);
  assert.deepEqual([...batch!.matching(Buffer.from("e"))], [0, 2]);
  assert.deepEqual([...batch!.matching("")], [0, 1, 2]);
  const kept = await from("one\r\ntwo\n", { framer: lineFramer({ keepDelimiter: true }) }).nextBatch();
  assert.deepEqual([...kept!.matching("\r\n")], [0]);
  // A length prefix that equals the text is not content.
  const prefixed = await from(Buffer.from([1, 98, 2, 97, 1, 1, 97]), {
    framer: lengthPrefixed({ width: 1 }),
  }).nextBatch();
  assert.deepEqual([...prefixed!.matching(Buffer.from([1]))], [1]);
});

test("items have the numbers of their records, before and after errors", async () => {
  const text = Array.from({ length: 40_000 }, (_, index) => `${index}\n`).join("");
  const seen: string[] = [];
  const fails = (value: string) => {
    if (value === "39999") throw new Error("no good");
    seen.push(value);
  };
  const error = await failure(pipe(matching(from(text), "9999"), map(fails), collect()));
  assert.deepEqual([error.kind, error.record, seen], ["stage_failed", 39_999, ["9999", "19999", "29999"]]);
  const broken = Buffer.concat([Buffer.from("a1\nb\n"), Buffer.from([0xff]), Buffer.from("1\na2\n")]);
  const found: string[] = [];
  const invalid = await failure(
    (async () => {
      for await (const each of matching(from(broken, { invalidUtf8: "error" }), "1")) found.push(each);
    })(),
  );
  assert.deepEqual([invalid.kind, invalid.record, found], ["utf8_invalid", 2, ["a1"]]);
});

test("records as bytes, and an argument that is not a reader", async () => {
  const views = await toArray(matching(from("one\ntwo\n", { as: "bytes" }), "w"));
  assert.deepEqual(views.map(String), ["116,119,111"]);
  assert.throws(() => matching("one" as never, "o"), { kind: "argument_invalid" });
});
