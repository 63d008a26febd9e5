// Checks what Millstream promises, with the installed package alone. The working directory contains `lines.txt.gz` and
// `one.bson`; `promise.mjs` calls it with the other module system.

const assert = require("node:assert/strict");
const { existsSync, readFileSync, rmSync } = require("node:fs");

async function promise({ bson, collect, command, from, native, open, pipe, Writer }) {
  const { version } = require("millstream/package.json");
  assert.deepEqual([native.available, native.reason, native.version], [true, undefined, version]);

  // All that the command wrote, then the error.
  const lines = [];
  const failing = async () => {
    for await (const line of command("sh", ["-c", "echo one; exit 3"])) lines.push(line);
  };
  await assert.rejects(failing, { kind: "command_failed" });
  assert.deepEqual(lines, ["one"]);

  // The file exists once it is complete.
  rmSync("written.txt", { force: true });
  const writer = Writer.path("written.txt");
  await writer.write("one\ntwo\n");
  assert(!existsSync("written.txt"));
  await writer.close();
  assert.equal(readFileSync("written.txt", "utf8"), "one\ntwo\n");

  assert.deepEqual(await pipe(open("lines.txt.gz"), collect()), ["alpha", "beta"]);

  const document = readFileSync("one.bson");
  assert.deepEqual(bson.decode(document), { n: 5 });
  // The part in WebAssembly.
  assert.deepEqual([...bson.columns(document).column("n", "int").values], [5]);
  assert.deepEqual(await pipe(from("one\ntwo\n"), collect()), ["one", "two"]);
}

module.exports = promise;
if (require.main === module) promise(require("millstream"));
