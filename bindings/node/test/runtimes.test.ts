// The same program gives the same results in Node, Deno and Bun, with the native part.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { lacksPython, objectServer, repository } from "./twin.js";

const root = fileURLToPath(new URL("bindings/node/", repository));
const directory = mkdtempSync(join(tmpdir(), "millstream-"));
const objects = lacksPython ? undefined : await objectServer();
after(() => {
  objects?.stop();
  rmSync(directory, { recursive: true });
});

writeFileSync(join(directory, "lines.txt.gz"), gzipSync("x\ny\n"));
writeFileSync(
  join(directory, "program.mjs"),
  `
  import { existsSync, readFileSync } from "node:fs";
  import { bson, collect, columns, command, from, map, native, open, parallel, pipe, remote, shell, through, Writer } from ${JSON.stringify(join(root, "dist/index.js"))};

  console.log(native.available);
  try {
    for await (const line of command("sh", ["-c", "echo one; echo two; exit 3"])) console.log(line);
  } catch (error) {
    console.log(error.name, error.code, error.command.status);
  }
  await pipe(["a", "b"], map((x) => x + x), Writer.path("a.txt"));
  console.log(JSON.stringify(readFileSync("a.txt", "utf8")));
  await pipe(open("lines.txt.gz"), Writer.path("lines.txt.zst"));
  console.log(await pipe(open("lines.txt.zst"), collect()).then(String));
  const failing = (function* () { yield "one"; throw new Error("no"); })();
  console.log(await pipe(failing, Writer.path("b.txt")).catch((error) => error.kind), existsSync("b.txt"));

  const bytes = Uint8Array.from([12, 0, 0, 0, 16, 110, 0, 5, 0, 0, 0, 0]);
  console.log(bson.decode(bytes).n, bson.columns(bytes).column("n", "int").values[0], bson.check(bytes));
  console.log((await pipe(from(new Blob(["p\\nq\\n"]).stream()), collect())).join());
  console.log((await pipe(shell("seq 100000 | cat"), collect())).length);
  async function* later() { yield "b\\n"; await new Promise((done) => setTimeout(done, 5)); yield "a\\n"; }
  console.log((await pipe(command("sort", [], { input: later() }), through("tr", ["a", "c"]), collect())).join());
  const stopped = pipe(command("sleep", ["60"], { signal: AbortSignal.timeout(50) }), collect());
  console.log(await stopped.catch((error) => error.name));
  const object = remote("s3://bucket/lines.txt.gz", { endpoint: process.env.OBJECT_SERVER, anonymous: true });
  await pipe(["v", "w"], Writer.path(object));
  console.log((await pipe(open(object), collect())).join());
  const table = columns(command("printf", ["a,b\\n1,2\\nx,3\\n"]), { format: "csv", infer: 1, onBad: "skip" });
  let isAligned = true;
  for await (const part of table) isAligned &&= part.length % 8 === 0;
  console.log(isAligned, table.rows, table.rejects.map(({ error }) => error.line).join());
  console.log((await pipe([1, 2, 3], parallel((n) => n * 2, { workers: 2 }), collect())).join());
`,
);

const expected = `true
one
two
MillstreamError MILLSTREAM_COMMAND_FAILED 3
"aa\\nbb\\n"
x,y
io false
5 5 1
p,q
100000
c,b
AbortError
v,w
true 1 3
2,4,6
`;

for (const [name, ...command] of [
  ["node", process.execPath],
  ["deno", join(root, "node_modules/.bin/deno"), "run", "--allow-all"],
  ["bun", join(root, "node_modules/.bin/bun"), "run"],
]) {
  const isMissing = !existsSync(command[0]) && process.env.CI !== "true" && `SKIPPED: ${name} is missing`;
  test(name, { skip: isMissing || lacksPython }, () => {
    const [program, ...args] = command;
    // Deno stores what it compiles in its own folder.
    const env = {
      ...process.env,
      DENO_DIR: join(directory, "deno"),
      DENO_NO_UPDATE_CHECK: "1",
      OBJECT_SERVER: objects?.address,
    };
    const options = { cwd: directory, encoding: "utf8", env, timeout: 60_000 } as const;
    const { stdout, stderr, status } = spawnSync(program, [...args, "program.mjs"], options);
    assert.deepEqual([stdout, status], [expected, 0], stderr);
  });
}
