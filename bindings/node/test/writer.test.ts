import assert from "node:assert/strict";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { test } from "node:test";
import { createGunzip, gzipSync } from "node:zlib";
import fc from "fast-check";
import { collect, open, pipe, Writer } from "millstream";
import { failure, sleep, toArray } from "./twin.js";

function inDirectory(name: string, body: (path: (name: string) => string) => Promise<void>) {
  test(name, async () => {
    const directory = mkdtempSync(join(tmpdir(), "millstream-"));
    try {
      await body((name) => join(directory, name));
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
}

test("the output is the concatenation of the writes, for any capacity and any pieces", async () => {
  const piece = fc.oneof(fc.string({ unit: "binary" }), fc.uint8Array({ maxLength: 40 }));
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 30 }), fc.integer({ min: 1, max: 64 }), async (all, capacity) => {
      const writer = Writer.memory({ capacity });
      for (const data of all) await writer.write(data);
      const end = await writer.close();
      const expected = Buffer.concat(all.map((data) => Buffer.from(data as string)));
      assert.deepEqual(Buffer.from(end.memory!), expected);
      assert.equal(end.bytes, expected.length);
    }),
  );
});

inDirectory("a file appears whole, when it is closed", async (path) => {
  const writer = Writer.path(path("a.txt"));
  await writer.write("one\n");
  await writer.flush();
  assert.throws(() => statSync(path("a.txt")));
  await writer.close();
  await writer.close();
  assert.equal(readFileSync(path("a.txt"), "utf8"), "one\n");
  assert.deepEqual(readdirSync(path(".")), ["a.txt"]);
});

inDirectory("a file does not appear when its pipeline fails or its writer is given up", async (path) => {
  async function* broken() {
    yield "one";
    throw new Error("boom");
  }
  await failure(pipe(broken(), Writer.path(path("a.txt"))));
  {
    await using writer = Writer.path(path("b.txt"));
    await writer.write("one");
  }
  assert.deepEqual(readdirSync(path(".")), []);
});

inDirectory("an existing file keeps its permissions, a symbolic link is followed", async (path) => {
  writeFileSync(path("a"), "before");
  chmodSync(path("a"), 0o640);
  symlinkSync(path("a"), path("link"));
  const writer = Writer.path(path("link"));
  await writer.write("after");
  await writer.close();
  assert.equal(readFileSync(path("a"), "utf8"), "after");
  assert.equal(statSync(path("a")).mode & 0o777, 0o640);
  assert.deepEqual(readdirSync(path(".")).sort(), ["a", "link"]);
});

inDirectory("a file that cannot be written", async (path) => {
  const writer = Writer.path(path("no/such/directory"));
  await writer.write("one");
  const error = await failure(writer.close());
  assert.deepEqual([error.kind, error.code], ["open_failed", "MILLSTREAM_OPEN_FAILED"]);
  assert.equal((await failure(Writer.path(path(".")).close())).kind, "open_failed");
  assert.throws(() => writer.write("more"), { kind: "open_failed" });
});

inDirectory("compressed as the name says, and read again", async (path) => {
  const lines = Array.from({ length: 50_000 }, (_, i) => `line ${i}`);
  await pipe(lines, Writer.path(path("a.gz")));
  assert.deepEqual(await toArray(open(path("a.gz"))), lines);
  const unzipped = await toArray(createGunzip().end(readFileSync(path("a.gz"))));
  assert.equal(Buffer.concat(unzipped as Buffer[]).toString(), `${lines.join("\n")}\n`);
});

