// What commands get as their standard input, and commands as stages of a pipeline.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, createReadStream, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { open as openFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import {
  collect,
  command,
  filter,
  forEach,
  lines,
  map,
  open,
  type Pipeline,
  pipe,
  pipeline,
  type Summary,
  shell,
  take,
  through,
  throughShell,
} from "millstream";
import { failure, repository, sleep, toArray } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
after(() => rmSync(directory, { recursive: true }));
const file = join(directory, "names.txt");
writeFileSync(file, "b\na\n");

const sorted = (input: Parameters<typeof command>[2]) => toArray(command("sort", [], input));

test("standard input as text, bytes, a file, an iterable, a stream or a reader", async () => {
  const expected = ["a", "b"];
  async function* later() {
    yield "b\n";
    await sleep(5);
    yield Buffer.from("a\n");
  }
  assert.deepEqual(await sorted({ input: "b\na\n" }), expected);
  assert.deepEqual(await sorted({ input: "" }), []);
  assert.deepEqual(await sorted({ input: Buffer.from("b\na\n") }), expected);
  assert.deepEqual(await sorted({ input: new TextEncoder().encode("b\na\n").buffer as ArrayBuffer }), expected);
  assert.deepEqual(await sorted({ input: ["b\n", "a\n"] }), expected);
  assert.deepEqual(await sorted({ input: later() }), expected);
  assert.deepEqual(await sorted({ input: createReadStream(file) }), expected);
  assert.deepEqual(await sorted({ input: new Blob(["b\n", "a\n"]) }), expected);
  assert.deepEqual(await sorted({ input: new Response("b\na\n") }), expected);
  assert.deepEqual(await sorted({ input: new Blob(["b\n", "a\n"]).stream() }), expected);
  assert.deepEqual(await sorted({ input: command("printf", ["b\\na\\n"]) }), expected);
  assert.deepEqual(await sorted({ stdin: pathToFileURL(file) }), expected);
  const handle = await openFile(file);
  assert.deepEqual(await sorted({ stdin: handle }), expected);
  await handle.close();
  const fd = openSync(file, "r");
  assert.deepEqual(await sorted({ stdin: fd }), expected);
  closeSync(fd);
  assert.deepEqual(await toArray(pipeline([["sort"], ["head", "-n", "1"]], { input: "b\na\n" })), ["a"]);
  assert.deepEqual(await toArray(shell("sort | head -n 1", { input: ["b\n", "a\n"] })), ["a"]);
});

test("the bytes of a reader are passed on unchanged, decompressed if it decompresses", async () => {
  const compressed = join(directory, "names.gz");
  writeFileSync(compressed, gzipSync("b\r\na"));
  const cat = command("od", ["-An", "-tx1"], { input: open(compressed) });
  assert.deepEqual(await toArray(cat), [" 62 0d 0a 61"]);
  assert.deepEqual(await toArray(command("wc", ["-c"], { input: open(compressed, { decode: "off" }) })), [
    String(gzipSync("b\r\na").length),
  ]);
});

test("input and output of any size flow at the same time", async () => {
  const bytes = Buffer.alloc(5_000_000, "0123456789abcde\n");
  function* pieces() {
    for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
  }
  for (const input of [bytes, bytes.toString(), pieces(), Readable.from(pieces())]) {
    let count = 0;
    for await (const batch of command("cat", [], { input }).batches()) count += batch.bytes.length;
    assert.equal(count, bytes.length);
  }
});

test("an input that waits for the command's output gets it", async () => {
  const seen: string[] = [];
  let answer: () => void = () => {};
  async function* questions() {
    for (let question = 1; question <= 3; question++) {
      const answered = new Promise<void>((resolve) => {
        answer = resolve;
      });
      yield `${question}\n`;
      await answered;
    }
  }
  for await (const line of command("cat", [], { input: questions() })) {
    seen.push(line);
    answer();
  }
  assert.deepEqual(seen, ["1", "2", "3"]);
});

test("a command need not read its input, which is closed when the command has ended", async () => {
  let closed = 0;
  async function* endless() {
    try {
      for (;;) {
        yield "a\n";
        await sleep(0);
      }
    } finally {
      closed++;
    }
  }
  // A generator ends when its wait is over.
  const areClosed = async (count: number) => {
    while (closed < count) await sleep(1);
    assert.equal(closed, count);
  };
  assert.deepEqual(await toArray(command("head", ["-n", "1"], { input: endless() })), ["a"]);
  await areClosed(1);
  assert.deepEqual(await toArray(command("true", [], { input: "x".repeat(1_000_000) })), []);
  const never = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) };
  assert.deepEqual(await toArray(command("true", [], { input: never })), []);
  const error = await failure(toArray(command("sh", ["-c", "exit 3"], { input: endless() })));
  assert.equal(error.command?.status, 3);
  // Closing early closes the input, too.
  const reader = command("cat", [], { input: endless() });
  for await (const _ of reader) break;
  await reader.close();
  await areClosed(3);
  assert.equal(
    (await failure(toArray(command("no-such-program", [], { input: endless() })))).kind,
    "command_not_started",
  );
});

