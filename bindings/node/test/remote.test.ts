// Objects of web servers and object stores. The store is tools/object-server; what needs real servers is tested in
// crates/remote/tests/servers.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { after, before, test as plainTest } from "node:test";
import { inspect } from "node:util";
import { Worker } from "node:worker_threads";
import { gunzipSync } from "node:zlib";
import {
  bson,
  collect,
  columns,
  command,
  count,
  csv,
  type MillstreamError,
  map,
  open,
  openSplit,
  type PathWriterOptions,
  pipe,
  planSplits,
  type RemoteOptions,
  remote,
  type Split,
  Writer,
} from "millstream";
import { cases, failure, lacksPython, objectServer, repository, toArray } from "./twin.js";

let address: string;
let silent: Server;
const connections = new Set<Socket>();
let stop = () => {};

before(async () => {
  if (lacksPython) return;
  ({ address, stop } = await objectServer());
  // A server that accepts connections and never answers.
  silent = createServer((socket) => {
    connections.add(socket);
    socket.on("close", () => connections.delete(socket)).on("error", () => {});
    socket.resume();
  });
  await once(silent.listen(0, "127.0.0.1"), "listening");
});

after(() => {
  stop();
  silent?.close();
});

const test = (name: string, body: () => Promise<void>) => plainTest(name, { skip: lacksPython }, body);

const object = (key: string, options: RemoteOptions = {}) =>
  remote(`s3://bucket/${key}`, { anonymous: true, endpoint: address, ...options });

const silentAddress = () => `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;

async function put(key: string, content: string | Uint8Array) {
  const writer = Writer.path(object(key));
  await writer.write(content);
  await writer.close();
}

/** Returns the status and the bytes of an object. */
async function get(key: string): Promise<[number, Buffer]> {
  const response = await fetch(`${address}/bucket/${key}`);
  return [response.status, Buffer.from(await response.arrayBuffer())];
}

const isMissing = async (key: string) => assert.equal((await get(key))[0], 404, key);

/** Returns the error that a call throws. */
function thrown(call: () => unknown): any {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

/** Runs a program with the package as `ms` in a new process. */
function run(program: string, env: NodeJS.ProcessEnv = {}) {
  const entry = new URL("bindings/node/dist/index.js", repository).href;
  const whole = `import * as ms from ${JSON.stringify(entry)};\n${program}`;
  const options = { encoding: "utf8", env: { ...process.env, ...env }, timeout: 60_000 } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", whole], options);
  return { status, stdout, stderr };
}

for (const [text, isUrl] of cases("urls.tsv")) {
  plainTest(`urls.tsv: ${text}`, async () => {
    const error = await failure(bson.open(text));
    assert.equal(error.kind === "unsupported" && error.found === "a URL", isUrl === "true", error.message);
    if (isUrl !== "true") assert.match(thrown(() => remote(text)).message, /^remote: .*expected https:/);
    else assert.equal(open(text).name, remote(text).name);
  });
}

test("an object is written and read, given by a string, a URL or with options", async () => {
  const writer = Writer.path(object("a.txt"));
  await writer.write("one\ntwo\n");
  await isMissing("a.txt");
  assert.equal((await writer.close()).bytes, 8);
  const url = `${address}/bucket/a.txt`;
  for (const place of [
    url,
    url.replace("http", "HTTP"),
    new URL(url),
    remote(url),
    remote(new URL(url)),
    object("a.txt"),
  ]) {
    assert.deepEqual(await toArray(open(place)), ["one", "two"]);
  }
  assert.equal(open(object("a.txt")).name, "s3://bucket/a.txt");
  assert.equal(object("a.txt").name, "s3://bucket/a.txt");
  // One description can be used any number of times.
  const both = object("a.txt");
  await pipe(
    open(both),
    map((line) => `${line}!`),
    Writer.path(both),
  );
  assert.deepEqual(await toArray(open(both)), ["one!", "two!"]);
});

test("a key is as it is written in a string, and encoded in a URL", async () => {
  const key = "50% of a#b?c+d é";
  await put(key, "x\n");
  const options = { anonymous: true, endpoint: address };
  const encoded = new URL(`s3://bucket/${encodeURIComponent(key)}`);
  assert.deepEqual(await toArray(open(remote(encoded, options))), ["x"]);
  assert.deepEqual(await toArray(open(object(key))), ["x"]);
  assert.equal(remote(new URL("s3://bucket/a b?c#d"), options).name, "s3://bucket/a b?c#d");
});