inDirectory("compressed files: several members, damage, truncation, what follows", async (path) => {
  const text = Array.from({ length: 40_000 }, (_, i) => `${i}\n`).join("");
  const gz = gzipSync(text);
  const read = async (bytes: Uint8Array, name = "a") => {
    writeFileSync(path(name), bytes);
    return toArray(open(path(name)));
  };
  assert.equal((await read(Buffer.concat([gz, gz]))).length, 80_000);
  assert.equal((await failure(read(gz.subarray(0, 20_000)))).kind, "decode_truncated");
  assert.equal((await failure(read(gz.subarray(0, 12)))).kind, "decode_truncated");
  const damaged = Buffer.from(gz);
  damaged[gz.length - 6] ^= 1;
  assert.equal((await failure(read(damaged))).kind, "decode_damaged");
  assert.equal(
    (await failure(read(Buffer.concat([gz, Buffer.from("junk that is not gzip\n")])))).kind,
    "decode_damaged",
  );
  assert.equal((await failure(read(Buffer.concat([gz, Buffer.alloc(32)])))).kind, "decode_damaged");
  // A name implies a format.
  assert.equal((await failure(read(gz.subarray(0, 1), "b.gz"))).kind, "decode_truncated");
  assert.equal((await failure(read(new Uint8Array(0), "c.zst"))).kind, "decode_truncated");
  assert.deepEqual(await read(Buffer.from("\x1f plain\n")), ["\x1f plain"]);
  writeFileSync(path("d"), gz);
  assert.notEqual((await toArray(open(path("d"), { decode: "off" })))[0], "0");
});

inDirectory("a bgzf file has to end with its last block", async (path) => {
  const end = Buffer.from("1f8b08040000000000ff0600424302001b0003000000000000000000", "hex");
  const plain = gzipSync("one\ntwo\n");
  // The header of a member with the extra field of bgzf.
  const size = plain.length + 8 - 1;
  const extra = Buffer.from([6, 0, 0x42, 0x43, 2, 0, size & 255, size >> 8]);
  const block = Buffer.concat([
    plain.subarray(0, 3),
    Buffer.from([4]),
    plain.subarray(4, 10),
    extra,
    plain.subarray(10),
  ]);
  writeFileSync(path("good"), Buffer.concat([block, end]));
  assert.deepEqual(await toArray(open(path("good"))), ["one", "two"]);
  writeFileSync(path("cut"), block);
  assert.equal((await failure(toArray(open(path("cut"))))).kind, "decode_truncated");
});

test("waiting is needed only when the buffer is full", async () => {
  let taken = 0;
  const slow = new Writable({
    write(_chunk, _encoding, done) {
      taken++;
      setTimeout(done, 5);
    },
  });
  const writer = Writer.to(slow, { capacity: 10 });
  assert.equal(writer.write("12345"), undefined);
  assert.equal(writer.write("67890"), undefined);
  const full = writer.write("x".repeat(10));
  assert(full instanceof Promise);
  await full;
  assert(taken >= 1);
  const end = await writer.close();
  assert.equal(end.bytes, 20);
});

test("bytes are written at each line end, or after a delay", async () => {
  for (const flush of [{ flushPolicy: "line" }, { flushDelay: 5 }] as const) {
    const through = new PassThrough();
    const writer = Writer.to(through, flush);
    await writer.write("now\n");
    const chunk = await new Promise<Buffer>((resolve) => through.once("data", resolve));
    assert.equal(chunk.toString(), "now\n");
    await writer.close();
  }
});

test("by default, bytes are written at each line end only to a terminal", async () => {
  for (const isTTY of [false, true]) {
    const through = Object.assign(new PassThrough(), { isTTY });
    const writer = Writer.to(through);
    await writer.write("a line\nand ");
    await sleep(1);
    assert.equal(through.readableLength, isTTY ? 11 : 0);
    await writer.write("more");
    await sleep(1);
    assert.equal(through.readableLength, isTTY ? 11 : 0);
    await writer.close();
    assert.equal(through.read().toString(), "a line\nand more");
  }
});

test("if a sink does not accept data, a later call and close report an error", async () => {
  let calls = 0;
  const broken = new Writable({
    write(_chunk, _encoding, done) {
      done(calls++ === 0 ? null : Object.assign(new Error("full"), { errno: -28, code: "ENOSPC" }));
    },
  });
  const writer = Writer.to(broken, { flushPolicy: "line", name: "disk" });
  await writer.write("four");
  await writer.flush();
  await writer.write("more\n");
  await sleep(5);
  assert.throws(() => writer.write("and more"), { kind: "io", written: 4, stream: "disk", errno: -28 });
  assert.equal((await failure(writer.close())).written, 4);
  assert.equal((await failure(writer.close())).kind, "io");
});

test("no data is accepted after close", async () => {
  const writer = Writer.nowhere();
  await writer.write("one");
  await writer.close();
  assert.throws(() => writer.write("two"), { kind: "closed" });
  assert.throws(() => Writer.memory().write(3 as never), { kind: "argument_invalid" });
});

