import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Duplex, PassThrough, Readable, Writable } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { after, test } from "node:test";
import fc from "fast-check";
import {
  asyncMap,
  collect,
  filter,
  flatMap,
  fold,
  from,
  map,
  pipe,
  type Stage,
  skip,
  take,
  tee,
  toReadable,
  toTransform,
  toWritable,
  Writer,
} from "millstream";
import { failure, pieces, sleep, toArray } from "./twin.js";

// Every test must close these.
const stray: unknown[] = [];
process.on("unhandledRejection", (error) => stray.push(error));
process.on("warning", (warning) => stray.push(warning));
after(async () => {
  await sleep(20);
  assert.deepEqual(stray, []);
});

/** The whole output of a stream in the middle for some chunks, as text. */
async function through(chunks: Iterable<unknown>, ...middle: Duplex[]): Promise<string> {
  const out: Buffer[] = [];
  const sink = new Writable({
    write(chunk, _encoding, done) {
      out.push(chunk);
      done();
    },
  });
  await pipeline([Readable.from(chunks, { objectMode: false }), ...middle, sink]);
  return Buffer.concat(out).toString();
}

/** The reason of a rejected promise, or the argument of a stream's event. */
async function rejection(promise: Promise<unknown>): Promise<any> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

/** Yields lines one by one; timers run in between, which they otherwise would not before a Transform. */
function counted(total: number, highWaterMark?: number) {
  let given = 0;
  const readable = new Readable({
    highWaterMark,
    read() {
      const next = () => this.destroyed || this.push(given < total ? `line ${given++}\n` : null);
      if (given % 256 === 255) setImmediate(next);
      else next();
    },
  });
  return { readable, given: () => given };
}

const upper = () => map((line: string) => line.toUpperCase());

test("a chain in the middle of a pipeline, for any chunks", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.stringMatching(/^[a-zäß🦀]{0,9}$/u), { maxLength: 40 }),
      fc.array(fc.nat(300), { maxLength: 12 }),
      async (lines, cuts) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
        const chunks = pieces(
          bytes,
          cuts.sort((a, b) => a - b).filter((cut) => cut < bytes.length),
        );
        const expected = lines
          .filter((line) => line !== "a")
          .map((line) => `<${line}>\n`)
          .join("");
        const chain = toTransform(
          filter((line) => line !== "a"),
          map((line) => `<${line}>`),
        );
        assert.equal(await through(chunks, chain), expected);
      },
    ),
  );
});

test("an unfinished last record is a record", async () => {
  assert.equal(await through(["one\ntw", "o\nthr", "ee"], toTransform(upper())), "ONE\nTWO\nTHREE\n");
  const kept = toTransform.options({ keepDelimiter: true, delimiter: "" });
  assert.equal(await through(["one\r\ntwo\nthr", "ee"], kept(upper())), "ONE\r\nTWO\nTHREE");
  assert.equal(await through([], toTransform(upper())), "");
  assert.equal(await through(["\n\n"], toTransform.options({ delimiter: "" })()), "");
  assert.equal(
    await through(["a\nb"], toTransform.options({ as: "bytes", delimiter: ";" })(map((b) => b.slice(0, 1)))),
    "a;b;",
  );
});

test("strings in pieces and in other encodings", async () => {
  const chain = toTransform();
  const out = toArray(chain);
  chain.write("🦀".slice(0, 1));
  chain.write(`${"🦀".slice(1)}\n`);
  chain.write("c3a40a", "hex");
  chain.end();
  assert.equal(Buffer.concat((await out) as Buffer[]).toString(), "🦀\nä\n");
});

test("objects in, objects out, and in the middle of bytes", async () => {
  const between = toTransform.options({ input: "objects", output: "objects" });
  const chain = between(
    map((item: { n: number }) => item.n),
    asyncMap((n: number) => sleep(n % 3).then(() => n * 2)),
    flatMap((n) => [n, { n }]),
  );
  const items = Array.from({ length: 3000 }, (_, n) => ({ n }));
  const got: unknown[] = [];
  const sink = new Writable({
    objectMode: true,
    write(item, _encoding, done) {
      got.push(item);
      done();
    },
  });
  await pipeline(items, chain, sink);
  assert.deepEqual(
    got,
    items.flatMap(({ n }) => [2 * n, { n: 2 * n }]),
  );
  const parse = toTransform.options({ output: "objects" })(map((line) => JSON.parse(line)));
  const print = toTransform.options({ input: "objects" })(map((item) => JSON.stringify(item)));
  assert.equal(await through(['{"a":1}\n{"b"', ":2}"], parse, print), '{"a":1}\n{"b":2}\n');
});

