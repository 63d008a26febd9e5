// Wrong use: calls after close, a close that is repeated or forgotten, forgotten awaits, readers and writers that are
// collected in the middle, and worker threads that end.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { collect, command, from, map, type Pipeline, pipe, Writer } from "millstream";
import { failure, repository } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
after(() => rmSync(directory, { recursive: true }));
const entry = JSON.stringify(fileURLToPath(new URL("bindings/node/dist/index.js", repository)));

function run(program: string, environment: { [name: string]: string } = {}) {
  const options = {
    cwd: directory,
    encoding: "utf8",
    timeout: 30_000,
    env: { ...process.env, ...environment },
  } as const;
  const all = `import * as ms from ${entry};
    const collected = async (done) => {
      for (let i = 0; i < 600 && !done(); i++) {
        globalThis.gc();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    ${program}`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--expose-gc", "--input-type=module", "-e", all],
    options,
  );
  return { status, stdout, stderr };
}

test("a reader after close: every call fails with the same error, and closing again works", async () => {
  const reader = command("seq", ["1000000"]);
  await reader.nextBatch();
  await reader.close();
  await reader.close();
  const calls = [
    () => reader.nextBatch(),
    () => reader.skipRecord(),
    () => reader[Symbol.asyncIterator]().next(),
    () => reader.batches().next(),
    () => pipe(reader, collect()),
  ];
  for (const call of calls) assert.equal((await failure(call())).code, "MILLSTREAM_CLOSED");
});

test("a writer after close and after abort", async () => {
  const closed = Writer.memory();
  await closed.write("a");
  const end = await closed.close();
  assert.equal(await closed.close(), end);
  await closed.abort();
  const aborted = Writer.memory();
  await aborted.abort();
  await aborted.abort();
  for (const writer of [closed, aborted]) {
    assert.throws(() => writer.write("b"), { code: "MILLSTREAM_CLOSED" });
    assert.throws(() => writer.writeRecords(["b"]), { code: "MILLSTREAM_CLOSED" });
    assert.equal((await failure(writer.flush())).code, "MILLSTREAM_CLOSED");
  }
  assert.equal((await failure(aborted.close())).code, "MILLSTREAM_CLOSED");
});

test("a pipeline's parts after its end", async () => {
  const source = from("a\nb\n");
  const writer = Writer.memory();
  await pipe(source, writer);
  assert.equal((await failure(pipe(source, collect()))).code, "MILLSTREAM_CLOSED");
  assert.throws(() => writer.write("c"), { code: "MILLSTREAM_CLOSED" });
  const open: Pipeline<number> = pipe(
    from("a\n"),
    map((line) => line.length),
  );
  await open.close();
  await open.close();
  assert.equal((await open[Symbol.asyncIterator]().next()).done, true);
});

test("forgotten awaits: writes keep their order, and a close that is not awaited still completes the file", () => {
  const { status, stderr } = run(`
    const writer = ms.Writer.path("unawaited.txt", { capacity: 16 });
    for (let i = 0; i < 1000; i++) writer.write(i + "\\n");
    writer.close();
  `);
  assert.deepEqual([status, stderr], [0, ""]);
  const expected = Array.from({ length: 1000 }, (_, i) => `${i}\n`).join("");
  assert.equal(readFileSync(join(directory, "unawaited.txt"), "utf8"), expected);
});

test("a failure that no call awaits is an unhandled rejection, not silence", () => {
  const { status, stderr } = run(`ms.pipe(ms.command("false"), ms.count());`);
  assert.equal(status, 1);
  assert.match(stderr, /the command `false` exited with status 1/);
});

test("a file whose writer was never closed is reported when the process exits", () => {
  for (const ending of ["", "process.exit(0);"]) {
    const { status, stderr } = run(`
      const writer = ms.Writer.path("lost.txt");
      await writer.write("one\\n");
      ${ending}
    `);
    assert.equal(status, 1, stderr);
    assert.match(
      stderr,
      /^millstream: lost\.txt: its writer was never closed, so its output does not appear; await its `close`\n$/,
    );
    assert.deepEqual(
      readdirSync(directory).filter((name) => name.includes("lost")),
      [],
    );
  }
});