test("web streams", async () => {
  const chunks: string[] = [];
  const stream = new WritableStream<Uint8Array>({
    async write(chunk) {
      await sleep(1);
      chunks.push(Buffer.from(chunk).toString());
    },
  });
  const writer = Writer.to(stream, { capacity: 4 });
  await writer.writeRecords(["one", "two"]);
  await writer.close();
  assert.equal(chunks.join(""), "one\ntwo\n");
});

inDirectory("records end with the delimiter that was asked for", async (path) => {
  await pipe(["a", "b"], Writer.path(path("nul"), { delimiter: "\0" }));
  assert.equal(readFileSync(path("nul"), "utf8"), "a\0b\0");
  await pipe([Buffer.from("a\n"), "b\n"], Writer.path(path("none"), { delimiter: "" }));
  assert.equal(readFileSync(path("none"), "utf8"), "a\nb\n");
  assert.deepEqual(await pipe(open(path("none"), { keepDelimiter: true }), collect()), ["a\n", "b\n"]);
});

inDirectory("what cannot be written is refused before anything is opened", async (path) => {
  const descriptors = () => readdirSync("/proc/self/fd").length;
  const before = descriptors();
  for (const name of ["a.bz2", "a.lz4", "a.LZ4", "a.zz"]) {
    for (let round = 0; round < 10; round++) assert.throws(() => Writer.path(path(name)), { kind: "unsupported" });
  }
  assert.deepEqual([readdirSync(path(".")), descriptors()], [[], before]);
  // A name implies no format if the encoding is given.
  const writer = Writer.path(path("a.bgz"), { encode: "off" });
  await writer.write("one\n");
  await writer.close();
  assert.deepEqual(await toArray(open(path("a.bgz"), { decode: "off" })), ["one"]);
});

inDirectory("the level of compression", async (path) => {
  const sizes: number[] = [];
  for (const level of [0, 9]) {
    const writer = Writer.path(path(`${level}.gz`), { level });
    await writer.write("one\n".repeat(1000));
    const end = await writer.close();
    assert.deepEqual([end.bytes, end.written], [4000, readFileSync(path(`${level}.gz`)).length]);
    sizes.push(end.written);
  }
  assert(sizes[0] > 4000 && sizes[1] < 100, String(sizes));
  for (const wrong of [{ level: 10 }, { encode: "off", level: 1 }, { encode: "zstd", level: 0 }] as const) {
    assert.throws(() => Writer.path(path("wrong.gz"), wrong), { kind: "invalid_option" });
  }
  assert.throws(() => Writer.path(path("wrong"), { level: 1 }), { kind: "invalid_option" });
  const together = { existing: "append", partial: "keep" } as const;
  assert.throws(() => Writer.path(path("wrong"), together), { kind: "invalid_option", name: "TypeError" });
  assert.throws(() => Writer.command("touch", [path("wrong")], { level: 1 }), { kind: "invalid_option" });
  assert.deepEqual(readdirSync(path(".")).sort(), ["0.gz", "9.gz"]);
});

inDirectory("every format is written, as the name or the option says", async (path) => {
  const lines = Array.from({ length: 50_000 }, (_, i) => `line ${i}`);
  const starts: { [name: string]: string } = { bgz: "1f8b0804", zst: "28b52ffd", xz: "fd377a58", gz: "1f8b08" };
  for (const [ending, start] of Object.entries(starts)) {
    const summary = await pipe(lines, Writer.path(path(`a.${ending}`)));
    const bytes = readFileSync(path(`a.${ending}`));
    assert.equal(bytes.subarray(0, start.length / 2).toString("hex"), start);
    assert.deepEqual([summary.writer?.bytes, summary.writer?.written], [lines.join("\n").length + 1, bytes.length]);
    assert.deepEqual(await toArray(open(path(`a.${ending}`))), lines);
  }
  const writer = Writer.command("sh", ["-c", 'cat > "$0"', path("b")], { encode: "xz" });
  await writer.write("one\n");
  await writer.close();
  assert.deepEqual(await toArray(open(path("b"))), ["one"]);
});

