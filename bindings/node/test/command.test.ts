import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  collect,
  command,
  fixed,
  forEach,
  matching,
  pipe,
  pipeline,
  shell,
  take,
  toReadable,
  Writer,
} from "millstream";
import { failure, repository, sleep, toArray } from "./twin.js";

/** Whether a process exists, possibly as a zombie. */
const isThere = (pid: number) => existsSync(`/proc/${pid}`);

const sh = (script: string, options = {}) => command("sh", ["-c", script], { stderr: "capture", ...options });

test("lines of a command", async () => {
  assert.deepEqual(await toArray(sh("printf 'one\\ntwo'")), ["one", "two"]);
  assert.deepEqual(await toArray(command("printf", ["%s\\n", "a b", "*"])), ["a b", "*"]);
  assert.deepEqual(await toArray(sh("echo $GREETING", { env: { ...process.env, GREETING: "hello" } })), ["hello"]);
  assert.deepEqual(await toArray(sh("pwd", { currentDir: "/" })), ["/"]);
  assert.deepEqual(await toArray(sh("cat")), []);
});

test("a non-zero status is an error after the last complete record; the rest is not a record", async () => {
  for (const as of ["text", "bytes"] as const) {
    const reader = sh("printf '100\\n200\\n30'; echo first >&2; echo oops >&2; exit 3", { as });
    const found: string[] = [];
    const error = await failure(
      (async () => {
        for await (const line of reader) found.push(Buffer.from(line).toString());
      })(),
    );
    assert.deepEqual(found, ["100", "200"]);
    assert.deepEqual(
      [error.kind, error.code, error.command?.status, error.command?.signal, error.offset, error.record],
      ["command_failed", "MILLSTREAM_COMMAND_FAILED", 3, null, 10, 2],
    );
    assert.equal(Buffer.from(error.command!.stderrTail).toString(), "first\noops\n");
    assert.match(error.message, /exited with status 3: found 2 bytes of an unfinished record, "30", at line 3;/);
    assert.equal(Buffer.from(reader.unfinished!).toString(), "30");
    assert.deepEqual(await toArray(reader), []);
    assert.deepEqual(error.command?.argv.slice(0, 2), ["sh", "-c"]);
    // The error is reported again, so that an ignored error is not lost.
    for (let twice = 0; twice < 2; twice++) assert.equal((await failure(reader.close())).kind, "command_failed");
  }
});

test("the unfinished rest of a failed command is never a record, but copies of bytes contain it", async () => {
  const open = (options = {}) => sh("printf '100\\n200\\n30'; exit 3", options);
  const batches: string[] = [];
  const read = async () => {
    for await (const batch of open().batches()) batches.push(...batch.texts());
  };
  assert.equal((await failure(read())).kind, "command_failed");
  assert.deepEqual(batches, ["100", "200"]);
  const piped: string[] = [];
  const error = await failure(
    pipe(
      open(),
      forEach((line: string) => piped.push(line)),
    ),
  );
  assert.deepEqual([error.kind, piped], ["command_failed", ["100", "200"]]);
  const matched: string[] = [];
  const matches = pipe(
    matching(open(), "0"),
    forEach((line: string) => matched.push(line)),
  );
  assert.deepEqual([(await failure(matches)).kind, matched], ["command_failed", ["100", "200"]]);
  const cut = await failure(toArray(open({ framer: fixed(4) })));
  assert.equal(cut.kind, "command_failed");
  let copied = "";
  const copy = async () => {
    for await (const chunk of toReadable(open())) copied += chunk;
  };
  assert.equal((await failure(copy())).kind, "command_failed");
  assert.equal(copied, "100\n200\n30");
});

test("death by a signal is an error; both can be allowed", async () => {
  const error = await failure(toArray(sh("echo one; kill -9 $$")));
  assert.deepEqual([error.kind, error.command?.status, error.command?.signal], ["command_failed", null, "SIGKILL"]);
  const reader = sh("echo one; exit 3", { allowFailure: true });
  assert.deepEqual(await toArray(reader), ["one"]);
  assert.deepEqual(
    reader.commandEnds.map(({ status }) => status),
    [3],
  );
});

test("other statuses can be successes, and a command can be timed out in total", async () => {
  assert.deepEqual(await toArray(sh("echo one; exit 3", { successStatuses: [0, 3], successSignals: [9] })), ["one"]);
  assert.equal((await failure(toArray(sh("exit 4", { successStatuses: [0, 3] })))).kind, "command_failed");
  const options = { totalTimeout: 50, stopSignal: 2, stopGrace: 0, processGroup: "own" } as const;
  assert.equal((await failure(toArray(sh("trap '' TERM; exec sleep 60", options)))).kind, "timed_out");
  assert.equal((await failure(toArray(sh("true", { stopSignal: 99 })))).kind, "invalid_option");
});

