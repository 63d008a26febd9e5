import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { from, lineFramer, type MillstreamError, Reader } from "millstream";
import { failure, framerOf, frameVectors, naiveLines, type Outcome, pieces, toArray } from "./twin.js";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

async function outcome(read: (records: string[]) => Promise<void>): Promise<Outcome> {
  const records: string[] = [];
  try {
    await read(records);
    return { records, end: "end" };
  } catch (error) {
    return { records, end: (error as MillstreamError).kind };
  }
}

for (const { name, words, input, expected } of frameVectors()) {
  test(`vector ${name}`, async () => {
    const every = Array.from({ length: input.length + 1 }, (_, at) => at);
    for (const cuts of [...every.map((at) => [at]), every]) {
      const open = () => {
        const reader = from(pieces(input, cuts), { framer: framerOf(words), as: "bytes" });
        return reader;
      };
      const byRecord = await outcome(async (records) => {
        for await (const record of open()) records.push(hex(record));
      });
      const byBatch = await outcome(async (records) => {
        for await (const batch of open().batches()) for (const record of batch) records.push(hex(record));
      });
      // A length beyond the record limit is an error immediately.
      const asExpected = (found: Outcome) => ({
        ...found,
        end: found.end === "record_too_long" ? "frame_truncated" : found.end,
      });
      assert.deepEqual(asExpected(byRecord), expected, `one by one, cut at ${cuts}`);
      assert.deepEqual(asExpected(byBatch), expected, `by batches, cut at ${cuts}`);
    }
  });
}

test("strings of lines equal their bytes for any chunks", async () => {
  const text = fc.array(fc.constantFrom("a", "\n", "\r", "\r\n", "ü", "→", "🦀", "\ufeff", "word "), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(200), { maxLength: 12 }), fc.boolean(), async (words, cuts, broken) => {
      let bytes: Uint8Array = Buffer.from(words.join(""));
      // Half a character, to see U+FFFD.
      if (broken) bytes = bytes.subarray(0, -1);
      const chunks = () =>
        pieces(
          bytes,
          cuts.toSorted((a, b) => a - b),
        );
      const expected = naiveLines(bytes);
      assert.deepEqual(await toArray(from(chunks())), expected);
      const byBatch: string[] = [];
      for await (const batch of from(chunks()).batches()) byBatch.push(...batch.texts());
      assert.deepEqual(byBatch, expected);
      const single: string[] = [];
      for await (const batch of from(chunks()).batches()) {
        for (let i = 0; i < batch.length; i++) single.push(batch.text(i));
      }
      assert.deepEqual(single, expected);
    }),
  );
});

test("blocks of more than 64 KiB, of characters of every length", async () => {
  const line = "Grüße → 🦀 and so on";
  const lines = Array.from({ length: 20_000 }, (_, i) => `${i} ${line.slice(i % 7)}`);
  const bytes = Buffer.from(`${lines.join("\n")}\n`);
  assert.deepEqual(await toArray(from(bytes)), lines);
  const cuts = Array.from({ length: 40 }, (_, i) => i * 32_771 + 1);
  assert.deepEqual(await toArray(from(pieces(bytes, cuts))), lines);
  const texts: string[] = [];
  for await (const batch of from(bytes).batches()) texts.push(...batch.texts());
  assert.deepEqual(texts, lines);
});

test("a delimiter that is part of characters cuts bytes, not characters", async () => {
  const bytes = Buffer.from("a→b→c");
  const framer = framerOf("byte 86"); // the middle of →
  const records = await toArray(from(bytes, { framer, as: "bytes" }));
  const texts = await toArray(from(bytes, { framer }));
  assert.deepEqual(
    texts,
    records.map((record) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(record)),
  );
});

test("a batch has its position", async () => {
  const reader = from("one\ntwo\nthree\n");
  for await (const line of reader) if (line === "one") break;
  const batch = await reader.nextBatch();
  assert(batch);
  assert.deepEqual([batch.offset, batch.firstRecord, batch.length], [4, 1, 2]);
  assert.equal(batch.offset + batch.offsets[1], 8);
  assert.equal(hex(batch.raw(0)), hex(Buffer.from("two\n")));
  assert.throws(() => batch.record(2), RangeError);
});

test("a custom framer needs only a step", async () => {
  const letters = {
    trim: { head: 0, tail: 0, carriageReturn: false },
    step: () => ({ length: 1, terminated: true }),
  };
  assert.deepEqual(await toArray(from("abc", { framer: letters })), ["a", "b", "c"]);
});

test("invalid options", () => {
  for (const words of ["fixed 0", "bytes "]) assert.throws(() => framerOf(words), { kind: "invalid_option" });
  assert.throws(() => framerOf("byte 100"), { kind: "invalid_option" });
  assert.throws(() => from("", { recordLimit: 0 }), { kind: "invalid_option" });
  assert.throws(() => from(3 as never), { kind: "argument_invalid" });
  assert(from("") instanceof Reader);
  assert.equal(lineFramer().delimiter, 10);
});

test("invalid UTF-8 is an error if requested, after the valid text", async () => {
  const bytes = Buffer.concat([Buffer.from("one\ntwo\n"), Uint8Array.of(0xff, 10), Buffer.from("four\n")]);
  const reader = from(bytes, { invalidUtf8: "error" });
  const lines: string[] = [];
  const error = await failure(
    (async () => {
      for await (const line of reader) lines.push(line);
    })(),
  );
  assert.deepEqual([error.kind, error.record, error.offset, lines], ["utf8_invalid", 2, 8, ["one", "two"]]);
  assert.deepEqual(await toArray(reader), []);
});
