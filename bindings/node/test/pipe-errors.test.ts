import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { after, test } from "node:test";
import {
  asyncMap,
  batch,
  collect,
  command,
  count,
  delimiter,
  filter,
  flatMap,
  fold,
  forEach,
  from,
  inspect,
  type MillstreamError,
  map,
  matching,
  merge,
  type PipeOptions,
  type PipeSource,
  parallel,
  pipe,
  type Reader,
  type Sink,
  type Stage,
  scanState,
  take,
  tee,
  toReadable,
  Writer,
} from "millstream";
import { failure, sleep } from "./twin.js";

const unhandled: unknown[] = [];
process.on("unhandledRejection", (reason) => unhandled.push(reason));
after(async () => {
  await sleep(20);
  assert.deepEqual(unhandled, [], "unhandled rejections");
});

const numbers = (length: number) => Array.from({ length }, (_, i) => i);
const RECORDS = 6;

/** Stages of every kind that pass numbers on and call `f` for each. */
const KINDS: Record<string, (f: (x: number) => void) => Stage<number, number>> = {
  map: (f) => map((x) => (f(x), x)),
  filter: (f) => filter((x) => (f(x), true)),
  flatMap: (f) => flatMap((x) => (f(x), [x])),
  generator: (f) =>
    flatMap(function* (x: number) {
      f(x);
      yield x;
    }),
  inspect: (f) => inspect((x) => f(x)),
  scan: (f) =>
    scanState(
      () => 0,
      (_, x: number) => (f(x), x),
    ),
  asyncDeclared: (f) => map(async (x) => (f(x), x)),
  asyncWaiting: (f) =>
    map(async (x) => {
      await sleep((x * 3) % 4);
      f(x);
      return x;
    }),
  asyncFilter: (f) => filter(async (x) => (f(x), true)),
  asyncInspect: (f) => inspect(async (x) => f(x)),
  asyncScan: (f) =>
    scanState(
      () => 0,
      async (_, x: number) => (f(x), x),
    ),
  sometimes: (f) => map((x) => (x % 2 ? (f(x), x) : sleep(1).then(() => (f(x), x)))),
  asyncMap: (f) => asyncMap(async (x: number) => (await sleep((x * 3) % 4), f(x), x), { concurrency: 3 }),
};

const plain = () => map((x: number) => x);
const pass = () => [plain(), filter((x: number) => x >= 0)];

test("an error at every stage and record: earlier records reach the sink, and the error names its record", async () => {
  for (const [kind, make] of Object.entries(KINDS)) {
    for (const place of [0, 1, 2]) {
      for (let bad = 0; bad < RECORDS; bad++) {
        const failing = make((x) => {
          if (x === bad) throw new RangeError(`no ${x}`);
        });
        const stages: Stage<any, any>[] = [plain(), ...pass()];
        stages.splice(place, 1, failing);
        for (const options of [{}, { stamp: "always" }] satisfies PipeOptions[]) {
          const taken: number[] = [];
          const error = await failure(
            pipe.options(options)(
              numbers(RECORDS),
              stages,
              forEach((x: number) => taken.push(x)),
            ),
          );
          const label = `${kind} at ${place}, record ${bad}`;
          assert.deepEqual(
            [error.kind, error.code, error.record, error.stage],
            ["stage_failed", "MILLSTREAM_STAGE_FAILED", bad, place],
            label,
          );
          assert((error.cause as Error) instanceof RangeError);
          assert.deepEqual(taken, numbers(bad), label);
        }
      }
    }
  }
});

