import assert from "node:assert/strict";
import {
  appendFileSync,
  closeSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { inspect } from "node:util";
import {
  command,
  delimiter,
  fd,
  fixed,
  from,
  lengthPrefixed,
  lineFramer,
  lines,
  MillstreamError,
  open,
  type Reader,
} from "millstream";
import { failure, NAMES_LIST, naiveLines, pieces, sleep, toArray } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));

function file(name: string, content: string | Uint8Array): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

async function firstOf<T extends string | Uint8Array>(reader: Reader<T>): Promise<T | undefined> {
  for await (const record of reader) return record;
  return undefined;
}

test("everything that can be read", async () => {
  const expected = ["Grüße", "→ no ASCII", "plain", "", "🦀 outside of the first plane"];
  const bytes = Buffer.from(NAMES_LIST);
  const chunks = pieces(bytes, [3, 10, 11]);
  async function* generate() {
    for (const chunk of chunks) yield chunk;
  }
  assert.deepEqual(await toArray(open(file("names", bytes))), expected);
  assert.deepEqual(await toArray(from(NAMES_LIST)), expected);
  assert.deepEqual(await toArray(from(bytes)), expected);
  assert.deepEqual(await toArray(from(new Uint8Array(bytes).buffer)), expected);
  assert.deepEqual(await toArray(from(chunks)), expected);
  assert.deepEqual(await toArray(from(generate())), expected);
  assert.deepEqual(await toArray(from(Readable.from(chunks))), expected);
  assert.deepEqual(await toArray(from(new Blob([bytes]))), expected);
  assert.deepEqual(await toArray(from(new Response(bytes))), expected);
  assert.deepEqual(await toArray(from(new Response(bytes).body!)), expected);
  assert.deepEqual(await toArray(lines(from(bytes))), expected);
  // Split between the halves of a character.
  assert.deepEqual(await toArray(from([...NAMES_LIST.split("")])), expected);
});

test("memory is reused only if it is not referenced: strings, batches and views in turn", async () => {
  const expected = Array.from({ length: 50_000 }, (_, i) => `${i} ${"é".repeat(i % 37)}`);
  expected[30_000] = "long".repeat(30_000);
  const bytes = Buffer.from(expected.map((line) => `${line}\n`).join(""));
  const path = file("long", bytes);
  const cuts = Array.from({ length: 600 }, (_, i) => i * 10_007 + (i % 13));
  const sources = [() => open(path), () => command("cat", [path]), () => from(bytes), () => from(pieces(bytes, cuts))];
  for (const source of sources) {
    for (const stride of [7, 1000]) {
      const reader = source();
      const kept: (() => string[])[] = [];
      for (let turn = 0, more = true; more; turn++) {
        more = false;
        const views: Uint8Array[] = [];
        const texts: string[] = [];
        let left = stride * (1 + (turn % 3));
        if (turn % 4 === 3) {
          const batch = await reader.nextBatch();
          if (batch !== null) kept.push(() => batch.texts());
          more = batch !== null;
        } else if (turn % 4 === 1) {
          for await (const view of reader.records(lineFramer(), { as: "bytes" })) {
            views.push(view);
            more = true;
            if (--left === 0) break;
          }
          kept.push(() => views.map((view) => Buffer.from(view).toString()));
        } else {
          for await (const line of reader) {
            texts.push(line);
            more = true;
            if (--left === 0) break;
          }
          kept.push(() => texts);
        }
        if (turn > 200) {
          for await (const line of reader) texts.push(line);
          kept.push(() => (turn % 4 === 3 || turn % 4 === 1 ? texts : []));
          break;
        }
      }
      const found = kept.flatMap((lines) => lines());
      assert.equal(found.length, expected.length);
      assert(found.every((line, i) => line === expected[i]));
    }
  }
});

