// Checks that without a package for this platform the rest works, and that calls which need it name what to install.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import * as imported from "millstream";

const platform = `millstream-${process.platform}-${process.arch}`;
for (const { collect, command, from, native, open, pipe } of [imported, createRequire(import.meta.url)("millstream")]) {
  assert.deepEqual(await pipe(from("one\ntwo\n"), collect()), ["one", "two"]);
  assert.deepEqual([native.available, native.version, typeof native.reason], [false, undefined, "string"]);
  for (const call of [() => command("sh", ["-c", "exit 0"]), () => open("one.bson")]) {
    assert.throws(call, (error) => error.kind === "unsupported" && error.message.includes(platform));
  }
}
