// Invalid options and arguments: in every function, each causes a TypeError of this package before anything is
// opened.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import * as ms from "millstream";
import { cases } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
after(() => rmSync(directory, { recursive: true }));
const mark = join(directory, "started");

/** Calls of functions with options. None of them may open or start anything. */
const calls: { [name: string]: (options: any) => unknown } = {
  open: (options) => ms.open("no/such/file", options),
  remote: (options) => ms.remote("https://localhost/", options),
  fd: (options) => ms.fd(0, options),
  stdin: (options) => ms.stdin(options),
  command: (options) => ms.command("touch", [mark], options),
  pipeline: (options) => ms.pipeline([["touch", mark], ["cat"]], options),
  shell: (options) => ms.shell(`touch ${mark}`, options),
  from: (options) => ms.from("", options),
  lines: (options) => ms.lines("", options),
  "Writer.path": (options) => ms.Writer.path(join(directory, "output"), options),
  "Writer.fd": (options) => ms.Writer.fd(1, options),
  "Writer.stdout": (options) => ms.Writer.stdout(options),
  "Writer.command": (options) => ms.Writer.command("touch", [mark], options),
  "Writer.shell": (options) => ms.Writer.shell(`touch ${mark}`, options),
  "Writer.to": (options) => ms.Writer.to(new WritableStream(), options),
  "Writer.memory": (options) => ms.Writer.memory(options),
  "Writer.nowhere": (options) => ms.Writer.nowhere(options),
  "pipe.options": (options) => ms.pipe.options(options),
  asyncMap: (options) => ms.asyncMap(async (item) => item, options),
  through: (options) => ms.through("touch", [mark], options),
  throughShell: (options) => ms.throughShell(`touch ${mark}`, options),
  parallel: (options) => ms.parallel("no/such/module.js", options),
  lineFramer: (options) => ms.lineFramer(options),
  delimiter: (options) => ms.delimiter(";", options),
  anyOf: (options) => ms.anyOf(() => true, options),
  lengthPrefixed: (options) => ms.lengthPrefixed(options),
  csv: (options) => ms.csv(options),
  "reader.lines": (options) => ms.from("").lines(options),
  "reader.records": (options) => ms.from("").records(ms.lineFramer(), options),
  "reader.rows": (options) => ms.from("", { framer: ms.csv() }).rows(options),
  "reader.objects": (options) => ms.from("", { framer: ms.csv() }).objects(options),
  "reader.batches": (options) => ms.from("").batches(undefined, options),
  toReadable: (options) => ms.toReadable([], options),
  "toWritable.options": (options) => ms.toWritable.options(options),
  "toTransform.options": (options) => ms.toTransform.options(options),
  toWebReadable: (options) => ms.toWebReadable([], options),
  "toWebWritable.options": (options) => ms.toWebWritable.options(options),
  "toWebTransform.options": (options) => ms.toWebTransform.options(options),
  "bson.decode": (options) => ms.bson.decode(Uint8Array.of(5, 0, 0, 0, 0), options),
  "bson.decodeAll": (options) => ms.bson.decodeAll(new Uint8Array(0), options),
  "bson.check": (options) => ms.bson.check(new Uint8Array(0), options),
  "bson.columns": (options) => ms.bson.columns(new Uint8Array(0), options),
  "bson.columnBatches": (options) => ms.bson.columnBatches(new Uint8Array(0), options),
};

const commands = ["command", "pipeline", "shell"];
const stages = ["through", "throughShell"];
const nativeReaders = ["open", "fd", "stdin", ...commands, ...stages];
const readers = [...nativeReaders, "from", "lines"];
const inputs = ["toWritable.options", "toTransform.options", "toWebWritable.options", "toWebTransform.options"];
const pipelines = ["pipe.options", ...inputs];
const commandWriters = ["Writer.command", "Writer.shell"];
const started = [...commands, ...stages, ...commandWriters];
const nativeWriters = ["Writer.path", "Writer.fd", "Writer.stdout", ...commandWriters];
const writers = [...nativeWriters, "Writer.to", "Writer.memory"];
const columns = ["bson.columns", "bson.columnBatches"];