test("null is not an item, and other values are not bytes", async () => {
  const nothing = toTransform.options({ output: "objects" })(map(() => null));
  assert.equal(
    (await failure(through(["a\n"], nothing, toTransform.options({ input: "objects" })()))).kind,
    "argument_invalid",
  );
  assert.equal((await failure(through(["a\n"], toTransform(map(() => 1))))).kind, "argument_invalid");
  assert.throws(() => toTransform.options({ input: "lines" as never })(), { kind: "invalid_option" });
  assert.throws(() => toTransform({} as never), { kind: "argument_invalid" });
  assert.throws(() => toWritable(upper() as never), { kind: "argument_invalid" });
});

test("an error of a stage ends the pipeline on both sides", async () => {
  for (const stage of [map, asyncMap] as ((f: (line: string) => unknown) => Stage<string, any>)[]) {
    const { readable } = counted(Number.POSITIVE_INFINITY);
    const sink = new PassThrough().resume();
    const chain = toTransform(
      stage((line) => {
        if (line === "line 7") throw new Error("boom");
        return line;
      }),
    );
    const error = await failure(pipeline(readable, chain, sink));
    assert.deepEqual([error.kind, error.record, (error.cause as Error).message], ["stage_failed", 7, "boom"]);
    assert(readable.destroyed && chain.destroyed && sink.destroyed);
  }
});

test("an error of the source or of the sink becomes the pipeline's error and ends the chain", async () => {
  let given = 0;
  const broken = new Readable({
    read() {
      if (given++ < 3) this.push("a\n");
      else this.destroy(new Error("source"));
    },
  });
  const abandoned: string[] = [];
  const watched = () =>
    tee<string>(
      new Writable({
        write: (_chunk, _encoding, done) => done(),
        final: (done) => done(new Error("it was not to finish")),
        destroy: (error, done) => {
          abandoned.push("tee");
          done(error);
        },
      }),
    );
  const first = toTransform(watched());
  assert.equal((await rejection(pipeline(broken, first, new PassThrough().resume()))).message, "source");
  const { readable } = counted(Number.POSITIVE_INFINITY);
  const second = toTransform(watched());
  const sink = new Writable({ write: (_chunk, _encoding, done) => done(new Error("sink")) });
  assert.equal((await rejection(pipeline(readable, second, sink))).message, "sink");
  assert(readable.destroyed);
  await Promise.all([first, second].map((chain) => chain.closed || finished(chain).catch(() => {})));
  assert.deepEqual(abandoned, ["tee", "tee"]);
});

test("destroyed at any moment, with or without an error", async () => {
  for (let turns = 0; turns < 24; turns++) {
    for (const error of [undefined, new Error("enough")]) {
      const { readable, given } = counted(Number.POSITIVE_INFINITY);
      const chain = toTransform(
        upper(),
        asyncMap((line: string) => sleep(0).then(() => line)),
      );
      const done = rejection(pipeline(readable, chain, new PassThrough().resume()));
      const closed = new Promise((resolve) => chain.once("close", resolve));
      for (let turn = 0; turn < turns; turn++) await (turn % 2 ? null : new Promise(setImmediate));
      chain.destroy(error);
      const seen = await done;
      assert.equal(error === undefined ? seen.code : seen, error ?? "ERR_STREAM_PREMATURE_CLOSE");
      await closed;
      const before = given();
      await sleep(1);
      assert.equal(given(), before);
    }
  }
});

test("destroyed while a stage never returns", async () => {
  const chain = toTransform(map(() => new Promise<string>(() => {})));
  chain.end("a\n");
  chain.resume();
  await sleep(2);
  chain.destroy();
  await new Promise((resolve) => chain.once("close", resolve));
});