test("URLs of a store are paths if the environment has its address", async () => {
  const program = `
    await ms.pipe(["one", "two"], ms.Writer.path("s3://bucket/environment.txt"));
    console.log(await ms.pipe(ms.open(new URL("S3://bucket/environment.txt")), ms.collect()));
  `;
  const env = { AWS_ENDPOINT_URL: address, AWS_SKIP_SIGNATURE: "true", AWS_ALLOW_HTTP: "true" };
  assert.deepEqual(run(program, env), { status: 0, stdout: "[ 'one', 'two' ]\n", stderr: "" });
});

test("objects are compressed by their names and decoded by their content", async () => {
  await pipe(["one", "two"], Writer.path(object("a.gz")));
  const [, bytes] = await get("a.gz");
  assert.equal(gunzipSync(bytes).toString(), "one\ntwo\n");
  assert.deepEqual(await toArray(open(object("a.gz"))), ["one", "two"]);
  assert.deepEqual(await toArray(open(`${address}/bucket/a.gz`)), ["one", "two"]);
  const raw = await open(object("a.gz"), { decode: "off", as: "bytes" }).nextBatch();
  assert.deepEqual(Buffer.from(raw!.bytes), bytes);
  await pipe(["one"], Writer.path(object("plain.gz"), { encode: "off" }));
  assert.equal((await get("plain.gz"))[1].toString(), "one\n");
  assert.equal(thrown(() => Writer.path(object("a.lz4"))).kind, "unsupported");
});

test("an object of 3 MB, in ranges and as a whole", async () => {
  const lines = Array.from({ length: 400_000 }, (_, index) => `${index}`.padStart(7, "0"));
  await pipe(lines, Writer.path(object("large.txt")));
  assert.equal((await get("large.txt"))[1].length, 3_200_000);
  for (const place of [object("large.txt"), object("large.txt", { rangeSize: 100_000, connections: 3 })]) {
    assert.deepEqual(await pipe(open(place), collect()), lines);
  }
});

test("an object that does not exist, and a store that does not", async () => {
  const error = await failure(open(object("none.txt")).nextBatch());
  assert.deepEqual([error.kind, error.code], ["open_failed", "MILLSTREAM_OPEN_FAILED"]);
  assert.match(error.message, /^s3:\/\/bucket\/none\.txt: open failed: found .*404.*NoSuchKey/);
  assert.equal((await failure(open(`${address}/bucket/none`).nextBatch())).kind, "open_failed");
  const writer = Writer.path(remote("s3://another/key", { anonymous: true, endpoint: address }));
  await writer.write("one\n");
  const refused = await failure(writer.close());
  assert.equal(refused.kind, "open_failed");
  assert.match(refused.message, /^s3:\/\/another\/key: .*NoSuchBucket/);
});

test("a body that ends early is an error after its last record, and never an end", async () => {
  await put("whole.txt", "one\ntwo\nthree\nfour\n");
  const found: string[] = [];
  const reader = open(`${address}/bucket/cut/whole.txt`);
  const reading = async () => {
    for await (const line of reader) found.push(line);
  };
  const error = await failure(reading());
  assert.deepEqual([error.kind, error.code], ["remote_failed", "MILLSTREAM_REMOTE_FAILED"]);
  assert.deepEqual([found, error.line], [["one", "two"], 3]);
  assert.match(error.message, /\/bucket\/cut\/whole\.txt: remote failed/);
  const counted: unknown[] = [];
  const options = { onSummary: (summary: unknown) => counted.push(summary) };
  const piped = await failure(
    pipe.options(options)(open(`${address}/bucket/cut/whole.txt`), Writer.path(object("copy"))),
  );
  assert.deepEqual([piped.kind, counted.length], ["remote_failed", 1]);
  await isMissing("copy");
});

test("headers are sent with each request, and their values are shown nowhere", async () => {
  const value = "Bearer s3cret";
  for (const headers of [{ "X-Key": value }, [["X-Key", value]] as const, new Headers({ "X-Key": value })]) {
    const described = remote(`${address}/bucket/headers`, { headers });
    assert((await toArray(open(described))).includes(`x-key: ${value}`));
    const missing = await failure(open(remote(`${address}/bucket/none`, { headers })).nextBatch());
    for (const text of [
      inspect(described, { depth: 9 }),
      JSON.stringify(described),
      missing.message,
      inspect(missing),
    ]) {
      assert(!text.includes("s3cret"), text);
    }
  }
  for (const headers of [
    "A: s3cret",
    { A: ["s3cret"] },
    [["s3cret"]],
    { "s3cret b": "s3cret" },
    { A: "s3cret\n" },
  ] as any[]) {
    const error = thrown(() => remote(address, { headers }));
    assert.deepEqual([error.kind, error instanceof TypeError], ["invalid_option", true]);
    assert(!inspect(error).includes("s3cret"), error.message);
  }
});