/** An option, invalid values, and the calls that accept the option. */
const wrong: [string, unknown[], string[]][] = [
  ["as", ["string", "Text", null, 1], [...readers, ...inputs, "reader.records"]],
  ["framer", [null, 1, "\n", {}, ms.lineFramer], [...readers, ...inputs]],
  ["keepDelimiter", ["no", 0, null], [...readers, ...inputs, "lineFramer", "delimiter", "anyOf", "reader.lines"]],
  ["recordLimit", [0, -1, 1.5, NaN, "64M", null], [...readers, ...inputs]],
  ["invalidUtf8", ["Error", "ignore", true], [...readers, ...inputs]],
  ["signal", [new AbortController(), 1, null], [...readers, ...writers, ...pipelines, "toReadable", "toWebReadable"]],
  ["name", [1, null], [...readers, ...writers]],
  ["decode", ["no", "on", false, true, null], readers],
  ["decodeLimit", [-1, "1G", null], nativeReaders],
  ["decodeRatio", [-1, 1.5, null], nativeReaders],
  ["decodeMemory", [-1, Infinity, null], nativeReaders],
  ["stallTimeout", [-1, "1s", null], [...nativeReaders, ...nativeWriters]],
  ["totalTimeout", [-1, "1s", null], nativeReaders],
  ["follow", ["grow", true, null], nativeReaders],
  ["pin", ["size", true, null], nativeReaders],
  ["native", ["yes", 1, null], ["bson.check", ...columns]],
  ["stdin", ["pipe", -1, 1.5, null, {}, new URL("https://a"), { fd: -1 }], commands],
  ["input", [1, null, true], commands],
  ["stdout", ["pipe", -1, null], commandWriters],
  ["currentDir", [1, null], started],
  ["env", [{ A: 1 }, "A=1", null], started],
  ["stderr", ["pipe", "ignore", true], started],
  ["allowFailure", ["ignore", 0, null], started],
  ["stderrLimit", [-1, 1.5, "1k", null], started],
  ["successStatuses", [1, ["1"], [0.5], null], started],
  ["successSignals", [15, ["SIGTERM"], null], started],
  ["stopSignal", [-1, 1.5, "SIGTERM", null], started],
  ["stopGrace", [-1, "1s", null], started],
  ["processGroup", ["new", true, null], started],
  ["capacity", [0, 1.5, "1k", Infinity], writers],
  ["flushPolicy", ["each", "full", {}, 1, null], writers],
  ["flushDelay", [-1, NaN, "1", null], writers],
  ["delimiter", [10, null, ["\n"]], [...writers, ...stages, "toReadable", "toTransform.options"]],
  ["encode", ["gz", "zst", "none", true], nativeWriters],
  ["level", [-1, 1.5, "6", null], nativeWriters],
  ["existing", ["Append", true, null], ["Writer.path"]],
  ["partial", ["Keep", true, null], ["Writer.path"]],
  ["durability", ["sync", true, null], ["Writer.path", "Writer.fd", "Writer.stdout"]],
  ["linger", [-1, "30s", NaN], ["Writer.to", "Writer.fd", "Writer.stdout"]],
  ["stamp", ["never", 1], pipelines],
  ["stats", ["yes", 1], pipelines],
  ["onError", ["Stop", "ignore", {}, { quarantine: 1 }, { quarantine() {}, more: 1 }, null], pipelines],
  ["onSummary", ["x", {}], pipelines],
  ["concurrency", [0, 1.5, "8"], ["asyncMap"]],
  ["ordered", ["no", 0], ["asyncMap", "parallel"]],
  ["workers", [0, 1.5, "8"], ["parallel"]],
  ["export", [1, null], ["parallel"]],
  ["width", [3, "4"], ["lengthPrefixed"]],
  ["endian", ["Big", "le"], ["lengthPrefixed"]],
  ["counts", ["self", true], ["lengthPrefixed"]],
  ["delimiter", [";;", "", "ü", 256, -1, null], ["csv"]],
  ["quote", ["''", 1.5, true], ["csv"]],
  ["escape", ["", 300], ["csv"]],
  ["comment", ["//", false], ["csv"]],
  ["lineEnd", ["lfcr", "\n", null], ["csv"]],
  ["doubledQuotes", [1, null], ["csv"]],
  ["blankRecords", ["skip", null], ["csv"]],
  ["literalQuotes", ["yes", null], ["csv"]],
  ["detectMark", ["no", null], ["csv"]],
  ["expectBytes", [-1, 1.5, "1G", null], ["open"]],
  ["expectHash", [1, null], ["open"]],
  ["expectRecords", [-1, 1.5, "3", null], ["open", "from"]],
  ["endpoint", [1, null], ["remote"]],
  ["idleTimeout", [-1, "1s", null], ["remote"]],
  ["retryFor", [-1, NaN, "1s", null], ["remote"]],
  ["allowUnknownLength", ["yes", 1, null], ["remote"]],
  ["allowLinkLocal", ["yes", 1, null], ["remote"]],
  ["rangeSize", [-1, 1.5, "8M", null], ["remote"]],
  ["connections", [-1, 1.5, "8", null], ["remote"]],
  ["anonymous", ["yes", 1, null], ["remote"]],
  ["partSize", [-1, 1.5, "16M", null], ["remote"]],
  ["sizeHint", [-1, 1.5, "1G", null], ["remote"]],
  ["headers", ["A: b", 1, null, { A: 1 }, [["A"]], [["A", "b", "c"]], [["A", 1]], ["Ab"]], ["remote"]],
  ["memory", ["new", true], ["reader.batches"]],
  ["input", ["object", true], inputs],
  ["output", ["object", true], ["toReadable", "toTransform.options", "toWebReadable", "toWebTransform.options"]],
  ["highWaterMark", [-1, "1"], [...inputs, "toReadable", "toWebReadable"]],
  ["readableHighWaterMark", [-1, "1"], ["toTransform.options", "toWebTransform.options"]],
  ["int64", ["BigInt", true], ["bson.decode", "bson.decodeAll"]],
  ["depth", [-1, 1001, "200"], ["bson.decode", "bson.decodeAll"]],
  ["schema", ["n", 1, null], columns],
  ["mixed", ["Json", true], columns],
  ["mismatch", ["nulls", null], columns],
  ["infer", [0, 1.5, "all"], columns],
  ["unknown", ["null", null], columns],
  ["absent", ["ignore", null], columns],
  ["memoryLimit", [-1, 2 ** 31, "1G"], columns],
  ["batchBytes", [0, "1"], ["bson.columnBatches"]],
];

