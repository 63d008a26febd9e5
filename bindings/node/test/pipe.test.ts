import assert from "node:assert/strict";
import { Readable, Writable } from "node:stream";
import { test } from "node:test";
import fc from "fast-check";
import {
  asyncMap,
  batch,
  collect,
  count,
  filter,
  flatMap,
  fold,
  forEach,
  from,
  inspect,
  map,
  merge,
  type PipeOptions,
  pipe,
  type Stage,
  scanState,
  skip,
  take,
  tee,
  Writer,
} from "millstream";
import { failure, sleep, toArray } from "./twin.js";

const numbers = (length: number) => Array.from({ length }, (_, i) => i);

/** A stage by its name and number, and the equivalent function of arrays. */
type Recipe = [kind: string, n: number];

const later = <T>(value: T, n: number) =>
  n % 3 === 0 ? Promise.resolve(value) : new Promise<T>((resolve) => setImmediate(() => resolve(value)));

const RECIPES: Record<
  string,
  { stage: (n: number) => Stage<number, number>; array: (items: number[], n: number) => number[] }
> = {
  map: { stage: (n) => map((x) => x + n), array: (items, n) => items.map((x) => x + n) },
  asyncDeclared: { stage: (n) => map(async (x) => x * 2 + n), array: (items, n) => items.map((x) => x * 2 + n) },
  sometimesPromise: {
    stage: (n) => map((x) => (x % 5 === 0 ? later(x + n, x) : x + n)),
    array: (items, n) => items.map((x) => x + n),
  },
  filter: {
    stage: (n) => filter((x) => x % (n + 2) !== 0),
    array: (items, n) => items.filter((x) => x % (n + 2) !== 0),
  },
  asyncFilter: {
    stage: (n) => filter((x) => (x % 4 === 0 ? later(x % (n + 2) !== 0, x) : x % (n + 2) !== 0)),
    array: (items, n) => items.filter((x) => x % (n + 2) !== 0),
  },
  flatMap: {
    stage: (n) => flatMap((x) => Array(Math.abs(x) % (n + 2)).fill(x)),
    array: (items, n) => items.flatMap((x) => Array(Math.abs(x) % (n + 2)).fill(x)),
  },
  generator: {
    stage: () =>
      flatMap(function* (x: number) {
        yield x;
        yield -x;
      }),
    array: (items) => items.flatMap((x) => [x, -x]),
  },
  inspect: { stage: () => inspect((x) => (x % 7 === 0 ? later(x, x) : undefined)), array: (items) => items },
  take: { stage: (n) => take(n * 40), array: (items, n) => items.slice(0, n * 40) },
  skip: { stage: (n) => skip(n * 10), array: (items, n) => items.slice(n * 10) },
  batch: { stage: (n) => batch(n + 1), array: (items) => items },
  scan: {
    stage: (n) =>
      scanState(
        () => ({ sum: n }),
        (state, x: number) => (state.sum += x),
      ),
    array: (items, n) => {
      let sum = n;
      return items.map((x) => (sum += x));
    },
  },
  asyncScan: {
    stage: (n) =>
      scanState(
        () => ({ sum: n }),
        (state, x: number) => (x % 3 ? later((state.sum += x), x) : (state.sum += x)),
      ),
    array: (items, n) => {
      let sum = n;
      return items.map((x) => (sum += x));
    },
  },
  asyncMap: {
    stage: (n) => asyncMap((x: number) => later(x + 1, x), { concurrency: n + 1 }),
    array: (items) => items.map((x) => x + 1),
  },
};

const recipe: fc.Arbitrary<Recipe> = fc.tuple(fc.constantFrom(...Object.keys(RECIPES)), fc.nat(6));

