// Tests for defects that the native part could have: growing memory, mixed-up blocks, remaining processes and
// threads.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { anyOf, command, lineFramer, lines, native } from "millstream";
import { failure, repository, sleep, toArray } from "./twin.js";

const threads = () => readdirSync("/proc/self/task").length;

test("without the native part, importing works, and calls that need it name the package to install", () => {
  const entry = fileURLToPath(new URL("bindings/node/dist/index.js", repository));
  // A module that was moved finds no native part next to it.
  const program = `
    import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
    import { tmpdir } from "node:os";
    import { join } from "node:path";
    const directory = mkdtempSync(join(tmpdir(), "millstream-"));
    cpSync(${JSON.stringify(entry)}, directory + "/index.mjs");
    cpSync(${JSON.stringify(entry.replace("index.js", "core-wasm.js"))}, directory + "/core-wasm.js");
    writeFileSync(directory + "/package.json", '{ "type": "module" }');
    const { command, fd, from, native, open, remote, stdin, Writer } = await import(directory + "/index.mjs");
    rmSync(directory, { recursive: true });
    for await (const line of from(["one"])) console.log(line, native.available, typeof native.reason);
    for (const call of [() => command("echo"), () => open("a"), () => fd(0), () => stdin(), () => from(Uint8Array.of(31, 139, 8)),
      () => open("s3://a/b"), () => remote("s3://a/b"), () => Writer.path("a"), () => Writer.path("s3://a/b"), () => Writer.fd(1), () => Writer.stdout(), () => Writer.command("cat")]) {
      try { call(); } catch (error) { console.log(error.kind, error.message.includes("millstream-" + process.platform + "-" + process.arch)); }
    }
  `;
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  assert.deepEqual([run.stdout, run.stderr], [`one false string\n${"unsupported true\n".repeat(12)}`, ""]);
});

test("it has this version", () => {
  assert.match(native.version!, /^\d+\.\d+\.\d+/);
  assert.equal(native.reason, undefined);
});

test("lines that cross blocks, in each kind of memory, with its own line ends and with others", async () => {
  const count = 200_000;
  const framers = [lineFramer(), lineFramer({ keepDelimiter: true }), anyOf((byte) => byte === 10)];
  for (const memory of ["kept", "reused"] as const) {
    for (const framer of framers) {
      const reader = command("seq", [`${count}`]);
      let next = 1;
      let bytes = 0;
      for await (const batch of reader.batches(framer, { memory })) {
        assert.deepEqual([batch.firstRecord, batch.offset, batch.offsets[0]], [next - 1, bytes, 0]);
        assert.equal(batch.offsets[batch.length], batch.bytes.length);
        for (const text of batch.texts()) assert.equal(Number(text), next++);
        bytes += batch.bytes.length;
      }
      assert.equal(next - 1, count);
    }
  }
});

test("strings are the same whether they are split, like the first ones, or sliced, like later ones", async () => {
  let next = 1;
  for await (const line of command("seq", ["300000"])) assert.equal(line, `${next++}`);
  assert.equal(next, 300_001);
});

test("batches that are kept do not change", async () => {
  const kept: { texts(): string[] }[] = [];
  for await (const batch of command("seq", ["200000"]).batches()) kept.push(batch);
  assert.deepEqual(
    kept.flatMap((batch) => batch.texts()).map(Number),
    Array.from({ length: 200_000 }, (_, index) => index + 1),
  );
});

test("the memory of a batch may be transferred", async () => {
  let count = 0;
  const reader = command("sh", ["-c", "for i in 1 2 3 4; do head -c 100000 /dev/zero | tr '\\0' '\\n'; done"]);
  for await (const batch of reader.batches(undefined, { memory: "reused" })) {
    count += batch.length;
    structuredClone(batch.bytes.buffer, { transfer: [batch.bytes.buffer as ArrayBuffer] });
  }
  assert.equal(count, 400_000);
});

test("memory stays flat over many batches", async () => {
  const reader = command("sh", ["-c", "yes 'a line of some length' | head -c 300000000"]);
  let batches = 0;
  let before = 0;
  for await (const _ of reader.batches(undefined, { memory: "reused" })) {
    if (++batches === 200) before = process.memoryUsage.rss();
  }
  assert(batches > 1000, `${batches} batches`);
  const grown = process.memoryUsage.rss() - before;
  assert(grown < 64 << 20, `${grown} bytes`);
});

test("readers that are closed early leave no thread and no process", async () => {
  const before = threads();
  const pids: number[] = [];
  for (let round = 0; round < 20; round++) {
    const reader = command("sh", ["-c", "echo $$; exec yes"]);
    for await (const line of reader) {
      pids.push(Number(line));
      break;
    }
    await reader.close();
  }
  assert.deepEqual(
    pids.filter((pid) => existsSync(`/proc/${pid}`)),
    [],
  );
  for (let wait = 0; wait < 500 && threads() > before; wait++) await sleep(10);
  // Threads of earlier tests may have ended by now.
  assert(threads() <= before, `${threads()} threads, ${before} before`);
});

test("a silent standard input does not delay the exit", async () => {
  const entry = new URL("bindings/node/dist/index.js", repository).href;
  const program = `
    const { stdin } = await import(${JSON.stringify(entry)});
    const reader = stdin();
    const waiting = reader.nextBatch().catch((error) => console.log(error.kind));
    setTimeout(() => reader.close(), 50);
    await waiting;
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["pipe", "pipe", "inherit"] });
  const said = toArray(lines(child.stdout));
  // Its standard input stays open until it has exited.
  assert.deepEqual([await said, (await once(child, "close"))[0]], [["closed"], 0]);
  child.stdin.destroy();
});

test("many silent commands do not block Node's own threads", async () => {
  const readers = Array.from({ length: 8 }, () => command("sleep", ["60"]));
  const waits = readers.map((reader) => failure(reader.nextBatch()));
  const { readFile } = await import("node:fs/promises");
  assert((await readFile(fileURLToPath(import.meta.url))).length > 0);
  await Promise.all(readers.map((reader) => reader.close()));
  for (const error of await Promise.all(waits)) assert.equal(error.kind, "closed");
});

test("a worker that is terminated closes its reader and stops its command", async () => {
  const entry = new URL("bindings/node/dist/index.js", repository).href;
  const program = `
    const { parentPort } = require("node:worker_threads");
    import(${JSON.stringify(entry)}).then(async ({ command }) => {
      for await (const line of command("sh", ["-c", "echo $$; exec sleep 60"])) parentPort.postMessage(line);
    });
  `;
  const worker = new Worker(program, { eval: true });
  const pid = Number(await new Promise((resolve) => worker.once("message", resolve)));
  assert(existsSync(`/proc/${pid}`));
  await worker.terminate();
  for (let wait = 0; wait < 1000 && existsSync(`/proc/${pid}`); wait++) await sleep(10);
  assert(!existsSync(`/proc/${pid}`));
});