test("text of which few lines are not ASCII, with ends of every kind, as strings and in batches", async () => {
  const text = Array.from({ length: 30_000 }, (_, i) => {
    const odd = i % 701 === 0 ? "ü→🦀".slice(0, 1 + (i % 4)) : "";
    return `${"x".repeat(i % 41)}${odd}${i % 5 === 0 ? "\r" : ""}\n`;
  });
  for (const all of [[...text, "rest\r"], text.slice(1, 600), [...text, "y".repeat(200_000), "ü\n", "\n\n"]]) {
    const bytes = Buffer.from(all.join(""));
    const expected = naiveLines(bytes);
    const path = file("mixed", bytes);
    assert.deepEqual(await toArray(open(path)), expected);
    const texts: string[] = [];
    for await (const batch of open(path).batches()) texts.push(...batch.texts());
    assert.deepEqual(texts, expected);
    // Some lines as strings, the rest in batches.
    const reader = open(path);
    const some: string[] = [];
    for await (const line of reader) if (some.push(line) === 300) break;
    for await (const batch of reader.batches()) some.push(...batch.texts());
    assert.deepEqual(some, expected);
    const kept = await toArray(open(path, { keepDelimiter: true }));
    assert.equal(kept.join(""), bytes.toString());
    assert.equal(kept.length, expected.length);
  }
});

test("files that cannot be opened, and one that shrinks", async () => {
  const missing = await failure(toArray(open(join(directory, "missing"))));
  assert.deepEqual(
    [missing.kind, missing.code, typeof missing.errno],
    ["open_failed", "MILLSTREAM_OPEN_FAILED", "number"],
  );
  assert.equal((await failure(toArray(open(directory)))).kind, "open_failed");
  const path = file("shrinks", "line\n".repeat(300_000));
  const reader = open(path);
  assert.equal(await firstOf(reader), "line");
  truncateSync(path, 10);
  assert.equal((await failure(toArray(reader))).kind, "source_shrank");
});

test("a descriptor, from its current position, which the caller still owns", async () => {
  const number = openSync(file("descriptor", "0123\n4\n56"), "r");
  readSync(number, Buffer.alloc(2));
  const reader = fd(number);
  assert.equal(reader.name, `file descriptor ${number}`);
  assert.deepEqual(await toArray(reader), ["23", "4", "56"]);
  closeSync(number);
  const error = await failure(toArray(fd(999_999)));
  assert.deepEqual([error.kind, error.stream], ["open_failed", "file descriptor 999999"]);
  const directories = openSync(directory, "r");
  assert.equal((await failure(toArray(fd(directories)))).kind, "open_failed");
  closeSync(directories);
});

test("closing ends a loop that waits, and one that waits for the command's end", async () => {
  const never = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) };
  for (const reader of [from(never), command("sh", ["-c", "echo one; exec >&-; exec sleep 30"])]) {
    const waiting = failure(toArray(reader));
    await sleep(reader.name === "iterable" ? 1 : 300);
    await reader.close();
    assert.equal((await waiting).kind, "closed");
  }
  const controller = new AbortController();
  const reader = command("sh", ["-c", "exec >&-; exec sleep 30"], { signal: controller.signal });
  setTimeout(() => controller.abort(), 300);
  assert.equal((await failure(toArray(reader))).kind, "cancelled");
  await reader.close();
});

test("after a loop ends early, reading continues with the next record in any way", async () => {
  const reader = from("one\ntwo\nthree\nfour\n56\n78\nend");
  assert.equal(await firstOf(reader), "one");
  assert.deepEqual(reader.position, { bytes: 4, records: 1 });
  assert.equal(await firstOf(reader), "two");
  for await (const batch of reader.records(fixed(6), { as: "bytes" })) {
    assert.equal(Buffer.from(batch).toString(), "three\n");
    break;
  }
  assert.deepEqual(reader.position, { bytes: 14, records: 3 });
  for await (const line of reader.lines({ keepDelimiter: true })) {
    assert.equal(line, "four\n");
    break;
  }
  const left: string[] = [];
  for await (const batch of reader.batches()) left.push(...batch.texts());
  assert.deepEqual(left, ["56", "78", "end"]);
  assert.deepEqual(reader.position, { bytes: 28, records: 7 });
  assert.equal(await firstOf(reader), undefined);
  assert.equal(await firstOf(reader), undefined);
});

test("calls that overlap take turns", async () => {
  const reader = from(pieces(Buffer.from("a\nb\nc\nd\n"), [1, 2, 3, 5]));
  const iterator = reader[Symbol.asyncIterator]();
  const results = await Promise.all([iterator.next(), iterator.next(), iterator.next(), iterator.next()]);
  assert.deepEqual(
    results.map(({ value }) => value),
    ["a", "b", "c", "d"],
  );
});

