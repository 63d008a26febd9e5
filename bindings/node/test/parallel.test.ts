// `parallel`: worker threads call a function, results stay in order, and an error follows all results before it.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { collect, forEach, from, lines, map, parallel, pipe, type Summary, take } from "millstream";
import { failure, repository, sleep } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
after(() => rmSync(directory, { recursive: true }));

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const threads = () => process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length;

function moduleOf(name: string, text: string): URL {
  const path = join(directory, name);
  writeFileSync(path, text);
  return pathToFileURL(path);
}

test("results are in order, whatever the function and however long it takes", async () => {
  const expected = numbers(5000).map((n) => n * 2);
  const quick = parallel((n: number) => n * 2, { workers: 3 });
  assert.deepEqual(await pipe(numbers(5000), quick, collect()), expected);
  // Later items of a batch are ready first.
  const slow = parallel(
    async (n: number) => {
      await new Promise((resolve) => setTimeout(resolve, n % 3));
      return n * 2;
    },
    { workers: 3 },
  );
  assert.deepEqual(await pipe(numbers(200), slow, collect()), expected.slice(0, 200));
  const unordered = parallel((n: number) => n * 2, { workers: 3, ordered: false });
  assert.deepEqual(
    (await pipe(numbers(5000), unordered, collect())).sort((a, b) => a - b),
    expected,
  );
});

test("a function of a module, by its URL and its path, in ESM and CommonJS", async () => {
  const esm = moduleOf(
    "a.mjs",
    "const base = 10; export default (line) => base + line.length; export const twice = (n) => 2 * n;",
  );
  assert.deepEqual(await pipe(lines("a\nbb\n"), parallel<string, number>(esm), collect()), [11, 12]);
  const path = join(directory, "a.mjs");
  const both = pipe(
    [1, 2],
    parallel<number, number>(path, { export: "twice" }),
    map((n) => n + 1),
    collect(),
  );
  assert.deepEqual(await both, [3, 5]);
  const cjs = moduleOf("b.cjs", "exports.half = (n) => n / 2;");
  assert.deepEqual(await pipe([4], parallel<number, number>(cjs, { export: "half" }), collect()), [2]);
});

test("bytes arrive as bytes, and go back as bytes", async () => {
  const text = numbers(3000)
    .map((n) => `${n}\n`)
    .join("");
  const reverse = parallel((record: Uint8Array) => record.slice().reverse(), { workers: 2 });
  const found = await pipe(from(text, { as: "bytes" }), reverse, collect());
  assert.deepEqual(
    found.map((record) => Buffer.from(record).toString()),
    numbers(3000).map((n) => [...`${n}`].reverse().join("")),
  );
});

test("an error in the middle arrives after every result before it", async () => {
  for (const bad of [0, 1, 777, 1999]) {
    const work = moduleOf(
      `bad${bad}.mjs`,
      `export default (n) => { if (n === ${bad}) throw new RangeError("no " + n); return n; }`,
    );
    const found: number[] = [];
    const error = await failure(
      pipe(
        numbers(2000),
        map((n) => n),
        parallel<number, number>(work, { workers: 3 }),
        forEach((n: number) => found.push(n)),
      ),
    );
    assert.deepEqual([error.kind, error.record, error.stage], ["stage_failed", bad, 1]);
    assert((error.cause as Error) instanceof RangeError);
    assert.deepEqual(found, numbers(bad));
  }
});

test("failing records are skipped and counted, or quarantined", async () => {
  const work = moduleOf("odd.mjs", "export default (n) => { if (n % 2) throw new Error('odd'); return n; }");
  const isolated: number[] = [];
  let summary: Summary | undefined;
  const options = {
    onError: { quarantine: (n: number) => isolated.push(n) },
    onSummary: (s: Summary) => (summary = s),
  };
  const found = await pipe.options(options)(numbers(1001), parallel<number, number>(work, { workers: 2 }), collect());
  assert.deepEqual(
    found,
    numbers(1001).filter((n) => n % 2 === 0),
  );
  assert.deepEqual(
    isolated,
    numbers(1001).filter((n) => n % 2 === 1),
  );
  assert.deepEqual([summary?.failed, summary?.firstFailure?.record], [500, 1]);
});