test("skip and quarantine continue without the record and count it", async () => {
  for (const [kind, make] of Object.entries(KINDS)) {
    const bad = (x: number) => {
      if (x % 4 === 1) throw new Error(`no ${x}`);
    };
    const good = numbers(50).filter((x) => x % 4 !== 1);
    let summary: any;
    const onSummary = (of: unknown) => (summary = of);
    const skipped = await pipe.options({ onError: "skip", onSummary })(numbers(50), make(bad), plain(), collect());
    assert.deepEqual(skipped, good, kind);
    assert.deepEqual([summary.failed, summary.firstFailure.record], [13, 1], kind);
    const isolated: [unknown, number | undefined][] = [];
    const quarantine = async (item: unknown, error: MillstreamError) => {
      await sleep(0);
      isolated.push([item, error.record]);
    };
    const rest = await pipe.options({ onError: { quarantine }, onSummary })(numbers(50), make(bad), plain(), collect());
    assert.deepEqual(rest, good, kind);
    assert.equal(summary.failed, 13);
    assert.deepEqual(
      isolated.map(([, record]) => record),
      numbers(50).filter((x) => x % 4 === 1),
      kind,
    );
  }
});

test("a quarantine is a sink, too", async () => {
  const objects: unknown[] = [];
  const sink = new Writable({
    objectMode: true,
    write(item, _encoding, done) {
      objects.push(item);
      done();
    },
  });
  const throws = map((x: number) => {
    if (x > 7) throw new Error("too large");
    return x;
  });
  assert.equal(await pipe.options({ onError: { quarantine: sink } })(numbers(10), throws, count()), 8);
  assert.deepEqual(objects, [8, 9]);
  assert(sink.writableFinished);
});

test("the record's number is its number in the source, after stages that drop and add items", async () => {
  const stages = [
    filter((x: number) => x % 3 === 0),
    flatMap((x: number) => [x, x]),
    batch<number>(7),
    filter((x: number) => x % 2 === 0),
    map((x: number) => {
      if (x === 3000) throw new Error("boom");
      return x;
    }),
  ] as const;
  const error = await failure(pipe(numbers(5000), ...stages, collect()));
  assert.equal(error.record, 3000);
  const later = [filter((x: number) => x % 3 === 0), asyncMap(async (x: number) => x), plain(), stages[4]] as const;
  assert.equal((await failure(pipe(numbers(5000), ...later, collect()))).record, 3000);
});

test("if two records fail, the earlier one is reported", async () => {
  const failAt = (n: number) =>
    map((x: number) => {
      if (x === n) throw new Error(`no ${n}`);
      return x;
    });
  const taken: number[] = [];
  const error = await failure(
    pipe(
      numbers(10),
      failAt(7),
      failAt(4),
      forEach((x) => taken.push(x)),
    ),
  );
  assert.deepEqual([error.record, error.stage, taken], [4, 1, numbers(4)]);
});

test("sinks that fail", async () => {
  const error = await failure(
    pipe(
      numbers(10),
      forEach((x) => {
        if (x === 5) throw new Error("no");
      }),
    ),
  );
  assert.deepEqual([error.kind, error.record, error.stage], ["stage_failed", 5, 0]);
  assert.equal(
    (
      await failure(
        pipe(
          numbers(9),
          fold(0, async () => Promise.reject(new Error("no"))),
        ),
      )
    ).record,
    0,
  );
  const broken = new Writable({
    objectMode: true,
    write(item, _encoding, done) {
      done(item === 3 ? new Error("full") : null);
    },
  });
  let closed = false;
  function* source() {
    try {
      for (let i = 0; ; i++) yield i;
    } finally {
      closed = true;
    }
  }
  const failed = await failure(pipe(source(), broken));
  assert.equal((failed.cause as Error).message, "full");
  assert(closed);
  const teed = await failure(
    pipe(numbers(10), tee(forEach(() => Promise.reject(new Error("tee"))) as never), collect()),
  );
  assert.equal((teed.cause as Error).message, "tee");
});

test("a stream that other code closes is an error, not a hang", async () => {
  const closing = new Writable({
    objectMode: true,
    highWaterMark: 1,
    write(item) {
      if (item === 3) closing.destroy();
      else arguments[2]();
    },
  });
  assert.match((await failure(pipe(numbers(10), closing))).message, /closed before everything was written/);
});

