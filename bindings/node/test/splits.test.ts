// Plans and splits.

import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import {
  anyOf,
  bson,
  csv,
  delimiter,
  type Framer,
  fixed,
  lengthPrefixed,
  lineFramer,
  MillstreamError,
  open,
  openSplit,
  planSplits,
  shardSplits,
} from "millstream";
import { cases, failure, toArray } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
after(() => rmSync(directory, { recursive: true }));
const path = join(directory, "input");
const PEOPLE = 'name,age\n"Ann\nLee",41\nBob,17\n"C,D",5\n';

function framer(words: string): Framer {
  const [kind, of = ""] = words.split(" ");
  if (kind === "lines") return lineFramer();
  if (kind === "bytes") return delimiter(Buffer.from(of, "hex"));
  if (kind === "fixed") return fixed(Number(of));
  if (kind === "bson") return bson();
  if (kind === "csv") return csv();
  assert.equal(kind, "prefix");
  const width = (Number.parseInt(of.slice(1), 10) / 8) as 1 | 2 | 4 | 8;
  return lengthPrefixed({
    width,
    endian: of.includes("be") ? "big" : "little",
    counts: of.includes("self") ? "itself" : "payload",
  });
}

for (const [name, words, size, input, splits, end] of cases("splits.tsv")) {
  test(`splits.tsv: ${name}`, async () => {
    writeFileSync(path, Buffer.from(input, "hex"));
    const plan = await planSplits(path, { framer: framer(words), size: Number(size), decode: "off" });
    const found: string[] = [];
    let outcome = "end";
    for (const split of plan.splits) {
      const records: string[] = [];
      try {
        for await (const record of openSplit(split, { as: "bytes" })) records.push(Buffer.from(record).toString("hex"));
      } catch (error) {
        assert(error instanceof MillstreamError);
        outcome = error.kind;
      }
      found.push(`${split.begin}-${split.end}#${split.record ?? "?"}:${records.length > 0 ? records.join(",") : "-"}`);
    }
    assert.deepEqual([found.join(" "), outcome], [splits, end]);
  });
}

test("the splits of CSV are the file, whatever the dialect", async () => {
  writeFileSync(path, PEOPLE);
  const plan = await planSplits(pathToFileURL(path), { framer: csv(), size: 12 });
  assert.deepEqual([plan.size, plan.records, plan.note], [37, 4, null]);
  assert.deepEqual(
    plan.splits.map(({ begin, end, record }) => [begin, end, record]),
    [
      [0, 22, 0],
      [22, 29, 2],
      [29, 37, 3],
    ],
  );
  const rows = [];
  for (const split of plan.splits) rows.push(...(await toArray(openSplit(split).rows())));
  assert.deepEqual(rows, await toArray(open(path, { framer: csv() }).rows()));
  writeFileSync(path, "#no\ra;'b;'\rc;d\\;e\r");
  const options = {
    delimiter: ";",
    quote: "'",
    escape: "\\",
    comment: "#",
    lineEnd: "cr",
    doubledQuotes: false,
  } as const;
  const others = await planSplits(path, { framer: csv(options), size: 4 });
  const found = [];
  for (const split of others.splits) found.push(...(await toArray(openSplit(JSON.stringify(split)).rows())));
  assert.deepEqual(found, await toArray(open(path, { framer: csv(options) }).rows()));
  assert.equal(others.splits.length, 3);
});

test("offsets and records count from the start of the file", async () => {
  writeFileSync(path, Uint8Array.of(1, 97, 1, 98, 2, 99));
  const { splits } = await planSplits(path, { framer: lengthPrefixed({ width: 1 }), size: 2 });
  const reader = openSplit(splits[1]);
  assert.equal((await reader[Symbol.asyncIterator]().next()).value, "b");
  assert.deepEqual(reader.position, { bytes: 4, records: 2 });
  const error = await failure(toArray(openSplit(splits[2])));
  assert.deepEqual([error.kind, error.offset, error.record], ["frame_truncated", 4, 2]);
  writeFileSync(path, "a\nb\nc\n");
  const lines = await planSplits(path, { size: 2 });
  const batch = await openSplit(lines.splits[1]).nextBatch();
  assert.deepEqual([batch?.offset, batch?.length], [2, 1]);
});

test("lines are numbered by option", async () => {
  writeFileSync(path, Array.from({ length: 100 }, (_, number) => `${number}\n`).join(""));
  const plan = await planSplits(path, { size: 100, number: true });
  assert.deepEqual([plan.records, plan.splits.map((split) => split.record)], [100, [0, 37, 70]]);
  const error = await failure(toArray(openSplit(plan.splits[2], { recordLimit: 1 })));
  assert.deepEqual([error.record, error.line], [70, 71]);
});