test("an input that fails is an error after the command's last record", async () => {
  const found: string[] = [];
  async function* broken() {
    yield "a\nb\n";
    throw new RangeError("no more");
  }
  const read = async (reader: AsyncIterable<string>) => {
    for await (const line of reader) found.push(line);
  };
  const error = await failure(read(command("cat", [], { input: broken() })));
  assert.deepEqual(
    [error.kind, error.stream, (error.cause as Error).name, found],
    ["io", "cat", "RangeError", ["a", "b"]],
  );
  const truncated = join(directory, "truncated.gz");
  writeFileSync(truncated, gzipSync("b\na\n").subarray(0, -4));
  const cut = await failure(sorted({ input: open(truncated) }));
  assert.deepEqual([cut.kind, cut.stream], ["decode_truncated", truncated]);
  assert.equal((await failure(sorted({ input: ["a\n", 1 as never] }))).kind, "argument_invalid");
  assert.equal((await failure(sorted({ stdin: pathToFileURL("/no/such/file") }))).kind, "open_failed");
  assert.throws(() => sorted({ input: "a", stdin: 0 }), {
    kind: "invalid_option",
    message: /stdin together with input/,
  });
});

test("a command that is not read keeps the process alive no longer than its input", () => {
  const entry = fileURLToPath(new URL("bindings/node/dist/index.js", repository));
  const program = `
    import { command } from ${JSON.stringify(entry)};
    function* endless() { for (;;) yield "0123456789abcde\\n".repeat(1000); }
    for await (const line of command("cat", [], { input: endless() })) { console.log(line); break; }
  `;
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    timeout: 20_000,
    encoding: "utf8",
  });
  assert.deepEqual([run.status, run.stdout, run.stderr], [0, "0123456789abcde\n", ""]);
});

test("a command as a stage", async () => {
  const source = () => lines("b 1\na 2\nb 3\n");
  assert.deepEqual(
    await pipe(
      source(),
      filter((line: string) => line.startsWith("b")),
      through("tr", ["a-z", "A-Z"]),
      map((line: string) => `${line}!`),
      collect(),
    ),
    ["B 1!", "B 3!"],
  );
  const bytes = await pipe(
    [Buffer.from("b"), "a"],
    through("od", ["-An", "-tx1"], { delimiter: "", as: "bytes" }),
    collect(),
  );
  assert.deepEqual(Buffer.concat(bytes).toString(), " 62 61");
  assert.deepEqual(await pipe(source(), throughShell("sort | uniq -w 1"), collect()), ["a 2", "b 1"]);
  // Two commands in a row, and a pipeline without a sink.
  const open: Pipeline<string> = pipe(source(), through("sort"), through("head", ["-n", "1"]));
  assert.deepEqual(await toArray(open), ["a 2"]);
});

test("statistics and commands of a stage", async () => {
  let summary: Summary | undefined;
  const start = pipe.options({ stats: true, onSummary: (given) => (summary = given) });
  await start(
    command("seq", ["3"]),
    through("grep", ["-v", "2"]),
    forEach(() => {}),
  );
  const { records, items, commands, stages } = summary!;
  assert.deepEqual([records, items], [3, 2]);
  assert.deepEqual(
    commands.map(({ argv }) => argv[0]),
    ["seq", "grep"],
  );
  assert.deepEqual([stages[0].name, stages[0].itemsIn, stages[0].items], ["through", 3, 2]);
});

test("errors before, in and after a command arrive after every record before them", async () => {
  const found: unknown[] = [];
  const run = (...stages: any[]) => {
    found.length = 0;
    return failure(
      pipe(
        lines("1\n2\n3\n4\n"),
        stages,
        forEach((line) => found.push(line)),
      ),
    );
  };
  const failing = map((line: string) => {
    if (line === "3") throw new Error("three");
    return line;
  });
  const before = await run(failing, through("cat"));
  assert.deepEqual([before.kind, before.stage, before.record, before.stream], ["stage_failed", 0, 2, undefined]);
  assert.deepEqual(found, ["1", "2"]);
  const inside = await run(through("sh", ["-c", "cat; exit 3"], { stderr: "capture" }));
  assert.deepEqual([inside.kind, inside.command?.status, found], ["command_failed", 3, ["1", "2", "3", "4"]]);
  const following = await run(through("cat"), failing);
  assert.deepEqual([following.stage, following.record, found], [1, 2, ["1", "2"]]);
  const wrong = await failure(pipe([{}], through("cat") as never, collect()));
  assert.equal(wrong.kind, "argument_invalid");
});

test("a stage that needs no more items, or is cancelled, stops the command and the source", async () => {
  const source = command("yes");
  assert.deepEqual(await pipe(source, through("cat"), take<string>(2), collect()), ["y", "y"]);
  assert.equal(source.commandEnds.length, 1);
  const other = command("yes");
  const stopped = await failure(
    pipe.options({ signal: AbortSignal.timeout(50) })(other, through("sh", ["-c", "sleep 60"]), collect()),
  );
  assert.equal(stopped.name, "AbortError");
  assert.equal(other.commandEnds.length, 1);
  assert.deepEqual(await pipe(command("yes"), through("head", ["-n", "2"]), collect()), ["y", "y"]);
});