test("a source that fails, after everything it delivered", async () => {
  async function* broken() {
    yield 1;
    yield 2;
    throw new Error("boom");
  }
  for (const source of [() => broken(), () => merge(broken()), () => pipe(broken(), plain())]) {
    const taken: number[] = [];
    const error = await failure(
      pipe(
        source(),
        plain(),
        asyncMap(async (x) => x),
        forEach((x) => taken.push(x)),
      ),
    );
    assert.equal((error.cause as Error).message, "boom");
    assert.deepEqual(taken, [1, 2]);
  }
});

test("a signal at every moment: the pipeline ends, the source is closed, nothing is left later", async () => {
  const kinds: Record<string, Stage<number, number>> = {
    plain: plain(),
    slow: map((x: number) => sleep(1).then(() => x)),
    never: map((x: number) => (x === 5 ? new Promise<number>(() => {}) : x)),
    asyncMap: asyncMap((x: number) => (x === 5 ? new Promise<number>(() => {}) : sleep(1).then(() => x))),
  };
  for (const [kind, stage] of Object.entries(kinds)) {
    for (const moment of [-1, 0, 1, 3, 10]) {
      const controller = new AbortController();
      let closed = false;
      async function* source() {
        try {
          for (let i = 0; ; i++) {
            if (i % 10 === 0) await sleep(1);
            yield i;
          }
        } finally {
          closed = true;
        }
      }
      if (moment < 0) controller.abort();
      else setTimeout(() => controller.abort(), moment);
      const { signal } = controller;
      const error = await failure(
        pipe.options({ signal })(
          source(),
          stage,
          forEach(() => sleep(0)),
        ),
      );
      assert.equal(error.kind, "cancelled", `${kind} at ${moment}`);
      await sleep(5);
      assert(closed || moment < 0, `${kind} at ${moment}`);
    }
  }
});

test("a signal ends a wait for a sink that never accepts data", async () => {
  const stuck = new Writable({ objectMode: true, highWaterMark: 1, write() {} });
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 10);
  const { signal } = controller;
  assert.equal((await failure(pipe.options({ signal })(numbers(10), stuck))).kind, "cancelled");
  assert(stuck.destroyed);
});

test("promises that are rejected after the failing one are ignored", async () => {
  const error = await failure(
    pipe(
      numbers(20),
      map((x) => (x < 3 ? x : Promise.reject(new Error(`no ${x}`)))),
      collect(),
    ),
  );
  assert.equal(error.record, 3);
  const mapped = asyncMap((x: number) => sleep(x % 3).then(() => Promise.reject(new Error(`no ${x}`))));
  assert.equal((await failure(pipe(numbers(20), mapped, collect()))).record, 0);
});

test("a reader is the source of one pipeline: a second one always fails", async () => {
  const used: [string, () => Promise<Reader<string>>][] = [
    ["read to its end", async () => ended(from("one\ntwo\n"))],
    ["iterated to its end", async () => iterated(from("one\ntwo\n"))],
    ["left early", async () => left(from("one\ntwo\n"))],
    ["under way", async () => underWay(from("one\ntwo\n"))],
  ];
  const ended = async (reader: Reader<string>) => {
    assert.equal(await pipe(reader, count()), 2);
    return reader;
  };
  const iterated = async (reader: Reader<string>) => {
    for await (const _ of reader);
    return reader;
  };
  const left = async (reader: Reader<string>) => {
    assert.deepEqual(await pipe(reader, take(1), collect()), ["one"]);
    return reader;
  };
  const underWay = async (reader: Reader<string>) => {
    for await (const line of pipe(reader)) if (line === "one") break;
    return reader;
  };
  for (const [name, use] of used) {
    for (const start of [
      (reader: Reader<string>) => pipe(reader, collect()),
      (reader: Reader<string>) => pipe(merge(reader, from("x\n")), collect()),
      (reader: Reader<string>) => pipe(matching(reader, "o"), collect()),
      (reader: Reader<string>) => toReadable(reader).toArray(),
    ]) {
      assert.equal((await failure(start(await use()))).kind, "closed", name);
    }
  }
  // A pipeline continues where a loop stopped.
  const reader = from("header\none\ntwo\n");
  for await (const line of reader) if (line === "header") break;
  assert.deepEqual(await pipe(reader, collect()), ["one", "two"]);
});