test("any stages agree with arrays, for any source and in both modes", async () => {
  const stamp = fc.constantFrom<PipeOptions["stamp"]>(true, "always", false);
  await fc.assert(
    fc.asyncProperty(
      fc.array(recipe, { maxLength: 6 }),
      fc.nat(3000),
      stamp,
      fc.nat(3),
      async (recipes, length, stamp, way) => {
        const input = numbers(length);
        const sources = [
          () => input,
          () => input.values(),
          () => Readable.from(input),
          async function* () {
            for (const x of input) {
              if (x % 100 === 0) await sleep(0);
              yield x;
            }
          },
        ];
        let expected = input;
        for (const [kind, n] of recipes) expected = RECIPES[kind].array(expected, n);
        const stages = recipes.map(([kind, n]) => RECIPES[kind].stage(n));
        const found = await pipe.options({ stamp, stats: true })(sources[way](), stages, collect());
        assert.deepEqual(found, expected);
      },
    ),
    { numRuns: Number(process.env.MILLSTREAM_CASES ?? 150) },
  );
});

test("sources and results", async () => {
  const input = from("a\nbb\n\nccc\n");
  const lengths: number[] = await pipe(
    input,
    filter((line) => line !== ""),
    map((line) => line.length),
    collect(),
  );
  assert.deepEqual(lengths, [1, 2, 3]);
  assert.equal(await pipe(numbers(5000), count()), 5000);
  assert.equal(
    await pipe(
      numbers(5000),
      fold(0, (sum, x) => sum + x),
    ),
    12_497_500,
  );
  assert.equal(
    await pipe(
      numbers(100),
      fold(0, async (sum, x) => sum + x),
    ),
    4950,
  );
  const bytes = await pipe(
    from("a\nb\n", { as: "bytes" }),
    map((line) => line[0]),
    collect(),
  );
  assert.deepEqual(bytes, [97, 98]);
  const web = new ReadableStream<number>({
    start(controller) {
      for (const x of [1, 2, 3]) controller.enqueue(x);
      controller.close();
    },
  });
  assert.deepEqual(await pipe(web, collect()), [1, 2, 3]);
});

test("a summary and its statistics", async () => {
  const summary = await pipe.options({ stats: true })(
    numbers(5000),
    filter((x) => x % 2 === 0),
    flatMap((x) => [x, x]),
    asyncMap(async (x) => x),
    forEach(() => {}),
  );
  assert.deepEqual([summary.records, summary.items], [5000, 5000]);
  const stages = summary.stages.map(({ name, items, itemsIn }) => [name, itemsIn, items]);
  assert.deepEqual(stages, [
    ["filter", 5000, 2500],
    ["flatMap", 2500, 5000],
    ["asyncMap", 5000, 5000],
    ["forEach", 5000, 5000],
  ]);
  assert(summary.stages.every(({ time }) => time >= 0) && summary.elapsed > 0);
  let seen = 0;
  await pipe.options({ onSummary: ({ records }) => (seen = records) })(numbers(7), collect());
  assert.equal(seen, 7);
});

test("the stack is no deeper for 10,000 stages than for one", async () => {
  for (const stamp of ["always", false] as const) {
    const heights = new Set<number>();
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = Number.POSITIVE_INFINITY;
    const measure = map((x: number) => {
      if (x % 50 === 0) heights.add(new Error().stack!.split("\n").length);
      return x + 1;
    });
    for (const length of [1, 300, ...(stamp === false ? [10_000] : [])]) {
      const stages = numbers(length - 1).map(() => map((x: number) => x + 1));
      const sum = await pipe.options({ stamp })(
        numbers(100),
        [...stages, measure],
        fold(0, (a, b: number) => a + b),
      );
      assert.equal(sum, 4950 + 100 * length);
    }
    Error.stackTraceLimit = limit;
    assert.equal(heights.size, 1);
  }
});