test("after a time limit, closing does not report it again, but how the command ended", async () => {
  const reader = sh("trap 'exit 8' TERM; echo one; while :; do sleep 0.05; done", { stallTimeout: 2000 });
  const { value } = await reader[Symbol.asyncIterator]().next();
  assert.equal(value, "one");
  assert.equal((await failure(toArray(reader))).kind, "stalled");
  const [end] = await reader.close();
  assert.equal(end?.status, 8);
});

test("every byte of a failing command is delivered first", async () => {
  const reader = sh("seq 300000; exit 1");
  let count = 0;
  const error = await failure(
    (async () => {
      for await (const batch of reader.batches()) count += batch.length;
    })(),
  );
  assert.deepEqual([count, error.kind], [300_000, "command_failed"]);
});

test("megabytes on standard error do not block a command; 4 KiB are kept", async () => {
  const error = await failure(toArray(sh("seq 600000 >&2; echo out; echo the end >&2; exit 1")));
  const { stderrTail } = error.command!;
  assert.equal(stderrTail.length, 4096);
  assert.match(Buffer.from(stderrTail).toString(), /600000\nthe end\n$/);
});

test("how much of standard error is kept can be set", async () => {
  for (const [stderrLimit, kept] of [
    [0, ""],
    [3, "45\n"],
    [100_000, "12345\n"],
  ] as const) {
    const error = await failure(toArray(sh("echo 12345 >&2; exit 1", { stderrLimit })));
    assert.equal(Buffer.from(error.command!.stderrTail).toString(), kept);
  }
});

test("a grandchild that keeps standard error open delays the end only briefly", async () => {
  const began = Date.now();
  await failure(toArray(sh("sleep 30 >/dev/null & echo one; exit 1")));
  assert(Date.now() - began < 10_000);
});

test("a program that does not exist", async () => {
  const error = await failure(toArray(command("millstream-no-such-program")));
  assert.deepEqual([error.kind, error.code], ["command_not_started", "MILLSTREAM_COMMAND_NOT_STARTED"]);
  assert.equal((await failure(toArray(sh("true", { currentDir: "/no/such/directory" })))).kind, "command_not_started");
  assert.throws(() => command("a\0b"), { kind: "invalid_option" });
});

test("closing early leaves no process and no zombie, and is not an error", async () => {
  const reader = sh("echo $$; exec yes");
  let pid = 0;
  for await (const line of reader) {
    pid = Number(line);
    break;
  }
  assert(isThere(pid));
  const ends = await reader.close();
  assert.equal(ends.length, 1);
  assert(!isThere(pid));
});

test("a command that ignores the end of its output and SIGTERM is killed", async () => {
  const reader = sh("trap '' TERM; echo $$; while :; do sleep 0.1; done");
  let pid = 0;
  for await (const line of reader) {
    pid = Number(line);
    break;
  }
  const [end] = await reader.close();
  assert.equal(end.signal, "SIGKILL");
  assert(!isThere(pid));
});

test("a failure after the reader stopped is not an error, 200 times", async () => {
  const once = async (round: number) => {
    // Some commands have failed by then, others have not.
    const source = sh(`seq 2; ${round % 3 === 0 ? "sleep 0.01; " : ""}exit 3`);
    if (round % 4 === 0) {
      for await (const line of source) if (line === "1") break;
      if (round % 8 === 0) await sleep(5);
      return source.close();
    }
    if (round % 4 === 1) {
      await using left = source;
      for await (const line of left) if (line === "1") break;
      return undefined;
    }
    if (round % 4 === 2) {
      const begun = pipe(source);
      for await (const line of begun) if (line === "1") break;
      await begun.close();
      return source.commandEnds;
    }
    const summary = await pipe(source, take(1), Writer.nowhere());
    assert.deepEqual([summary.items, summary.endedEarly], [1, true]);
    return summary.commands;
  };
  for (let round = 0; round < 200; round += 10) {
    const all = await Promise.all(Array.from({ length: 10 }, (_, index) => once(round + index)));
    for (const ends of all) if (ends !== undefined) assert.equal(ends.length, 1);
  }
  // All records were read, but not the end: this is not an error either.
  assert.deepEqual(await pipe(sh("seq 2; exit 3"), take(2), collect()), ["1", "2"]);
  assert.equal((await failure(pipe(sh("seq 2; exit 3"), take(3), collect()))).kind, "command_failed");
});

test("a signal stops the command", async () => {
  const controller = new AbortController();
  const reader = sh("echo $$; exec sleep 30", { signal: controller.signal });
  let pid = 0;
  const error = await failure(
    (async () => {
      for await (const line of reader) {
        pid = Number(line);
        setTimeout(() => controller.abort(), 5);
      }
    })(),
  );
  assert.equal(error.kind, "cancelled");
  await reader.close();
  assert(!isThere(pid));
});