test("a record is available as soon as its end has arrived", async () => {
  let hasSecond = false;
  async function* slow() {
    yield "first\nsec";
    await sleep(5);
    hasSecond = true;
    yield "ond\n";
  }
  const reader = from(slow());
  assert.equal(await firstOf(reader), "first");
  assert.equal(hasSecond, false);
  assert.equal(await firstOf(reader), "second");
});

test("the record limit applies to records, and a record that is too long can be skipped", async () => {
  const text = `short\n${"long".repeat(50)}\nlast\n`;
  for (const cuts of [[], [30], [30, 60, 90, 120, 150, 180, 200]]) {
    const reader = from(pieces(Buffer.from(text), cuts), { recordLimit: 100 });
    const found: string[] = [];
    const read = async () => {
      for await (const line of reader) found.push(line);
    };
    for (let again = 0; again < 2; again++) {
      const error = await failure(read());
      assert.deepEqual(
        [error.kind, error.code, error.record, error.offset],
        ["record_too_long", "MILLSTREAM_RECORD_TOO_LONG", 1, 6],
      );
    }
    assert.equal(await reader.skipRecord(), true);
    await read();
    assert.deepEqual(found, ["short", "last"]);
    assert.equal(reader.position.records, 3);
    assert.equal(await reader.skipRecord(), false);
  }
});

test("after a record that is too long, another framer reads the same bytes", async () => {
  const reader = from(["two\n".repeat(10_000), "end\n"], { framer: delimiter(";"), recordLimit: 100 });
  assert.equal((await failure(toArray(reader))).kind, "record_too_long");
  assert.equal((await toArray(reader.lines())).length, 10_001);
});

test("a length-prefixed record is skipped without keeping it", async () => {
  const framer = lengthPrefixed({ width: 4, endian: "big" });
  const long = Buffer.alloc(4 + 3_000_000, "x");
  long.writeUInt32BE(3_000_000);
  const bytes = Buffer.concat([Buffer.from("\0\0\0\x02ab"), long, Buffer.from("\0\0\0\x01c")]);
  const cuts = Array.from({ length: 100 }, (_, i) => i * 30_001);
  const reader = from(pieces(bytes, cuts), { framer, recordLimit: 1000 });
  const found: string[] = [];
  const read = async () => {
    for await (const record of reader) found.push(record);
  };
  assert.equal((await failure(read())).kind, "record_too_long");
  assert.equal(await reader.skipRecord(), true);
  await read();
  assert.deepEqual([found, reader.position.records], [["ab", "c"], 3]);
  const cut = from(pieces(bytes.subarray(0, 2_000_000), cuts), { framer, recordLimit: 1000 });
  assert.equal(await cut.skipRecord(), true);
  assert.equal((await failure(cut.skipRecord())).kind, "frame_truncated");
});

test("a record of more than 4 GiB is skipped as well", async () => {
  const gibibyte = new Uint8Array(1 << 30);
  function* chunks() {
    yield Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 3); // 4 GiB and 3 bytes
    for (let i = 0; i < 4; i++) yield gibibyte;
    yield Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 99);
  }
  const reader = from(chunks(), { framer: lengthPrefixed({ width: 8, endian: "big" }), recordLimit: 1000 });
  const error = await failure(toArray(reader));
  assert.deepEqual([error.kind, error.found], ["record_too_long", "4294967299 bytes"]);
  assert.equal(await reader.skipRecord(), true);
  assert.deepEqual(await toArray(reader), ["c"]);
});

test("a long record is not scanned from its start for each chunk", async () => {
  const chunk = Buffer.alloc(64 << 10, "x");
  async function* chunks() {
    for (let i = 0; i < 512; i++) yield chunk; // 32 MiB
    yield "\nend\n";
  }
  const lengths: number[] = [];
  for await (const line of from(chunks())) lengths.push(line.length);
  assert.deepEqual(lengths, [512 << 16, 3]);
});