test("users, passwords and queries are shown nowhere", async () => {
  const url = `${address.replace("//", "//me:s3cret@")}/bucket/none?token=s3cret`;
  const reader = open(url);
  assert.equal(reader.name, `${address}/bucket/none`);
  assert(!inspect(await failure(reader.nextBatch())).includes("s3cret"));
  for (const call of [
    () => open("http://me:s3cret@:80/"),
    () => remote("ftp://me:s3cret@host/"),
    () => Writer.path(url),
  ]) {
    assert(!inspect(thrown(call)).includes("s3cret"));
  }
});

test("an object does not appear if its writer is aborted or its pipeline fails", async () => {
  const started = async (key: string, options: PathWriterOptions = {}) => {
    const writer = Writer.path(object(key), options);
    await writer.write("one\n");
    await writer.flush();
    return writer;
  };
  await (await started("aborted")).abort();
  {
    await using _ = await started("disposed");
  }
  const controller = new AbortController();
  const cancelled = await started("cancelled", { signal: controller.signal });
  controller.abort();
  assert.equal((await failure(cancelled.close())).name, "AbortError");
  async function* broken() {
    yield "one";
    throw new Error("no");
  }
  const error = await failure(pipe(broken(), Writer.path(object("failed.gz"))));
  assert.equal((error.cause as Error).message, "no");
  await failure(pipe(command("sh", ["-c", "echo one; exit 3"]), Writer.path(object("failed"))));
  for (const key of ["aborted", "disposed", "cancelled", "failed.gz", "failed"]) await isMissing(key);
});

test("an object whose writer was never closed does not appear when the process exits", async () => {
  for (const ending of ["", "process.exit(0);"]) {
    const { status, stderr } = run(`
      const writer = ms.Writer.path(ms.remote("s3://bucket/unclosed", { anonymous: true, endpoint: ${JSON.stringify(address)} }));
      await writer.write("one\\n");
      await writer.flush();
      ${ending}
    `);
    assert.equal(status, 1);
    const expected = /^millstream: s3:\/\/bucket\/unclosed: its writer was never closed, so its output does not appear/;
    assert.match(stderr, expected);
    await isMissing("unclosed");
  }
});

test("create_new does not replace an object", async () => {
  const create = () => pipe(["one"], Writer.path(object("new"), { existing: "create_new" }));
  await create();
  const error = await failure(create());
  assert.deepEqual([error.kind, error.code], ["already_exists", "MILLSTREAM_ALREADY_EXISTS"]);
  assert.match(error.message, /^s3:\/\/bucket\/new: already exists/);
  // An object that another program creates in the meantime.
  const late = Writer.path(object("late"), { existing: "create_new" });
  await late.write("mine\n");
  await late.flush();
  await put("late", "other\n");
  assert.equal((await failure(late.close())).kind, "already_exists");
  assert.equal((await get("late"))[1].toString(), "other\n");
});

test("what cannot be written, and invalid URLs, are refused before anything is opened", async () => {
  for (const url of [`${address}/bucket/a`, remote("https://localhost/a")]) {
    const error = thrown(() => Writer.path(url));
    assert.deepEqual([error.kind, error.code], ["unsupported", "MILLSTREAM_UNSUPPORTED"]);
    assert.match(error.message, /an upload to a web server/);
  }
  for (const url of ["s3://bucket", "s3://bucket/", "s3:///key", "http://", "gs://bucket", "AZ://container/"]) {
    for (const call of [open, Writer.path, remote]) {
      const error = thrown(() => call(url));
      assert.deepEqual([error.kind, error instanceof TypeError], ["invalid_option", true], url);
    }
  }
  const options: PathWriterOptions[] = [
    { existing: "append" },
    { existing: "append_unchecked" },
    { partial: "keep" },
    { durability: "data" },
    { flushDelay: 10 },
    { level: 3 },
    { encode: "gzip", level: 100 },
  ];
  for (const given of options) {
    const error = thrown(() => Writer.path(object("a"), given));
    assert.deepEqual([error.kind, error instanceof TypeError], ["invalid_option", true], inspect(given));
    assert.match(error.message, /^s3:\/\/bucket\/a: invalid option: found .*, expected /);
  }
  for (const given of [{ rangeSize: 0 }, { connections: 0 }, { idleTimeout: 0 }]) {
    assert.equal(thrown(() => object("a", given)).kind, "invalid_option", inspect(given));
  }
  assert.equal(thrown(() => Writer.path(object("a", { partSize: 3 }))).kind, "invalid_option");
  assert.equal((await failure(open(object("a"), { follow: "growing" }).nextBatch())).kind, "invalid_option");
});