function refused(call: () => unknown, kind: string, named: string | RegExp, what: string) {
  assert.throws(
    call,
    (error: ms.MillstreamError) => {
      assert(error instanceof TypeError && error instanceof ms.MillstreamError, `${what}: ${error}`);
      assert.equal(error.kind, kind, what);
      assert.equal(error.code, ms.ERROR_CODES[error.kind], what);
      assert(error.message.match(named), `${what}: ${error.message}`);
      return true;
    },
    what,
  );
}

test("every invalid value of every option is rejected", () => {
  for (const [option, values, names] of wrong) {
    for (const name of names) {
      for (const value of values) {
        const what = `${name} with ${option}: ${String(value)}`;
        refused(() => calls[name]({ [option]: value }), "invalid_option", new RegExp(`${option}: .*expected`), what);
      }
    }
  }
});

test("the names of options, and their words, are those of every language", () => {
  const rows = cases("options.tsv");
  const takers: { [of: string]: string[] } = {
    reader: ["open"],
    writer: ["Writer.path", "Writer.to"],
    command: ["command", "Writer.command"],
    remote: ["remote"],
  };
  const refusal = (name: string, option: string, value: unknown) => {
    try {
      calls[name]({ [option]: value });
    } catch (error) {
      return error as ms.MillstreamError;
    }
    throw new Error(`${name} accepts ${option}: ${value}`);
  };
  assert(rows.length > 20);
  for (const [of, snake, takes, otherwise = ""] of rows) {
    const option = snake.replace(/_./g, (pair) => pair[1].toUpperCase());
    const names = takers[of].filter((name) => !refusal(name, option, {}).found?.startsWith("the option "));
    const isOtherwise = otherwise.split("; ").some((why) => why.startsWith("node: "));
    assert.equal(names.length > 0, !isOtherwise, `${of} ${option}`);
    if (isOtherwise || !takes.includes("|")) continue;
    const words = takes.split("|").map((word) => JSON.stringify(word.replace("*", "")));
    const expected = refusal(names[0], option, "nonsense").expected?.split(/, | or /);
    assert.deepEqual(expected, words, `${of} ${option}`);
  }
});

test("advice names options and methods that exist", () => {
  const advice = Object.values(ms.ERROR_ADVICE).join();
  const names = [...advice.matchAll(/`(.*?)`/g)].map((found) => found[1]);
  for (const name of ["recordLimit", "allowFailure", "onError", "depth"]) assert(names.includes(name), name);
  for (const name of names) assert(name in ms.Reader.prototype || wrong.some(([option]) => option === name), name);
});

test("what commands, writers and pipelines report has the names of every language", async () => {
  let summary: ms.Summary | undefined;
  await ms.pipe.options({ onSummary: (given) => (summary = given) })([1], ms.count());
  const ended = ms.command("true");
  for await (const _ of ended);
  const reports: { [name: string]: object | undefined } = {
    command_end: ended.commandEnds[0],
    writer_end: await ms.Writer.memory().close(),
    summary,
  };
  for (const [name, ...members] of cases("names.tsv")) {
    for (const member of members) {
      const report = reports[name];
      const camel = name.replace(/_./g, (pair) => pair[1].toUpperCase());
      if (report) assert(member.replace(/_./g, (pair) => pair[1].toUpperCase()) in report, `${name} ${member}`);
      else {
        const taker = name === "on_error" ? "pipe.options" : "command";
        const expected = new RegExp(`expected .*"${member}"`);
        refused(() => calls[taker]({ [camel]: "nonsense" }), "invalid_option", expected, `${name} ${member}`);
      }
    }
  }
});