test("a failure is reported once, after all records", async () => {
  async function* broken() {
    yield "one\ntwo\nhalf";
    throw Object.assign(new Error("boom"), { errno: -5 });
  }
  const reader = from(broken(), { name: "test" });
  const found: string[] = [];
  const error = await failure(
    (async () => {
      for await (const line of reader) found.push(line);
    })(),
  );
  assert.deepEqual([error.kind, error.offset, error.record, error.stream, error.errno], ["io", 12, 2, "test", -5]);
  assert.equal((error.cause as Error).message, "boom");
  assert.deepEqual(found, ["one", "two"]);
  assert.deepEqual(await toArray(reader), []);
});

test("a signal ends a read that waits, and the source", async () => {
  let returned = false;
  const source: AsyncIterable<string> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => {}),
      return: () => {
        returned = true;
        return Promise.resolve({ done: true, value: undefined });
      },
    }),
  };
  const controller = new AbortController();
  const reader = from(source, { signal: controller.signal });
  const reason = new Error("enough");
  setTimeout(() => controller.abort(reason), 5);
  const error = await failure(toArray(reader));
  assert(error instanceof MillstreamError);
  assert.deepEqual([error.kind, error.name, error.code], ["cancelled", "AbortError", "ABORT_ERR"]);
  assert.equal(error.cause, reason);
  assert.match(inspect(error), /^AbortError: iterable: cancelled: enough;/);
  assert(returned);
  const again = from("x\n", { signal: AbortSignal.abort() });
  assert.equal((await failure(toArray(again))).kind, "cancelled");
});

test("no records are returned after close", async () => {
  const reader = from("one\ntwo\n");
  assert.equal(await firstOf(reader), "one");
  await reader.close();
  await reader.close();
  assert.equal((await failure(toArray(reader))).kind, "closed");
  {
    await using disposed = from("one\n");
    assert.equal(await firstOf(disposed), "one");
  }
});

test("memory stays flat over a long stream", async () => {
  // 10 GB with MILLSTREAM_DEEP=1, which takes minutes.
  const megabytes = process.env.MILLSTREAM_DEEP ? 10_000 : 200;
  const chunk = Buffer.from("a line of some length, as they are\n".repeat(30_000)).subarray(0, 1 << 20);
  async function* chunks() {
    for (let i = 0; i < megabytes; i++) yield chunk;
  }
  let most = 0;
  let count = 0;
  for await (const batch of from(chunks()).batches()) {
    count += batch.length;
    most = Math.max(most, process.memoryUsage.rss());
  }
  assert(count > megabytes * 29_000);
  assert(most < 400 << 20, `${most >> 20} MiB`);
});

test("options of the native part: a file that grows, a source that stalls", async () => {
  const growing = file("growing", "one\n");
  const reader = open(growing, { follow: "growing" });
  const records = reader[Symbol.asyncIterator]();
  assert.equal((await records.next()).value, "one");
  appendFileSync(growing, "two\n");
  assert.equal((await records.next()).value, "two");
  await reader.close();
  const stalled = command("sleep", ["60"], { stallTimeout: 20 });
  assert.equal((await failure(toArray(stalled))).kind, "stalled");
  assert.deepEqual(await toArray(open(file("pinned", "one\n"), { pin: "identity", latency: "low" })), ["one"]);
});

test("what a source has to be", async () => {
  const text = "one\ntwo\n";
  const path = file("expected", text);
  const sha = { expectBytes: 8, expectHash: "crc32c:fcac93a4", expectRecords: 2 };
  assert.deepEqual(await toArray(open(path, sha)), ["one", "two"]);
  assert.deepEqual(await toArray(from(text, { expectRecords: 2 })), ["one", "two"]);
  const readers = [
    () => from(text, { expectRecords: 3 }),
    () => open(path, { expectRecords: 1 }),
    () => open(path, { expectBytes: 9 }),
    () => open(path, { expectHash: "crc32c:fcac93a5" }),
  ];
  for (const reader of readers) {
    const opened = reader();
    const found: string[] = [];
    const read = async () => {
      for await (const line of opened) found.push(line);
    };
    const error = await failure(read());
    assert.deepEqual([error.kind, error.code], ["content_mismatch", "MILLSTREAM_CONTENT_MISMATCH"], error.message);
    assert.deepEqual(found, ["one", "two"]);
    assert.equal((await failure(opened.close())).kind, "content_mismatch");
  }
});
