import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import {
  asyncMap,
  collect,
  count,
  filter,
  from,
  map,
  pipe,
  type Stage,
  take,
  toWebReadable,
  toWebTransform,
  toWebWritable,
  Writer,
} from "millstream";
import { failure, pieces, sleep, toArray } from "./twin.js";

// Every test must close these.
const stray: unknown[] = [];
process.on("unhandledRejection", (error) => stray.push(error));
process.on("warning", (warning) => stray.push(warning));
after(async () => {
  await sleep(20);
  assert.deepEqual(
    stray.filter((warning: any) => warning?.name !== "ExperimentalWarning"),
    [],
  );
});

const upper = () => map((line: string) => line.toUpperCase());

function stream(chunks: Iterable<unknown>): ReadableStream<any> {
  const iterator = chunks[Symbol.iterator]();
  return new ReadableStream({
    pull(controller) {
      const { done, value } = iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}

function endless() {
  const seen = { given: 0, cancelled: undefined as unknown };
  const readable = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (seen.given % 64 === 0) await sleep(0);
        controller.enqueue(Buffer.from(`line ${seen.given++}\n`));
      },
      cancel(reason) {
        seen.cancelled = reason;
      },
    },
    { highWaterMark: 0 },
  );
  return { readable, seen };
}

const text = (readable: ReadableStream<any>) => new Response(readable).text();

async function rejection(promise: Promise<unknown>): Promise<any> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

test("a chain in pipeThrough, for any chunks", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.stringMatching(/^[a-zäß🦀]{0,9}$/u), { maxLength: 40 }),
      fc.array(fc.nat(300), { maxLength: 12 }),
      async (lines, cuts) => {
        const bytes = new TextEncoder().encode(lines.join("\n"));
        const chunks = pieces(
          bytes,
          cuts.sort((a, b) => a - b).filter((cut) => cut < bytes.length),
        );
        const kept = lines.at(-1) === "" ? lines.slice(0, -1) : lines;
        const expected = kept.filter((line) => line !== "a").map((line) => `<${line}>\n`);
        const chain = toWebTransform(
          filter((line) => line !== "a"),
          map((line) => `<${line}>`),
        );
        assert.equal(await text(stream(chunks).pipeThrough(chain)), expected.join(""));
      },
    ),
  );
});

test("objects in, objects out", async () => {
  const chain = toWebTransform.options({ input: "objects", output: "objects" })(
    map((item: { n: number }) => item.n),
    asyncMap((n: number) => sleep(n % 3).then(() => n * 2)),
  );
  const items = Array.from({ length: 300 }, (_, n) => ({ n }));
  assert.deepEqual(
    await toArray(stream(items).pipeThrough(chain) as never),
    items.map(({ n }) => 2 * n),
  );
  const parse = toWebTransform.options({ output: "objects" })(map((line) => JSON.parse(line)));
  const print = toWebTransform.options({ input: "objects" })(map((item) => JSON.stringify(item)));
  assert.equal(
    await text(stream(['{"a":1}\n{"b"', ":2}"]).pipeThrough(parse).pipeThrough(print)),
    '{"a":1}\n{"b":2}\n',
  );
});

test("an error of a stage reaches both sides", async () => {
  for (const stage of [map, asyncMap] as ((f: (line: string) => unknown) => Stage<string, any>)[]) {
    const { readable, seen } = endless();
    const chain = toWebTransform(
      stage((line) => {
        if (line === "line 7") throw new Error("boom");
        return line;
      }),
    );
    const error = await failure(text(readable.pipeThrough(chain)));
    assert.deepEqual([error.kind, error.record], ["stage_failed", 7]);
    await sleep(1);
    assert.equal(seen.cancelled, error);
  }
});

