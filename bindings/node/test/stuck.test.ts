// Sinks that accept no data: a cancelled pipeline always ends and leaves nothing running.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createGunzip } from "node:zlib";
import { command, filter, forEach, from, map, pipe, type StreamSink, tee, Writer } from "millstream";
import { failure, repository, sleep, toArray } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
after(() => rmSync(directory, { recursive: true }));

function fifo(name: string): string {
  const path = join(directory, name);
  assert.equal(spawnSync("mkfifo", [path]).status, 0);
  return path;
}

const deaf = () => new Writable({ write() {} });
const deafStream = () => new WritableStream({ write: () => new Promise(() => {}) });

/** Sinks that accept no data, or no more data. */
const stuck: { [name: string]: () => StreamSink } = {
  "a command that does not read": () => Writer.command("sleep", ["20"]),
  "a writer to a Writable": () => Writer.to(deaf()),
  "a writer to a WritableStream": () => Writer.to(deafStream()),
  "a Writable": deaf,
  "a WritableStream": deafStream,
  "a FIFO that no process reads": () => Writer.path(fifo("unread")),
  "a FIFO that no process reads, compressed": () => Writer.path(fifo("unread.gz")),
  "a FIFO that is full": () => {
    const path = fifo("full");
    return Writer.command("sh", ["-c", `sleep 20 < ${path} & exec 3<>${path}; cat >&3`]);
  },
};

/** Checks that a pipeline is rejected as cancelled within seconds. */
async function cancelled(start: (signal: AbortSignal) => Promise<unknown>) {
  const controller = new AbortController();
  const running = failure(start(controller.signal));
  setTimeout(() => controller.abort(), 200);
  const began = Date.now();
  const error = await Promise.race([running, sleep(15_000)]);
  assert.equal(error?.kind, "cancelled", `after ${Date.now() - began} ms`);
}

describe("an abort ends a pipeline into", { concurrency: true }, () => {
  for (const [name, sink] of Object.entries(stuck)) {
    test(name, () => cancelled((signal) => pipe.options({ signal })(command("yes"), sink())));
  }
});

test("an abort ends a pipeline that is finishing its sink, or is waiting for a tee or a quarantine", async () => {
  await cancelled((signal) => pipe.options({ signal })(["one"], Writer.command("sh", ["-c", "cat; exec sleep 20"])));
  await cancelled((signal) => pipe.options({ signal })(["one"], Writer.to(deaf())));
  await cancelled((signal) => pipe.options({ signal })(command("yes"), tee(deaf()), Writer.nowhere()));
  const quarantine = Writer.to(deaf(), { capacity: 1 });
  const fail = map(() => JSON.parse("x"));
  await cancelled((signal) =>
    pipe.options({ signal, onError: { quarantine } })(from("one\ntwo\n"), fail, Writer.nowhere()),
  );
});

test("an abort ends a pipeline that has failed and waits for its sink to accept earlier items", async () => {
  async function* broken() {
    yield "one";
    throw new Error("boom");
  }
  const controller = new AbortController();
  const running = failure(pipe.options({ signal: controller.signal })(broken(), Writer.to(deaf())));
  setTimeout(() => controller.abort(), 200);
  assert.equal(((await running).cause as Error).message, "boom");
});

test("an abort ends a pipeline without a sink", async () => {
  const controller = new AbortController();
  const running = pipe.options({ signal: controller.signal })(command("yes"), tee(deaf()));
  setTimeout(() => controller.abort(), 200);
  assert.equal((await failure(toArray(running))).kind, "cancelled");
});

test("a writer is abandoned while its sink accepts no data, and leaves no file", async () => {
  const path = join(directory, "whole.gz");
  const controller = new AbortController();
  const lines = filter(() => true);
  setTimeout(() => controller.abort(), 200);
  await failure(pipe.options({ signal: controller.signal })(command("yes"), lines, Writer.path(path)));
  assert.deepEqual(
    readdirSync(directory).filter((name) => name.includes("whole")),
    [],
  );
});