test("a pipeline that needs no more data stops the command", async () => {
  const source = sh("echo $$; exec yes");
  const items = await pipe(source, take<string>(3), collect());
  assert.deepEqual(items.slice(1), ["y", "y"]);
  assert(!isThere(Number(items[0])));
});

test("if a command exits early, the pipeline into it fails", async () => {
  const output = Writer.command("sh", ["-c", "exit 5"], { stderr: "capture" });
  const error = await failure(pipe(sh("seq 1000000"), output));
  assert.equal(error.command?.status, 5);
  const quiet = Writer.command("true");
  const gone = await failure(pipe(sh("seq 1000000"), quiet));
  assert.deepEqual([gone.kind, gone.code], ["broken_pipe", "MILLSTREAM_BROKEN_PIPE"]);
});

test("a loop that ended early does not delay the exit, and standard error is forwarded", () => {
  const entry = fileURLToPath(new URL("bindings/node/dist/index.js", repository));
  const program = `
  import { command } from ${JSON.stringify(entry)};
  for await (const line of command("sh", ["-c", "echo seen >&2; exec yes"])) { console.log(line); break; }
`;
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    timeout: 20_000,
    encoding: "utf8",
  });
  assert.deepEqual([run.status, run.stdout, run.stderr], [0, "y\n", "seen\n"]);
});

test("readers that are no longer referenced are closed", async () => {
  const entry = fileURLToPath(new URL("bindings/node/dist/index.js", repository));
  const program = `
  import { command } from ${JSON.stringify(entry)};
  async function leave() {
    for await (const line of command("sh", ["-c", "echo $$; exec yes"])) return Number(line);
  }
  const pid = await leave();
  const { existsSync } = await import("node:fs");
  for (let i = 0; i < 600 && existsSync("/proc/" + pid); i++) {
    globalThis.gc();
    await new Promise((done) => setTimeout(done, 10));
  }
  console.log(existsSync("/proc/" + pid));
`;
  const run = spawnSync(process.execPath, ["--expose-gc", "--input-type=module", "-e", program], {
    timeout: 30_000,
    encoding: "utf8",
  });
  assert.deepEqual([run.status, run.stdout], [0, "false\n"], run.stderr);
});

test("writing to a command fails if the command fails", async () => {
  const output = Writer.command("sh", ["-c", "cat >/dev/null; exit 4"], { stderr: "capture" });
  await output.write("one\n");
  assert.equal((await failure(output.close())).command?.status, 4);
  const good = Writer.command("cat", [], { stdout: "null" });
  await good.write("one\n");
  assert.deepEqual(
    (await good.close()).commands.map(({ status }) => status),
    [0],
  );
});

test("standard input", () => {
  const entry = fileURLToPath(new URL("bindings/node/dist/index.js", repository));
  const input = readFileSync(new URL("vectors/frames.tsv", repository), "utf8");
  const program = `
    import { stdin, pipe, map, Writer } from ${JSON.stringify(entry)};
    await pipe(stdin(), map((line) => line.toUpperCase()), Writer.stdout());
  `;
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", program], { input, encoding: "utf8" });
  assert.equal(run.stdout, input.toUpperCase());
});

test("in a pipeline of commands, each reads the output of the previous one, and all must succeed", async () => {
  const sorted = pipeline([["printf", "b\\na\\nb\\n"], ["sort"], ["uniq", "-c"]]);
  assert.deepEqual(
    (await toArray(sorted)).map((line) => line.trim()),
    ["1 a", "2 b"],
  );
  assert.deepEqual(
    sorted.commandEnds.map(({ argv, status }) => [argv[0], status]),
    [
      ["printf", 0],
      ["sort", 0],
      ["uniq", 0],
    ],
  );
  const broken = pipeline([["sh", "-c", "echo one; exit 3"], ["cat"]], { stderr: "capture" });
  const found: string[] = [];
  const error = await failure(
    pipe(
      broken,
      forEach((line: string) => found.push(line)),
    ),
  );
  assert.deepEqual([error.code, error.command?.argv[0], error.command?.status], ["MILLSTREAM_COMMAND_FAILED", "sh", 3]);
  assert.deepEqual(found, ["one"]);
});

test("a shell line fails if any command in it fails", async () => {
  assert.deepEqual(await toArray(shell("printf 'b\\na\\n' | sort")), ["a", "b"]);
  const error = await failure(toArray(shell("false | cat")));
  assert.deepEqual([error.kind, error.command?.status], ["command_failed", 1]);
  assert.match(error.message, /false \| cat/);
  const writer = Writer.shell("cat | (cat; exit 7)", { stdout: "null" });
  await writer.write("one\n");
  assert.equal((await failure(writer.close())).command?.status, 7);
});