test("a writer that was closed, aborted, disposed of or owned by a pipeline is not reported", () => {
  const { status, stderr } = run(
    `
    const closed = ms.Writer.path("closed.txt");
    await closed.write("one\\n");
    await closed.close();
    const aborted = ms.Writer.path("aborted.txt");
    await aborted.write("one\\n");
    await aborted.abort();
    await ms.pipe(["one"], ms.Writer.path("piped.txt"));
    await ms.pipe((function* () { yield "one"; throw new Error("no"); })(), ms.Writer.path("failed.txt")).catch(() => {});
    globalThis.gc();
  `,
  );
  assert.deepEqual([status, stderr], [0, ""]);
});

test("a writer and a reader that are collected in the middle are warnings, except in production", () => {
  const program = `
    const warnings = [];
    process.on("warning", (warning) => warnings.push(warning));
    await (async () => {
      await ms.Writer.path("dropped.txt").write("one\\n");
      await ms.command("yes").nextBatch();
      for await (const line of ms.from("memory needs no close")) break;
    })();
    const count = process.env.NODE_ENV === "production" ? 0 : 2;
    let rounds = 0;
    await collected(() => (count === 0 ? ++rounds > 20 : warnings.length >= count));
    console.log(warnings.map(({ name, code, message }) => [name, code, message].join(" ")).sort().join("\\n"));
  `;
  const { status, stdout, stderr } = run(program, { NODE_ENV: "" });
  assert.equal(status, 0, stderr);
  const [writer, reader, ...more] = stdout.trimEnd().split("\n");
  assert.match(writer, /^MillstreamWarning MILLSTREAM_NOT_CLOSED dropped\.txt: its writer was never closed/);
  assert.match(reader, /^MillstreamWarning MILLSTREAM_NOT_CLOSED yes: a reader was dropped before its end/);
  assert.deepEqual(more, []);
  assert.equal(run(program, { NODE_ENV: "production" }).stdout, "\n");
});

test("a reader that was read to its end or closed is no warning", () => {
  const { status, stderr } = run(`
    await (async () => {
      for await (const line of ms.command("echo", ["one"]));
      const closed = ms.command("yes");
      await closed.nextBatch();
      await closed.close();
    })();
    let rounds = 0;
    await collected(() => ++rounds > 20);
  `);
  assert.deepEqual([status, stderr], [0, ""]);
});

test("a worker thread that ends in the middle leaves no command and no incomplete file", async () => {
  const { status, stdout, stderr } = run(`
    import { Worker } from "node:worker_threads";
    import { existsSync } from "node:fs";
    const program = \`
      import { parentPort } from "node:worker_threads";
      import("file://" + ${entry}).then(async (ms) => {
        const reader = ms.command("sh", ["-c", "echo $$; exec yes"]);
        const [pid] = (await reader.nextBatch()).texts();
        await ms.Writer.path("thread.txt").write("one");
        parentPort.postMessage(Number(pid));
        setInterval(() => {}, 1000);
      });
    \`;
    const worker = new Worker(new URL("data:text/javascript," + encodeURIComponent(program)));
    const pid = await new Promise((resolve, reject) => worker.on("message", resolve).on("error", reject));
    await worker.terminate();
    await collected(() => !existsSync("/proc/" + pid));
    console.log(existsSync("/proc/" + pid));
  `);
  assert.deepEqual([status, stdout], [0, "false\n"], stderr);
  assert(!existsSync(join(directory, "thread.txt")));
});

test("a writer whose failure was reported is not reported as unclosed; one to a FIFO may lack its last bytes", () => {
  const { status, stderr } = run(`
    import { spawnSync } from "node:child_process";
    spawnSync("mkfifo", ["fifo"]);
    const head = ms.command("head", ["-c", "1", "fifo"], { stdin: "null" });
    const writer = ms.Writer.path("fifo", { capacity: 4 << 20 });
    writer.write(Buffer.alloc(4 << 20));
    const error = await writer.flush().catch((error) => error);
    if (error.kind !== "broken_pipe") throw error;
    await head.close();
  `);
  assert.deepEqual([status, stderr], [0, ""]);
  const unclosed = run(`
    const cat = ms.command("sh", ["-c", "cat fifo >/dev/null; echo done"]);
    const writer = ms.Writer.path("fifo");
    await writer.write("one\\n");
    await writer.flush();
  `);
  assert.equal(unclosed.status, 1);
  assert.match(unclosed.stderr, /^millstream: fifo: its writer was never closed, so its last bytes may be missing;/);
});