test("options of the reader apply, and delimiters can be kept", async () => {
  writeFileSync(path, "one\r\ntwo\r\n");
  const { splits } = await planSplits(path, { size: 5 });
  assert.deepEqual(await toArray(openSplit(splits[1], { keepDelimiter: true })), ["two\r\n"]);
  assert.deepEqual(await toArray(openSplit(splits[0], { framer: delimiter("n") })), ["o", "e\r\n"]);
  const error = await failure(toArray(openSplit(splits[0], { recordLimit: 1 })));
  assert.equal(error.kind, "record_too_long");
});

test("a worker thread reads a split", async () => {
  writeFileSync(path, "one\ntwo\n");
  const { splits } = await planSplits(path, { size: 4 });
  const program = `
    const { parentPort, workerData } = require("node:worker_threads");
    import("millstream").then(async ({ openSplit }) => {
      for await (const line of openSplit(workerData)) parentPort.postMessage(line);
    });`;
  const worker = new Worker(program, { eval: true, workerData: splits[1] });
  assert.equal(await new Promise((resolve) => worker.once("message", resolve)), "two");
  await worker.terminate();
});

test("a file that is not the one of the plan is an error", async () => {
  writeFileSync(path, "one\ntwo\n");
  const { splits } = await planSplits(path, { size: 4, pin: "ends" });
  const moved = join(directory, "moved");
  renameSync(path, moved);
  assert.equal((await failure(toArray(openSplit(splits[0])))).kind, "open_failed");
  assert.deepEqual(await toArray(openSplit({ ...splits[0], path: moved })), ["one"]);
  writeFileSync(moved, "one\nsix\n");
  assert.equal((await failure(toArray(openSplit({ ...splits[0], path: moved })))).kind, "source_changed");
});

test("planning can be ended", async () => {
  writeFileSync(path, "");
  truncateSync(path, 2 ** 40);
  const signal = AbortSignal.timeout(100);
  const error = await failure(planSplits(path, { framer: delimiter("aa"), signal }));
  assert.deepEqual([error.kind, error.name], ["cancelled", "AbortError"]);
  assert.equal((await failure(planSplits(path, { signal }))).kind, "cancelled");
});

test("wrong arguments are refused", async () => {
  writeFileSync(path, "one\n");
  const own = { trim: { head: 0, tail: 0, carriageReturn: false }, step: () => ({ length: 1, terminated: true }) };
  for (const framer of [anyOf((byte) => byte === 44), lineFramer({ keepDelimiter: true }), own]) {
    const error = await failure(planSplits(path, { framer }));
    assert.deepEqual([error.kind, error.found?.slice(0, 31)], ["invalid_option", "a framer that cannot be stored:"]);
  }
  const wrong: any[] = [{ size: 0 }, { size: 1.5 }, { pin: "size" }, { decode: "on" }, { index: 7 }, { colour: "red" }];
  for (const options of wrong) assert.equal((await failure(planSplits(path, options))).kind, "invalid_option");
  assert.equal((await failure(planSplits(join(directory, "missing")))).kind, "open_failed");
  assert.equal((await failure(planSplits(directory))).kind, "unsupported");
  const splits: any[] = [7, "no JSON", {}, "{}", { framing: { kind: "another" } }];
  for (const split of splits) {
    assert.throws(() => openSplit(split), { kind: "invalid_option" });
  }
  const plan = await planSplits(path);
  assert.equal((await failure(toArray(openSplit({ ...plan.splits[0], version: 99 })))).kind, "unsupported");
  const { splits: documents } = await planSplits(path, { framer: fixed(4) });
  assert.throws(() => openSplit(documents[0], { keepDelimiter: true }), { kind: "invalid_option" });
});

test("a shard is every nth split in a random order", async () => {
  writeFileSync(path, "0123456\n".repeat(10));
  const plan = await planSplits(path, { size: 8 });
  const begins = (index: number, count: number, seed: number | bigint) =>
    shardSplits(plan, index, count, seed).map((split) => split.begin / 8);
  // These numbers must never change. They are those of the other languages.
  const seed1 = [9, 0, 1, 4, 8, 2, 3, 7, 6, 5];
  assert.deepEqual(begins(0, 1, 1), seed1);
  assert.deepEqual(
    begins(1, 3, 1n),
    seed1.filter((_, i) => i % 3 === 1),
  );
  assert.notDeepEqual(begins(0, 1, 2n ** 64n - 1n), seed1);
  assert.equal(plan.splits[0]?.begin, 0, "the plan is unchanged");
  for (const [index, count] of [
    [2, 2],
    [0, 0],
    [-1, 2],
    [0.5, 2],
  ] as const) {
    assert.throws(() => shardSplits(plan, index, count, 1), { kind: "invalid_option", found: /worker/ });
  }
  for (const seed of [-1, 0.5, -1n, 2n ** 64n]) {
    assert.throws(() => shardSplits(plan, 0, 1, seed), { kind: "invalid_option", found: /seed/ });
  }
});