test("abandoned output is not completed, which its reader detects", async () => {
  const path = fifo("given-up.gz");
  const reading = toArray(command("cat", [path], { as: "bytes", keepDelimiter: true, decode: "off" }));
  async function* broken() {
    yield "one";
    throw new Error("boom");
  }
  await failure(pipe(broken(), Writer.path(path)));
  const bytes = Buffer.concat(await reading);
  const unzipping = createGunzip().end(bytes);
  let text = "";
  await assert.rejects(async () => {
    for await (const chunk of unzipping) text += chunk;
  }, /unexpected end of file/);
  assert.equal(text, "one\n");
});

/** A server for one connection, and a connection to it. */
async function connected(serve: (socket: Socket) => void): Promise<{ socket: Socket; close: () => void }> {
  const server = createServer({ allowHalfOpen: true }, serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as { port: number }).port, "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  return { socket, close: () => server.close() };
}

const megabyte = "a line of some length\n".repeat(50_000);

test("a peer that has sent data receives everything and confirms it", async () => {
  for (const direct of [true, false]) {
    let received = 0;
    const { socket, close } = await connected((peer) => {
      peer.write("a greeting that is not read");
      peer.pause();
      setTimeout(() => peer.resume(), 50);
      peer.on("data", (chunk) => {
        received += chunk.length;
      });
      peer.on("end", () => setTimeout(() => peer.end(), 50));
    });
    await pipe(from(megabyte), direct ? socket : Writer.to(socket));
    assert.equal(received, megabyte.length);
    close();
  }
});

test("a peer that resets the connection after the end, or does not close, is an error", async () => {
  const resetting = await connected((peer) => {
    peer.resume();
    peer.on("end", () => setTimeout(() => peer.resetAndDestroy(), 50));
  });
  const error = await failure(pipe(from(megabyte), Writer.to(resetting.socket)));
  assert.equal((error.cause as { code?: string }).code, "ECONNRESET");
  resetting.close();

  let open: Socket | undefined;
  const silent = await connected((peer) => {
    open = peer;
    peer.resume();
  });
  const stalled = await failure(pipe(from(megabyte), Writer.to(silent.socket, { linger: 100 })));
  assert.equal(stalled.kind, "stalled");
  open?.destroy();
  silent.close();
});

/** The output of a program, its messages, and how it ends. */
function run(program: string) {
  const entry = fileURLToPath(new URL("bindings/node/dist/index.js", repository));
  const whole = `import * as ms from ${JSON.stringify(entry)}; const { Writer } = ms; ${program}`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", whole], {
    encoding: "utf8",
    timeout: 20_000,
    cwd: directory,
    maxBuffer: 1 << 28,
  });
  return { status, stdout, stderr };
}

test("a writer that was not closed loses no data when the process exits", () => {
  const written = { status: 0, stdout: "one\n", stderr: "" };
  assert.deepEqual(run(`Writer.stdout().write("one\\n");`), written);
  assert.deepEqual(run(`Writer.fd(1).write("one\\n");`), written);
  assert.deepEqual(run(`Writer.to(process.stdout).write("one\\n");`), written);
  assert.deepEqual(run(`Writer.command("cat").write("one\\n");`), written);
  assert.deepEqual(run(`Writer.stdout().write("one\\n"); process.exit();`), written);
  assert.deepEqual(run(`Writer.command("cat").write("one\\n"); process.exit();`), written);
  for (const options of [{ existing: "append" }, { partial: "keep" }]) {
    assert.equal(run(`Writer.path("stays", ${JSON.stringify(options)}).write("one\\n"); process.exit();`).status, 0);
    assert.equal(readFileSync(join(directory, "stays"), "utf8"), "one\n");
  }
  assert.deepEqual(run(`await Writer.stdout({ flushPolicy: "line" }).write("one\\n");`), written);
  const many = run(`const w = Writer.stdout(); for (let i = 0; i < 500000; i++) w.write("123456\\n");`);
  assert.deepEqual([many.status, many.stdout.length], [0, 3_500_000]);
});

