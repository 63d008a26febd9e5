import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { inspect } from "node:util";
import { command, ERROR_ADVICE, ERROR_CODES, type ErrorKind, MillstreamError } from "millstream";
import { failure, toArray } from "./twin.js";

const kindOf = (kind: ErrorKind) => ({ kind, advice: ERROR_ADVICE[kind] });

test("the table has codes and advice", () => {
  assert.equal(ERROR_CODES.command_failed, "MILLSTREAM_COMMAND_FAILED");
  assert.equal(ERROR_CODES.cancelled, "ABORT_ERR");
  for (const [kind, code] of Object.entries(ERROR_CODES)) {
    assert.equal(new MillstreamError(kindOf(kind as ErrorKind)).code, code);
  }
  assert.deepEqual(Object.keys(ERROR_ADVICE), Object.keys(ERROR_CODES));
});

test("a message contains the error, its position, and advice", () => {
  const details = { stream: "a.bin", found: "3 bytes", expected: "8 bytes", offset: 16, record: 2 };
  const error = new MillstreamError(kindOf("frame_truncated"), details);
  assert.equal(
    error.message,
    "a.bin: frame truncated: found 3 bytes, expected 8 bytes, at byte 16, record 2 (the first is 0); " +
      "check whether the input was cut short or the frame size is wrong",
  );
  assert.equal(error.advice, "check whether the input was cut short or the frame size is wrong");
  assert.deepEqual(
    [error.code, error.kind, error.name, error.stream],
    ["MILLSTREAM_FRAME_TRUNCATED", "frame_truncated", "MillstreamError", "a.bin"],
  );
  assert.deepEqual(Object.keys(error).sort(), [
    "advice",
    "code",
    "expected",
    "found",
    "kind",
    "offset",
    "record",
    "stream",
  ]);
  assert.match(inspect(error), /^MillstreamError: a\.bin/);
});

test("the last line of a command's standard error is quoted without control characters", async () => {
  const script = "printf 'first\\n\\033[31mred\\n\\n' >&2; exit 3";
  const error = await failure(toArray(command("sh", ["-c", script, ""], { stderr: "capture" })));
  const words = String.raw`'printf '\''first\n\033[31mred\n\n'\'' >&2; exit 3'`;
  assert(error.message.startsWith(`the command \`sh -c ${words} ''\` exited with status 3`), error.message);
  assert.equal(error.advice, ERROR_ADVICE.command_failed);
  assert(
    error.message.endsWith(
      "; last line of standard error: \\u{1b}[31mred; find out why it failed, or accept its failure with `allowFailure`",
    ),
    error.message,
  );
});

test("a command is shown as a shell reads it, in its name and in its errors", async () => {
  const words = ["-c", "exit 3", "it's", "a\n\t\\'\u001b\u0085", "`\u202e", "$x", "*", "~", "größe=1"];
  const reader = command("sh", words);
  assert.equal(
    reader.name,
    String.raw`sh -c 'exit 3' 'it'\''s' $'a\n\t\\\'\033\302\205' $'\140\342\200\256' '$x' '*' '~' größe=1`,
  );
  const error = await failure(toArray(reader));
  assert(error.message.startsWith(`the command \`${reader.name}\` exited`), error.message);
});

test("existing details are kept", () => {
  const error = new MillstreamError(kindOf("io"), { offset: 3 }).at({ offset: 5, record: 1 });
  assert.deepEqual([error.offset, error.record], [3, 1]);
});

test("an error of the CommonJS build is one of the ESM build, too", () => {
  const other = createRequire(import.meta.url)("millstream") as { MillstreamError: typeof MillstreamError };
  assert.notEqual(other.MillstreamError, MillstreamError);
  assert(new other.MillstreamError(kindOf("io")) instanceof MillstreamError);
  assert(!((new Error("x") as unknown) instanceof MillstreamError));
});