test("a signal ends them like Node's streams", async () => {
  for (const when of ["before", "during"]) {
    const controller = new AbortController();
    const { signal } = controller;
    if (when === "before") controller.abort();
    const { readable } = counted(Number.POSITIVE_INFINITY);
    const chain = toTransform.options({ signal })(upper());
    const done = rejection(pipeline(readable, chain, new PassThrough().resume()));
    await sleep(1);
    controller.abort();
    assert.equal((await done).name, "AbortError");
    const source = toReadable(pipe(counted(Number.POSITIVE_INFINITY).readable, skip(1)), {
      signal: AbortSignal.abort(),
    });
    assert.equal((await rejection(toArray(source))).name, "AbortError");
    const sink = toWritable.options({ signal: AbortSignal.abort() })(collect());
    assert.equal((await rejection(pipeline(["a\n"], sink))).name, "AbortError");
    assert.equal((await failure(sink.result)).kind, "cancelled");
  }
  const outside = new AbortController();
  const chain = toTransform(upper());
  const signal = outside.signal;
  const done = rejection(
    pipeline(counted(Number.POSITIVE_INFINITY).readable, chain, new PassThrough().resume(), { signal }),
  );
  await sleep(1);
  outside.abort();
  assert.equal((await done).name, "AbortError");
});

test("a slow reader makes the writer wait", async () => {
  const total = process.env.MILLSTREAM_DEEP ? 100_000 : 6000;
  for (const output of ["bytes", "objects"] as const) {
    const { readable, given } = counted(total, 64);
    const chain = toTransform.options({ output, highWaterMark: 64, readableHighWaterMark: 16 })(upper());
    readable.pipe(chain);
    await sleep(30);
    const before = given();
    assert(before < 100, `${before} lines were read although no consumer requested them`);
    let seen = 0;
    for await (const chunk of chain) {
      seen += output === "objects" ? 1 : String(chunk).split("\n").length - 1;
      if (seen % 1000 === 0) {
        await sleep(0);
        assert(given() - seen < 200, `${given() - seen} lines are in progress`);
      }
    }
    assert.equal(seen, total);
  }
});

test("small data passes before the output is read", async () => {
  const chain = toTransform(upper());
  chain.end("a\nb\n");
  await finished(chain, { readable: false });
  assert.equal(String(chain.read()), "A\nB\n");
});

test("a pipeline that ends in a chain ends when all data has passed", async () => {
  const seen: string[] = [];
  const chain = toTransform(
    asyncMap(async (line: string) => {
      await sleep(1);
      seen.push(line);
      return line;
    }),
  );
  await pipeline(["a\nb\n", "c"], chain);
  assert.deepEqual(seen, ["a", "b", "c"]);
});

test("a chain that accepts no more data discards the rest", async () => {
  const { readable, given } = counted(20_000);
  const out = new PassThrough();
  const chunks = toArray(out);
  await pipeline(readable, toTransform(take(2)), out);
  assert.equal(Buffer.concat((await chunks) as Buffer[]).toString(), "line 0\nline 1\n");
  assert.equal(given(), 20_000);
});

test("many lines through many chains are unchanged", async () => {
  const lines = Array.from({ length: 50_000 }, (_, n) => `line ${n} ${"x".repeat(n % 90)}\n`).join("");
  const chunks = pieces(
    Buffer.from(lines),
    Array.from({ length: 60 }, (_, n) => n * 65_536),
  );
  const chains = Array.from({ length: 20 }, () => toTransform(map((line) => line)));
  const digest = (text: string) => createHash("sha256").update(text).digest("hex");
  assert.equal(digest(await through(chunks, ...chains)), digest(lines));
});

test("many stages that wait at once are not reported as a leak", async () => {
  const stages = Array.from({ length: 40 }, () => asyncMap((line: string) => sleep(1).then(() => line)));
  const lines = Array.from({ length: 100 }, (_, n) => `${n}\n`);
  assert.equal(await through(lines, toTransform(stages)), lines.join(""));
  await sleep(5);
  assert.deepEqual(stray, []);
});