test("data that cannot be written when the process exits is reported, with status 1", () => {
  const { status, stderr } = run(`
    const w = Writer.command("sleep", ["20"], { stderr: "null", stdout: "null" });
    w.write(Buffer.alloc(4 << 20));
    process.exit(0);
  `);
  assert.equal(status, 1);
  assert.match(stderr, /^millstream: sleep 20: the process ended before it was closed: \d+ bytes were not written/);
  const endless = run(`Writer.stdout({ encode: "gzip" }).write("one\\n");`);
  assert.equal(endless.status, 1);
  assert.match(endless.stderr, /its compressed data has no end/);
  const full = run(
    `const { openSync } = await import("node:fs"); Writer.fd(openSync("/dev/full", "w")).write("one\\n");`,
  );
  assert.equal(full.status, 1);
  assert.match(full.stderr, /ENOSPC/);
  // The error was already reported to the caller.
  const known = run(`
    const { openSync } = await import("node:fs");
    const fd = openSync("/dev/full", "w");
    const w = Writer.fd(fd);
    w.write("one\\n");
    await w.close().catch(({ kind, message }) => console.log(kind, message.startsWith("file descriptor " + fd + ":")));
  `);
  assert.deepEqual(known, { status: 0, stdout: "io true\n", stderr: "" });
});

test("a file that was not closed does not appear, and leaves nothing behind", () => {
  const program = `const w = Writer.path("unclosed"); w.write("one\\n"); await w.flush();`;
  // The bytes of a file that is replaced are in a named temporary file.
  for (const before of [undefined, "before"]) {
    if (before !== undefined) writeFileSync(join(directory, "unclosed"), before);
    for (const end of ["", "process.exit(0);"]) {
      const { status, stderr } = run(program + end);
      assert.equal(status, 1);
      assert.match(stderr, /unclosed: its writer was never closed/);
      const found = readdirSync(directory).filter((name) => name.includes("unclosed"));
      assert.deepEqual(found, before === undefined ? [] : ["unclosed"]);
    }
  }
  assert.equal(readFileSync(join(directory, "unclosed"), "utf8"), "before");
  rmSync(join(directory, "unclosed"));
});

test("the number of written bytes includes partially written chunks", async () => {
  const path = fifo("part");
  const writer = Writer.path(path, { capacity: 4 << 20 });
  writer.write(Buffer.alloc(4 << 20, "x"));
  const flushing = failure(writer.flush());
  const head = command("sh", ["-c", `exec 3<${path}; sleep 0.3; head -c 1000 <&3 | wc -c`]);
  assert.deepEqual(await toArray(head), ["1000"]);
  const error = await flushing;
  assert.equal(error.kind, "broken_pipe");
  assert(error.written! > 0 && error.written! < 4 << 20, `${error.written} bytes`);
  assert.equal(writer.written, error.written);
});

test("no bytes are reported as written for a file that does not appear", async () => {
  // The file size limit is reached after 4096 bytes.
  const program = `
    process.on("SIGXFSZ", () => {});
    const w = Writer.path("limited");
    w.write(Buffer.alloc(100000));
    await w.close().catch(({ kind, written }) => console.log(kind, written));
  `;
  const entry = fileURLToPath(new URL("bindings/node/dist/index.js", repository));
  const whole = `import { Writer } from ${JSON.stringify(entry)}; ${program}`;
  const { stdout } = spawnSync(
    "sh",
    ["-c", 'ulimit -f 8; exec "$0" --input-type=module -e "$1"', process.execPath, whole],
    {
      encoding: "utf8",
      cwd: directory,
    },
  );
  assert.equal(stdout, "io undefined\n");
  assert.throws(() => readFileSync(join(directory, "limited")));
});

test("forEach whose function never returns is ended, too", async () => {
  await cancelled((signal) =>
    pipe.options({ signal })(
      command("yes"),
      forEach(() => new Promise(() => {})),
    ),
  );
});