test("items and results that cannot be copied are failures of their records", async () => {
  const items = [1, 2, () => 3, 4];
  const found: unknown[] = [];
  const error = await failure(
    pipe(
      items,
      parallel((item: unknown) => item),
      forEach((item: unknown) => found.push(item)),
    ),
  );
  assert.deepEqual([error.kind, error.record, found], ["stage_failed", 2, [1, 2]]);
  const results = parallel((n: number) => (n === 5 ? () => n : n));
  const skipped = await pipe.options({ onError: "skip" })(numbers(8), results, collect());
  assert.deepEqual(skipped, [0, 1, 2, 3, 4, 6, 7]);
});

test("a thread that ends is an error after the results before it", async () => {
  const work = moduleOf("exit.mjs", "export default (n) => { if (n === 40) process.exit(3); return n; }");
  const found: number[] = [];
  const error = await failure(
    pipe(
      numbers(100),
      parallel<number, number>(work, { workers: 1 }),
      forEach((n: number) => found.push(n)),
    ),
  );
  assert.equal(error.kind, "stage_panicked");
  assert.match(error.message, /exited with status 3/);
  assert.deepEqual(found, numbers(found.length));
  assert(found.length <= 40 && error.record! <= 40);
});

test("a module that does not exist, or has no such function", async () => {
  const missing = await failure(pipe([1], parallel(join(directory, "none.mjs")), collect()));
  assert.equal(missing.kind, "open_failed");
  assert.match(missing.message, /none\.mjs/);
  const empty = await failure(pipe([1], parallel(moduleOf("empty.mjs", "export const x = 1;")), collect()));
  assert.match(empty.message, /found no function default/);
});

test("wrong arguments", () => {
  const any = parallel as any;
  for (const wrong of [() => any(3), () => any(""), () => any()]) assert.throws(wrong, { kind: "argument_invalid" });
  // Its source is that of a method.
  assert.throws(() => any({ f() {} }.f), { kind: "argument_invalid" });
  assert.throws(() => any(Math.max), { kind: "argument_invalid" });
  assert.throws(() => any((n: number) => n, { export: "f" }), { kind: "invalid_option" });
  for (const workers of [0, 1.5, "2"]) assert.throws(() => any(() => 1, { workers }), { kind: "invalid_option" });
});

test("a closure's variables are not there", async () => {
  const factor = Number("2");
  const error = await failure(
    pipe(
      [1],
      parallel((n: number) => n * factor),
      collect(),
    ),
  );
  assert.match(error.message, /factor is not defined/);
});

test("a slow sink stops the source, and the threads end with the pipeline", async () => {
  const before = threads();
  let taken = 0;
  function* source() {
    for (let n = 0; n < 1_000_000; n++) {
      taken++;
      yield n;
    }
  }
  const slow = pipe(
    source(),
    parallel((n: number) => n, { workers: 2 }),
  );
  const iterator = slow[Symbol.asyncIterator]();
  assert.equal((await iterator.next()).value, 0);
  await sleep(100);
  assert(taken < 50_000, `${taken}`);
  await slow.close();
  assert.equal(threads(), before);
  const few = await pipe(
    numbers(100_000),
    parallel((n: number) => n),
    take(3),
    collect(),
  );
  assert.deepEqual(few, [0, 1, 2]);
  assert.equal(threads(), before);
});

test("an aborted pipeline stops its threads", async () => {
  const controller = new AbortController();
  const stuck = parallel(() => new Promise(() => {}), { workers: 2 });
  setTimeout(() => controller.abort(), 50);
  const error = await failure(pipe.options({ signal: controller.signal })(numbers(10), stuck, collect()));
  assert.equal(error.name, "AbortError");
});

test("with the options of the process that the threads inherit", () => {
  const entry = fileURLToPath(new URL("bindings/node/dist/index.js", repository));
  for (const [kind, program] of [
    ["module", `import { pipe, parallel, collect } from ${JSON.stringify(entry)};`],
    ["commonjs", `const { pipe, parallel, collect } = require(${JSON.stringify(entry.replace(/js$/, "cjs"))});`],
  ]) {
    const all = `${program} pipe([1, 2], parallel((n) => n + 1), collect()).then(console.log);`;
    const { stdout, stderr } = spawnSync(process.execPath, [`--input-type=${kind}`, "-e", all], { encoding: "utf8" });
    assert.equal(stdout, "[ 2, 3 ]\n", stderr);
  }
});