test("an error of the source reaches the reader, and cancelling reaches the source", async () => {
  const broken = new ReadableStream({
    start(controller) {
      controller.enqueue("a\n");
    },
    async pull() {
      await sleep(1);
      throw new Error("source");
    },
  });
  assert.equal((await rejection(text(broken.pipeThrough(toWebTransform(upper()))))).message, "source");
  for (let turns = 0; turns < 12; turns++) {
    const { readable, seen } = endless();
    const reader = readable.pipeThrough(toWebTransform(upper())).getReader();
    for (let turn = 0; turn < turns; turn++) await reader.read();
    const reason = new Error("enough");
    await reader.cancel(reason);
    await sleep(0);
    assert.equal(seen.cancelled, reason);
  }
});

test("a chain that accepts no more data cancels the source", async () => {
  const { readable, seen } = endless();
  assert.equal(await text(readable.pipeThrough(toWebTransform(take(2)))), "line 0\nline 1\n");
  await sleep(1);
  assert(seen.cancelled instanceof TypeError);
  assert(seen.given < 20);
});

test("a slow reader makes the writer wait", async () => {
  const { readable, seen } = endless();
  const reader = readable.pipeThrough(toWebTransform(upper())).getReader();
  await sleep(20);
  assert(seen.given < 20, `${seen.given} lines were read although no consumer requested them`);
  for (let chunk = 0; chunk < 1000; chunk++) {
    assert.equal((await reader.read()).done, false);
    assert(seen.given - chunk < 20);
  }
  await reader.cancel();
});

test("a signal ends both sides with its reason", async () => {
  for (const when of ["before", "during"]) {
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new Error("no more");
    if (when === "before") controller.abort(reason);
    else setTimeout(() => controller.abort(reason), 5);
    const { readable, seen } = endless();
    assert.equal(await rejection(text(readable.pipeThrough(toWebTransform.options({ signal })(upper())))), reason);
    await sleep(1);
    assert.equal(seen.cancelled, reason);
    assert.equal(await rejection(text(toWebReadable(from(endless().readable), { signal }))), reason);
    assert.equal(await rejection(endless().readable.pipeTo(toWebWritable.options({ signal })(count()))), reason);
  }
});

test("readers and pipelines as ReadableStream", async () => {
  assert.equal(await text(toWebReadable(from("a\r\nb"))), "a\r\nb");
  assert.equal(await text(toWebReadable(from("a\r\nb"), { delimiter: ";" })), "a;b;");
  assert.equal(await text(toWebReadable(pipe(from("a\nb"), upper()))), "A\nB\n");
  const items = toWebReadable(
    pipe(
      [1, 2, 3],
      map((n) => n * n),
    ),
    { output: "objects", highWaterMark: 2 },
  );
  assert.deepEqual(await toArray(items as never), [1, 4, 9]);
  const reader = from(endless().readable);
  await toWebReadable(reader).cancel();
  assert.equal((await failure(reader.nextBatch())).kind, "closed");
});

test("the reader may transfer the chunks", async () => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `line ${n}\n`).join("");
  for (const source of [from(lines), pipe(from(lines), upper())]) {
    let length = 0;
    const reader = toWebReadable(source).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      structuredClone(value, { transfer: [value.buffer] });
    }
    assert.equal(length, lines.length);
  }
});

test("a WritableStream with stages and a sink", async () => {
  const lines = toWebWritable(upper(), collect<string>());
  await stream(["a\nb", "c"]).pipeTo(lines);
  assert.deepEqual(await lines.result, ["A", "BC"]);
  const failing = toWebWritable(
    map((line) => JSON.parse(line)),
    collect<unknown>(),
  );
  const { readable, seen } = endless();
  const error = await failure(readable.pipeTo(failing));
  assert.deepEqual([error.kind, error.record, seen.cancelled], ["stage_failed", 0, error]);
  const memory = Writer.memory();
  const given = toWebWritable(memory);
  await given.abort(new Error("enough"));
  assert.equal((await failure(memory.close())).kind, "cancelled");
  assert.throws(() => toWebWritable(upper() as never), { kind: "argument_invalid" });
});