test("every unknown name, and arguments that are not options, are rejected", () => {
  for (const [name, call] of Object.entries(calls)) {
    refused(() => call({ onErorr: "skip" }), "invalid_option", /the option "onErorr", expected one of/, name);
    for (const none of [null, 3, "options", []]) refused(() => call(none), "invalid_option", "an object with", name);
  }
});

test("advice is about the option", () => {
  const advice = (options: any) => {
    try {
      ms.open("x", options);
    } catch (error) {
      return (error as ms.MillstreamError).advice;
    }
    return undefined;
  };
  assert.equal(advice({ recordLimt: 1 }), "correct its name, or remove it");
  assert.equal(advice({ recordLimit: 0 }), "change `recordLimit`");
  assert.equal(advice({ framer: ms.csv(), keepDelimiter: true }), "remove the other");
  assert.equal(advice(3), "pass options as `{ name: value }`");
});

test("undefined options are treated as missing", () => {
  for (const [option, , names] of wrong) {
    const starting = [...commands, ...commandWriters, "Writer.path"];
    const harmless = names.filter((name) => !starting.includes(name));
    for (const name of harmless) calls[name]({ [option]: undefined });
  }
});

test("invalid arguments are rejected", () => {
  const any = ms as any;
  const cases: [string, () => unknown][] = [
    ["command", () => any.command("echo", "hi")],
    ["command", () => any.command("echo", [1])],
    ["command", () => any.command("echo", ["a\0b"])],
    ["command", () => any.command(["echo", "hi"])],
    ["command", () => any.command("")],
    ["pipeline", () => any.pipeline([])],
    ["pipeline", () => any.pipeline("cat")],
    ["pipeline", () => any.pipeline(["cat", "sort"])],
    ["pipeline", () => any.pipeline([["cat", 1]])],
    ["shell", () => any.shell("")],
    ["shell", () => any.shell(["cat"])],
    ["shell", () => any.shell("cat\0")],
    ["Writer.shell", () => any.Writer.shell("")],
    ["Writer.command", () => any.Writer.command("cat", "file")],
    ["fd", () => any.fd("0")],
    ["fd", () => any.fd()],
    ["fd", () => any.fd(-1)],
    ["Writer.fd", () => any.Writer.fd("1")],
    ["take", () => any.take("3")],
    ["take", () => any.take()],
    ["skip", () => any.skip(-1)],
    ["batch", () => any.batch(0)],
    ["delimiter", () => any.delimiter(256)],
    ["delimiter", () => any.delimiter({})],
    ["delimiter", () => any.delimiter("")],
    ["anyOf", () => any.anyOf(10)],
    ["batches", () => any.from("").batches({})],
    ["matching", () => any.matching(any.from(""), 1)],
    ["lines", () => any.lines(any.from(""), { as: "bytes" })],
    ["from", () => any.from("", { framer: ms.lineFramer(), keepDelimiter: true })],
    ["toTransform", () => any.toTransform.options({ output: "objects", delimiter: "" })],
    ["toWritable", () => any.toWritable.options({ input: "objects" }).options({ as: "bytes" })],
  ];
  for (const [name, call] of cases) refused(call, "invalid_option", /found .*expected/, name);
  const others: [string, () => unknown][] = [
    ["open", () => any.open(3)],
    ["open", () => any.open("")],
    ["open", () => any.open(new URL("ftp://localhost/"))],
    ["open", () => any.open(new URL("s3://bucket/%ff"))],
    ["open", () => any.open({ name: "s3://bucket/key" })],
    ["remote", () => any.remote("names.txt")],
    ["remote", () => any.remote(new URL("file:///names.txt"))],
    ["remote", () => any.remote(undefined)],
    ["Writer.path", () => any.Writer.path(undefined)],
    ["Writer.path", () => any.Writer.path("a\0b")],
    ["tee", () => any.tee(3)],
    ["from", () => any.from(3)],
    ["pipe", () => any.pipe([], 3)],
    ["map", () => any.map("f")],
  ];
  for (const [name, call] of others) refused(call, "argument_invalid", /found .*expected/, name);
});

test("no call opened or started anything", async () => {
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert(!existsSync(mark));
  assert.deepEqual(readdirSync(directory), []);
});

test("an error of wrong use keeps its class when details are added", async () => {
  const batch = await ms.from("one\n").nextBatch();
  refused(() => batch!.texts("Error" as never), "invalid_option", "invalid", "texts");
  const wrong = ms.pipe([3], ms.Writer.nowhere());
  await assert.rejects(wrong, TypeError);
});