test("skipped records are counted", async () => {
  let skipped = -1;
  const chain = toTransform.options({ onError: "skip", onSummary: (summary) => (skipped = summary.failed) })(
    map((line) => JSON.parse(line)),
    map((item) => JSON.stringify(item)),
  );
  assert.equal(await through(["1\n{\n2\n"], chain), "1\n2\n");
  assert.equal(skipped, 1);
});

test("readers and pipelines as Readable", async () => {
  const bytes = Buffer.from([97, 13, 10, 255, 254, 10, 98]);
  const raw = await toArray(toReadable(from([bytes.subarray(0, 4), bytes.subarray(4)])));
  assert.deepEqual(Buffer.concat(raw as Buffer[]), bytes);
  const delimited = await toArray(toReadable(from("a\r\nb"), { delimiter: "\0" }));
  assert.equal(Buffer.concat(delimited as Buffer[]).toString(), "a\0b\0");
  const items = await toArray(
    toReadable(
      pipe(
        [1, 2, 3],
        map((n) => n * n),
      ),
      { output: "objects" },
    ),
  );
  assert.deepEqual(items, [1, 4, 9]);
  assert.deepEqual(await toArray(toReadable(from("a\nb"), { output: "objects" })), ["a", "b"]);
  const text = await toArray(toReadable(pipe(from("a\nb"), upper())).setEncoding("utf8"));
  assert.equal(text.join(""), "A\nB\n");
});

test("a Readable that is destroyed closes its source, even if it was not read", async () => {
  for (const reads of [0, 1]) {
    let closed = 0;
    async function* source() {
      try {
        for (;;) yield "a\n";
      } finally {
        closed++;
      }
    }
    const reader = from(source());
    const readable = toReadable(reader);
    for (let read = 0; read < reads; read++) await readable[Symbol.asyncIterator]().next();
    readable.destroy();
    await new Promise((resolve) => (readable.closed ? resolve(null) : readable.once("close", resolve)));
    assert.equal((await failure(reader.nextBatch())).kind, "closed");
    // A generator that was not started has nothing to close.
    assert.equal(closed, reads);
  }
});

test("a reader's error becomes the Readable's error, after the data before it", async () => {
  async function* broken() {
    yield "a\n";
    throw new Error("boom");
  }
  const readable = toReadable(from(broken()));
  const got: string[] = [];
  const error = await failure(
    (async () => {
      for await (const chunk of readable) got.push(String(chunk));
    })(),
  );
  assert.deepEqual([error.kind, (error.cause as Error).message, got.join("")], ["io", "boom", "a\n"]);
});

test("a Writable with stages and a sink", async () => {
  const sum = toWritable(
    map((line) => line.length),
    fold(0, (all, length) => all + length),
  );
  await pipeline(["one\ntw", "o\nthree"], sum);
  assert.equal(await sum.result, 11);
  const memory = Writer.memory();
  const writer = toWritable(upper(), memory);
  await pipeline(["a\nb"], writer);
  assert.equal(Buffer.from((await writer.result).writer!.memory!).toString(), "A\nB\n");
  const first = toWritable(take(1), collect<string>());
  await pipeline(["a\nb\n", "c\n"], first);
  assert.deepEqual(await first.result, ["a"]);
});

test("a Writable fails if its pipeline fails, and abandons its sink when it is destroyed", async () => {
  const failing = toWritable(
    map((line) => JSON.parse(line)),
    collect<unknown>(),
  );
  const error = await failure(pipeline(["1\n{\n"], failing));
  assert.deepEqual([error.kind, error.record], ["stage_failed", 1]);
  assert.equal(await rejection(failing.result), error);
  const file = Writer.memory();
  const stopped = toWritable(file);
  stopped.write("a\n");
  await sleep(1);
  stopped.destroy();
  await new Promise((resolve) => stopped.once("close", resolve));
  assert.equal((await failure(file.close())).kind, "cancelled");
});

test("they are Node's own kinds of stream", () => {
  assert(toReadable([]) instanceof Readable);
  assert(toWritable(collect()) instanceof Writable);
  assert(toTransform() instanceof Duplex);
});