test("without new Function, all stages share one loop", async () => {
  const { Function: original } = globalThis;
  const { spawnSync } = await import("node:child_process");
  assert.equal(original, Function);
  const program = `
    import { pipe, map, collect } from ${JSON.stringify(new URL("../../dist/index.js", import.meta.url).href)};
    try { new Function("return 1"); process.exit(2); } catch {}
    console.log(await pipe.options({ stamp: "always" })([1, 2], map((x) => x + 1), collect()));
  `;
  const run = spawnSync(
    process.execPath,
    ["--disallow-code-generation-from-strings", "--input-type=module", "-e", program],
    {
      encoding: "utf8",
    },
  );
  assert.deepEqual([run.status, run.stdout], [0, "[ 2, 3 ]\n"], run.stderr);
});

test("a function with many items gets its own loop, with the same results", async () => {
  const input = numbers(200_000);
  const add = map((x: number) => x + 1);
  const even = filter((x: number) => x % 2 === 0);
  const sum = await pipe(
    input,
    add,
    even,
    add,
    fold(0, (a, b) => a + b),
  );
  assert.equal(
    sum,
    input
      .map((x) => x + 1)
      .filter((x) => x % 2 === 0)
      .reduce((a, b) => a + b + 1, 0),
  );
});

test("take ends the source, and batch(1) prevents stages from processing items that it drops", async () => {
  let made = 0;
  let returned = false;
  function* source() {
    try {
      for (;;) yield made++;
    } finally {
      returned = true;
    }
  }
  const ran: number[] = [];
  const stages = [map((x: number) => (ran.push(x), x)), take(3)] as const;
  assert.deepEqual(await pipe(source(), ...stages, collect()), [0, 1, 2]);
  assert(returned && ran.length > 3);
  ran.length = 0;
  assert.deepEqual(await pipe(numbers(100), batch(1), ...stages, collect()), [0, 1, 2]);
  assert.deepEqual(ran, [0, 1, 2]);
  assert.deepEqual(await pipe(numbers(10), take(5), batch(2), collect()), [0, 1, 2, 3, 4]);
  const never = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) };
  assert.deepEqual(await pipe(never, take(0), collect()), []);
});

test("an endless iterable from one item", async () => {
  let ended = false;
  const endless = flatMap(function* (x: number) {
    try {
      for (;;) yield x;
    } finally {
      ended = true;
    }
  });
  assert.deepEqual(await pipe([7], endless, skip(5000), take(2), collect()), [7, 7]);
  assert(ended);
});

test("tee, to every kind of sink", async () => {
  const lines: string[] = [];
  const memory = Writer.memory();
  const objects: unknown[] = [];
  const stream = new Writable({
    objectMode: true,
    highWaterMark: 2,
    write(item, _encoding, done) {
      objects.push(item);
      setImmediate(done);
    },
  });
  const items = await pipe(
    ["a", "b", "c"],
    tee(forEach(async (x) => void lines.push(x))),
    tee(memory),
    tee(stream),
    map((x) => x + x),
    collect(),
  );
  assert.deepEqual(items, ["aa", "bb", "cc"]);
  assert.deepEqual(
    [lines, objects],
    [
      ["a", "b", "c"],
      ["a", "b", "c"],
    ],
  );
  assert.equal(Buffer.from((await memory.close()).memory!).toString(), "a\nb\nc\n");
  assert(stream.writableFinished);
});