test("an object is divided into splits, which any process reads", async () => {
  const text = `id,name\n${Array.from({ length: 500 }, (_, n) => `${n},"a\n${n}"\n`).join("")}`;
  await put("table.csv", text);
  for (const place of [object("table.csv"), `${address}/bucket/table.csv?secret`]) {
    const plan = await planSplits(place, { framer: csv(), size: 1000 });
    assert.deepEqual([plan.size, plan.records, plan.splits.length > 3], [Buffer.byteLength(text), 501, true]);
    const rows: unknown[] = [];
    for (const split of JSON.parse(JSON.stringify(plan.splits))) {
      const options = typeof place === "string" ? {} : { remote: place };
      const reader = openSplit(split, options);
      assert.equal(reader.name.includes("secret"), false);
      rows.push(...(await toArray(reader.rows())));
    }
    assert.equal(rows.length, 501);
    assert.deepEqual(rows[500], ["499", "a\n499"]);
    assert.equal(plan.splits[0]?.url, typeof place === "string" ? place : "s3://bucket/table.csv");
  }
  const { splits } = await planSplits(object("table.csv"));
  await put("table.csv", `${text} `);
  const error = await failure(toArray(openSplit(splits[0] as Split, { remote: object("table.csv") })));
  assert.equal(error.kind, "source_changed");
  assert.match(error.message, /^s3:\/\/bucket\/table.csv: .* the version with the ETag/);
  assert.equal(thrown(() => openSplit(splits[0] as Split, { remote: "s3://a/b" as any })).kind, "invalid_option");
});

test("calls that need a file refuse URLs", async () => {
  const refuses = (error: MillstreamError) => {
    assert.equal(error.kind, "unsupported");
    assert.match(error.message, /found a URL, expected the path of a file/);
  };
  for (const url of ["s3://bucket/a", "https://localhost/a", new URL("https://localhost/a"), object("a")] as any[]) {
    refuses(await failure(bson.open(url)));
  }
  refuses(await failure(planSplits("names.txt", { index: "https://localhost/a" })));
  refuses(await failure(planSplits("names.txt", { index: new URL("s3://bucket/a") })));
  for (const stdin of ["https://localhost/a", new URL("https://localhost/a")] as any[]) {
    assert.equal(thrown(() => command("cat", [], { stdin })).kind, "invalid_option");
  }
});

test("objects are read like files by every other call", async () => {
  await put("people.csv", 'id,name\n1,"Ann\nLee"\n');
  const people = open(object("people.csv"), { framer: csv() });
  assert.deepEqual(
    (await toArray(people.objects())).map(({ name }) => name),
    ["Ann\nLee"],
  );
  await put("items.json", '{"items": [{"id": 3}, {"id": 4}]}');
  assert.deepEqual(await toArray(open(object("items.json"), { jsonElements: "/items" }).json()), [
    { id: 3 },
    { id: 4 },
  ]);
  await put("names.txt", "b\na\n");
  assert.deepEqual(await toArray(command("sort", [], { input: open(object("names.txt")) })), ["a", "b"]);
  await put("one.bson.gz", Buffer.from("0c000000106e000500000000", "hex"));
  for (const source of [
    object("one.bson.gz"),
    `${address}/bucket/one.bson.gz`,
    new URL(`${address}/bucket/one.bson.gz`),
  ]) {
    const [columns] = await toArray(bson.columnBatches(source));
    assert.deepEqual([...columns.column("n", "int").values], [5]);
  }
  await put("table.csv.gz", "a\n1\n2\n");
  for (const source of [object("table.csv.gz"), `${address}/bucket/table.csv.gz`]) {
    const table = columns(source);
    await toArray(table);
    assert.equal(table.rows, 2);
  }
  assert.equal((await failure(toArray(columns(object("none.csv"))))).kind, "open_failed");
  assert.equal((await failure(toArray(columns(object("none.csv"), { infer: "all" })))).kind, "open_failed");

  // Types from all records: an object of which the version is known is read twice.
  await put("late.csv", `n\n${"1\n".repeat(20_000)}2.5\n`);
  for (const source of [object("late.csv"), `${address}/bucket/late.csv`, open(object("late.csv"))]) {
    const table = columns(source, { format: "csv", infer: "all" });
    assert.deepEqual(await table.fields(), [{ name: "n", type: "float64" }]);
    await toArray(table);
    assert.equal(table.rows, 20_001);
  }
  const once = await failure(toArray(columns(`${address}/bucket/once/late.csv`, { infer: "all" })));
  assert.equal(once.kind, "invalid_option");
  assert.match(once.message, /an object without ranges or a strong ETag/);
});