inDirectory("what was flushed can be decoded before the stream is complete", async (path) => {
  const writer = Writer.path(path("a.gz"), { partial: "keep" });
  await writer.write("one\n");
  await writer.flush();
  const flushed = readFileSync(path("a.gz"));
  const read: string[] = [];
  writeFileSync(path("b.gz"), flushed);
  const error = await failure(
    (async () => {
      for await (const line of open(path("b.gz"))) read.push(line);
    })(),
  );
  assert.deepEqual([read, error.kind], [["one"], "decode_truncated"]);
  await writer.close();
});

inDirectory("an existing file is appended to, and only if its compressed data is complete", async (path) => {
  const append = async (name: string, text: string, existing: "append" | "append_unchecked" = "append") => {
    const writer = Writer.path(path(name), { existing });
    await writer.write(text);
    await writer.close();
  };
  for (const name of ["a", "a.gz", "a.xz"]) {
    await append(name, "one\n");
    await append(name, "two\n");
    assert.deepEqual(await toArray(open(path(name))), ["one", "two"]);
  }
  writeFileSync(path("cut.gz"), readFileSync(path("a.gz")).subarray(0, -5));
  assert.equal((await failure(append("cut.gz", "three\n"))).kind, "open_failed");
  await append("cut.gz", "three\n", "append_unchecked");
});

inDirectory("an incomplete file is kept if that was asked for", async (path) => {
  writeFileSync(path("a"), "before, and longer");
  const writer = Writer.path(path("a"), { partial: "keep" });
  await writer.write("one\n");
  await writer.flush();
  assert.equal(readFileSync(path("a"), "utf8"), "one\n");
  await writer.write("two\n");
  await writer.abort();
  assert.equal(readFileSync(path("a"), "utf8"), "one\ntwo\n");
});

inDirectory("a file is synced, and other sinks cannot be", async (path) => {
  for (const durability of ["cached", "data", "all"] as const) {
    const writer = Writer.path(path(durability), { durability });
    await writer.write("one\n");
    await writer.close();
    assert.equal(readFileSync(path(durability), "utf8"), "one\n");
  }
  const refused = await failure(Writer.path("/dev/null", { durability: "all" }).close());
  assert.equal(refused.kind, "invalid_option");
});

test("a sink that accepts no bytes for too long is an error", async () => {
  const writer = Writer.command("sleep", ["60"], { stallTimeout: 100, stderr: "null" });
  const big = Buffer.alloc(8 << 20);
  const error = await failure(
    (async () => {
      await writer.write(big);
      await writer.close();
    })(),
  );
  assert.equal(error.kind, "stalled");
  await writer.abort();
});

inDirectory("a writer that is no longer referenced leaves no temporary file", async (path) => {
  writeFileSync(path("a"), "before");
  const temporary = () => readdirSync(path(".")).some((name) => name.endsWith(".tmp"));
  await (async () => {
    const writer = Writer.path(path("a"));
    await writer.write("one");
    await writer.flush();
  })();
  assert(temporary());
  const v8 = await import("node:v8");
  v8.setFlagsFromString("--expose-gc");
  const collect = (await import("node:vm")).runInNewContext("gc") as () => void;
  for (let round = 0; round < 500 && temporary(); round++) {
    collect();
    await sleep(10);
  }
  assert(!temporary());
  assert.equal(readFileSync(path("a"), "utf8"), "before");
});

inDirectory("an aborted writer fails, at once and ever after, and its file does not appear", async (path) => {
  const controller = new AbortController();
  const { signal } = controller;
  const writer = Writer.path(path("a.txt"), { signal });
  await writer.write("one\n");
  // It reads nothing, so the bytes cannot leave.
  const stuck = Writer.command("sleep", ["60"], { signal, capacity: 1 << 20 });
  await stuck.write(new Uint8Array(4 << 20));
  const closing = failure(stuck.close());
  await sleep(20);
  controller.abort();
  for (const error of [await closing, await failure(stuck.close()), await failure(writer.close())]) {
    assert.deepEqual([error.name, error.code, error.cause], ["AbortError", "ABORT_ERR", signal.reason]);
  }
  assert.throws(() => writer.write("two"), { name: "AbortError" });
  assert.deepEqual(readdirSync(path(".")), []);
  assert.equal((await failure(Writer.memory({ signal }).close())).name, "AbortError");
});