test("merge, as a source and as a stage", async () => {
  async function* slow(of: number[]) {
    for (const x of of) {
      await sleep(1);
      yield x;
    }
  }
  const all = await pipe(merge(slow([1, 2, 3]), [4, 5], slow([6])), collect());
  assert.deepEqual(all.toSorted(), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(
    all.filter((x) => x < 4),
    [1, 2, 3],
  );
  const more = await pipe(
    [1, 2],
    map((x) => x * 10),
    merge(
      slow([3]),
      pipe(
        [4],
        map((x) => x * 10),
      ),
    ),
    collect(),
  );
  assert.deepEqual(more.toSorted(), [10, 20, 3, 40]);
});

test("asyncMap: as many at once as allowed, in order or unordered", async () => {
  for (const ordered of [true, false]) {
    let running = 0;
    let most = 0;
    const work = async (x: number) => {
      most = Math.max(most, ++running);
      await sleep((x * 7) % 5);
      running--;
      return x;
    };
    const found = await pipe(numbers(60), asyncMap(work, { concurrency: 4, ordered }), collect());
    assert.equal(most, 4);
    if (ordered) assert.deepEqual(found, numbers(60));
    else
      assert.deepEqual(
        found.toSorted((a, b) => a - b),
        numbers(60),
      );
  }
  // This also works across batches of one item: no call ends before five are in progress.
  async function* single() {
    for (const x of numbers(10)) {
      await sleep(0);
      yield x;
    }
  }
  let waiting: (() => void)[] = [];
  const together = (x: number) =>
    new Promise<number>((resolve) => {
      waiting.push(() => resolve(x));
      if (waiting.length < 5) return;
      for (const end of waiting) end();
      waiting = [];
    });
  assert.deepEqual(await pipe(single(), asyncMap(together, { concurrency: 5 }), collect()), numbers(10));
});

test("without a sink: a loop that ended early can be continued, and so can batches", async () => {
  const doubled = pipe(
    numbers(5000),
    map((x) => x * 2),
  );
  const found: number[] = [];
  for await (const x of doubled) {
    found.push(x);
    if (x === 2000) break;
  }
  for await (const items of doubled.batches()) {
    found.push(...items);
    break;
  }
  found.push(...(await toArray(doubled)));
  assert.deepEqual(
    found,
    numbers(5000).map((x) => x * 2),
  );
  const closed = pipe(
    numbers(10),
    map((x) => x),
  );
  await closed.close();
  assert.deepEqual(await toArray(closed), []);
});

test("a slow sink stops the source, and items in transit are bounded", async () => {
  let delivered = 0;
  let taken = 0;
  let most = 0;
  async function* source() {
    for (let i = 0; i < 20_000; i++) {
      delivered++;
      if (i % 10 === 0) await sleep(0);
      yield i;
    }
  }
  const slow = new Writable({
    objectMode: true,
    highWaterMark: 1,
    write(_item, _encoding, done) {
      most = Math.max(most, delivered - taken++);
      if (taken % 100 === 0) setImmediate(done);
      else done();
    },
  });
  await pipe(
    source(),
    map((x) => x),
    asyncMap(async (x) => x),
    filter(() => true),
    slow,
  );
  assert.equal(taken, 20_000);
  // A block of 1,024 on each side of asyncMap at most.
  assert(most <= 3 * 1024, `${most} in flight`);
});

test("sinks: a byte stream gets records as lines, a web stream of objects gets items", async () => {
  const chunks: Buffer[] = [];
  const bytes = new Writable({
    highWaterMark: 4,
    write(chunk, _encoding, done) {
      chunks.push(chunk);
      setImmediate(done);
    },
  });
  const summary = await pipe(["a", "ü"], bytes);
  assert.equal(Buffer.concat(chunks).toString(), "a\nü\n");
  assert.equal(summary.items, 2);
  const objects: unknown[] = [];
  await pipe([{ a: 1 }, { a: 2 }], new WritableStream({ write: (item) => void objects.push(item) }));
  assert.deepEqual(objects, [{ a: 1 }, { a: 2 }]);
});

test("invalid arguments", async () => {
  assert.throws(() => map(3 as never), { kind: "argument_invalid" });
  assert.throws(() => take(-1), { kind: "invalid_option" });
  assert.throws(() => batch(0), { kind: "invalid_option" });
  assert.throws(() => pipe("text" as never, collect()), { kind: "argument_invalid", message: /lines\(text\)/ });
  assert.throws(() => pipe([1], 3 as never), { kind: "argument_invalid" });
  const strings = await failure(
    pipe(
      [1],
      flatMap(() => "text" as never),
      collect(),
    ),
  );
  assert.equal(strings.kind, "stage_failed");
  assert.equal((await failure(pipe([1], Writer.memory()))).kind, "argument_invalid");
});