test("an abort or a close ends an opening that gets no answer, and other code runs meanwhile", async () => {
  const connected = once(silent, "connection");
  const controller = new AbortController();
  const reading = failure(open(`${silentAddress()}/a`, { signal: controller.signal }).nextBatch());
  await connected;
  controller.abort(new Error("enough"));
  const error = await reading;
  assert.deepEqual([error.name, error.code, error.kind], ["AbortError", "ABORT_ERR", "cancelled"]);
  assert.equal((error.cause as Error).message, "enough");

  const again = once(silent, "connection");
  const reader = open(`${silentAddress()}/a`);
  const waiting = failure(reader.nextBatch());
  await again;
  await reader.close();
  assert.equal((await waiting).kind, "closed");

  const third = once(silent, "connection");
  const stopping = new AbortController();
  const options = { anonymous: true, endpoint: silentAddress() };
  const writer = Writer.path(remote("s3://bucket/key", options), { signal: stopping.signal });
  await writer.write("one\n");
  const closing = failure(writer.close());
  await third;
  stopping.abort();
  assert.equal((await closing).name, "AbortError");

  const fourth = once(silent, "connection");
  const aborted = Writer.path(remote("s3://bucket/key", options));
  const pipeline = new AbortController();
  const piping = failure(pipe.options({ signal: pipeline.signal })(["one"], aborted));
  await fourth;
  pipeline.abort();
  assert.equal((await piping).kind, "cancelled");
  // The connections were given up, too.
  while (connections.size > 0) await once([...connections][0], "close");
});

test("a time limit ends an opening that gets no answer", async () => {
  const error = await failure(open(`${silentAddress()}/a`, { totalTimeout: 50 }).nextBatch());
  assert.equal(error.kind, "timed_out");
  const stalled = await failure(open(remote(`${silentAddress()}/a`, { idleTimeout: 50, retryFor: 0 })).nextBatch());
  assert.equal(stalled.kind, "remote_failed");
});

test("a process exits while an object is opened", async () => {
  const program = `
    const reading = ms.open(process.env.SILENT + "/a").nextBatch();
    setTimeout(() => process.exit(7), 100);
    await reading;
  `;
  assert.equal(run(program, { SILENT: silentAddress() }).status, 7);
});

test("in a worker thread", async () => {
  const entry = new URL("bindings/node/dist/index.js", repository).href;
  const program = `
    const { parentPort, workerData } = require("node:worker_threads");
    import(workerData.entry).then(async ({ collect, open, pipe, remote, Writer }) => {
      const object = remote("s3://bucket/worker.zst", { anonymous: true, endpoint: workerData.address });
      await pipe(["one", "two"], Writer.path(object));
      parentPort.postMessage(await pipe(open(object), collect()));
    });
  `;
  for (let round = 0; round < 2; round++) {
    const worker = new Worker(program, { eval: true, workerData: { entry, address } });
    const [[found], [status]] = await Promise.all([once(worker, "message"), once(worker, "exit")]);
    assert.deepEqual([found, status], [["one", "two"], 0]);
  }
});

test("an object described by the CommonJS build is read by this one", async () => {
  await put("shared", "one\n");
  const other = createRequire(import.meta.url)("millstream") as { remote: typeof remote };
  assert.notEqual(other.remote, remote);
  const described = other.remote("s3://bucket/shared", { anonymous: true, endpoint: address });
  assert.equal(await pipe(open(described), count()), 1);
});

plainTest("a browser has no URLs as sources: they come from fetch", async () => {
  const browser = await import(new URL("bindings/node/dist/browser.js", repository).href);
  assert(!("remote" in browser));
  for (const url of ["https://localhost/a.bson", new URL("https://localhost/a.bson")]) {
    const error = await failure(browser.bson.columnBatches(url).next());
    assert.equal(error.kind, "unsupported");
    assert.match(error.message, /found a URL, expected a reader: from\(await fetch\(url\)\)/);
    assert.equal((await failure(browser.bson.open(url))).kind, "unsupported");
  }
});