test("a response that is not ok has no content", async () => {
  const missing = () => new Response("<p>not here\n</p>", { status: 404, statusText: "Not Found" });
  const error = await failure(pipe(from(missing()), count()));
  assert.deepEqual([error.kind, error.found], ["open_failed", "status 404 Not Found"]);
  const response = missing();
  await from(response).close();
  assert(response.bodyUsed || response.body?.locked === false);
  assert.equal(await pipe(from(new Response("one\ntwo\n", { status: 206 })), count()), 2);
});

test("the error of a stage names the source and the line, if all records are lines", async () => {
  const refuse = (line: string) => {
    if (line === "x") throw new TypeError("no x");
    return line;
  };
  const places = async (source: () => PipeSource<string>) => {
    const found: unknown[] = [];
    for (const stage of [map(refuse), asyncMap(async (line: string) => refuse(line)), parallel(refuse)]) {
      const { stream, line, record } = await failure(pipe(source(), stage, collect()));
      found.push([stream, line, record]);
    }
    return found;
  };
  const three = (place: unknown) => [place, place, place];
  const text = "a\nb\nx\n";
  assert.deepEqual(await places(() => from(text, { name: "names.txt" })), three(["names.txt", 3, 2]));
  assert.deepEqual(await places(() => from(text)), three([undefined, 3, 2]));
  assert.deepEqual(await places(() => from("a;b;x", { framer: delimiter(";") })), three([undefined, undefined, 2]));
  assert.deepEqual(await places(() => ["a", "b", "x"]), three([undefined, undefined, 2]));
  const { message } = await failure(pipe(from(text, { name: "names.txt" }), map(refuse), collect()));
  assert.match(message, /^names\.txt: stage failed: no x, in stage 0 \(the first is 0\), at line 3; /);
  // After a record that is not a line, the lines are not known.
  const mixed = from("a;b\nx\n");
  await mixed.records(delimiter(";")).next();
  assert.deepEqual((await failure(pipe(mixed, map(refuse), collect()))).line, undefined);
});

test("an error in a sink names the sink and not a stage", async () => {
  const sinks = [forEach(refuseX), fold(0, (_: number, line: string) => (refuseX(line), 0))];
  for (const sink of sinks) {
    const { message } = await failure(pipe(from("a\nx\n", { name: "names.txt" }), sink as Sink<string, unknown>));
    assert.match(message, /^names\.txt: stage failed: no x, in the sink, at line 2; /);
  }
});

function refuseX(line: string) {
  if (line === "x") throw new Error("no x");
}

test("a value that a writer refuses has its place", async () => {
  const lengths = (): PipeSource<any> => from("a\n\nccc\n", { name: "names.txt" });
  const some = map((line: string) => (line === "ccc" ? 3 : line));
  for (const parts of [
    [some, Writer.memory()],
    [some, tee(Writer.memory()), collect()],
  ] as never[][]) {
    const error = await failure((pipe as any)(lengths(), ...parts));
    assert.deepEqual([error.kind, error.stream, error.line, error.record], ["argument_invalid", "names.txt", 3, 2]);
    assert.match(error.message, /found number, expected a string or bytes, at line 3; /);
  }
});

test("a function of `parallel` that refers to an outer variable is told about threads", async () => {
  const factor = 3;
  const { message } = await failure(
    pipe(
      ["1"],
      parallel((line: string) => Number(line) * factor),
      collect(),
    ),
  );
  assert.match(message, /expected a function that uses only its argument .* worker thread.*: factor is not defined/);
});

test("the failure of a command is in no line, unless it cut one short", async () => {
  const whole = await failure(pipe(command("sh", ["-c", "seq 1000; exit 3"]), count()));
  assert.deepEqual([whole.kind, whole.line, whole.record], ["command_failed", undefined, undefined]);
  assert.doesNotMatch(whole.message, /line/);
  const cut = await failure(pipe(command("sh", ["-c", "seq 1000; printf x; exit 3"]), count()));
  assert.deepEqual([cut.line, cut.record], [1001, 1000]);
});
