// Every example of the README runs and prints the documented output.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { repository } from "./twin.js";

const root = fileURLToPath(new URL("bindings/node/", repository));
const readme = readFileSync(join(root, "README.md"), "utf8");
// In the package, so that its name can be resolved.
const directory = join(root, "build/readme");
rmSync(directory, { recursive: true, force: true });
mkdirSync(directory, { recursive: true });
writeFileSync(join(directory, "names.txt"), "0041\tLATIN CAPITAL LETTER A\n\t= first\n0042\tLATIN CAPITAL LETTER B\n");

const example = /```(js|cjs)\n([\s\S]*?)```\n(?:\n?```text\n([\s\S]*?)```)?/g;
let count = 0;
for (const [, kind, program, expected] of readme.matchAll(example)) {
  count++;
  const name = `${count}.${kind === "js" ? "mjs" : "cjs"}`;
  test(`example ${count}: ${program.split("\n").find((line) => !line.startsWith("import"))}`, () => {
    writeFileSync(join(directory, name), program);
    const run = spawnSync(process.execPath, [name], { cwd: directory, encoding: "utf8", timeout: 20_000 });
    assert.equal(run.status, 0, run.stderr);
    if (expected !== undefined) assert.equal(run.stdout, expected);
  });
}
test("there are examples", () => assert(count >= 6));
