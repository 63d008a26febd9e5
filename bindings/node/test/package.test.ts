// Tests the package as it is published, in an empty project. `tools/package node` does so with the native part, too.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { repository } from "./twin.js";

const root = fileURLToPath(new URL("bindings/node/", repository));
const directory = mkdtempSync(join(tmpdir(), "millstream-"));
after(() => rmSync(directory, { recursive: true, force: true }));

before(() => {
  // Scripts are not run, because the package has already been built and other tests use it at the same time.
  const packed = execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", directory], {
    cwd: root,
  });
  writeFileSync(join(directory, "package.json"), '{ "private": true }');
  const tarball = packed.toString().trim();
  execFileSync("npm", ["install", "--silent", "--offline", "--no-audit", "--no-fund", `./${tarball}`], {
    cwd: directory,
  });
});

function run(name: string, program: string): string {
  writeFileSync(join(directory, name), program);
  const result = spawnSync(process.execPath, [name], { cwd: directory, encoding: "utf8" });
  assert.equal(result.status, 0, result.stderr);
  return result.stdout;
}

test("it contains no unexpected files and has no dependencies", () => {
  const installed = join(directory, "node_modules/millstream");
  assert.deepEqual(readdirSync(installed).sort(), ["README.md", "dist", "package.json"]);
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  assert.equal(dependencies, undefined);
  for (const name of Object.keys(optionalDependencies ?? {})) assert.match(name, /^millstream-[a-z0-9-]+$/);
  const declarations = readFileSync(join(installed, "dist/types/index.d.ts"), "utf8");
  assert.match(declarations, /command/);
});

test("from ESM", () => {
  const program = `
    import { from, pipe, map, collect } from "millstream";
    console.log(await pipe(from(["a\\nb\\n"]), map((line) => line + line), collect()));
  `;
  assert.equal(run("a.mjs", program), "[ 'aa', 'bb' ]\n");
});

test("from CommonJS", () => {
  const program = `
    const { lines, pipe, map, collect } = require("millstream");
    pipe(lines("a\\nb\\n"), map((line) => line + line), collect()).then(console.log);
  `;
  assert.equal(run("a.cjs", program), "[ 'aa', 'bb' ]\n");
});

test("without the native part, the calls that need it name its package", () => {
  const program = `
    import { command, native } from "millstream";
    try {
      for await (const line of command("echo", ["one"])) console.log(line, native.available);
    } catch (error) {
      console.log(error.kind, error.found.includes("not installed"), error.expected);
    }
  `;
  const memory = `
    import { bson, lines } from "millstream";
    for await (const line of lines("one\\ntwo")) console.log(line);
    console.log(bson.check(Uint8Array.of(5, 0, 0, 0, 0)));
  `;
  assert.equal(run("memory.mjs", memory), "one\ntwo\n1\n");
  assert.match(run("d.mjs", program), /^unsupported true the package millstream-\w+-\w+.*\n$/);
});

test("types, for both", () => {
  const program = `
    import { collect, filter, lines, map, MillstreamError, open, pipe, toTransform, toWritable, Writer } from "millstream";
    async function use(): Promise<number[]> {
      const lengths = await pipe(lines("a\\n"), map((line) => line.length), filter((n) => n > 0), collect());
      await pipe(open("x", { as: "bytes" }), map((record) => record.subarray(1)), Writer.path("y"));
      for await (const n of pipe([1], map((x) => x * 2))) lengths.push(n);
      process.stdin.pipe(toTransform(map((line) => line.length), map((n) => n.toFixed(2)))).pipe(process.stdout);
      toTransform.options({ as: "bytes" })(map((record) => record.subarray(1)));
      // @ts-expect-error: a number has no such member
      toTransform(map((line) => line.length), map((n) => n.trim()));
      lengths.push(...(await toWritable(map((line) => line.length), collect()).result));
      // @ts-expect-error: a string has no such member
      await pipe(lines("a"), map((line) => line.nonsense), collect());
      return lengths;
    }
    export const code = (error: MillstreamError): number => error.code;
    export default use;
  `;
  writeFileSync(join(directory, "b.mts"), program);
  writeFileSync(join(directory, "b.cts"), program);
  const options = {
    strict: true,
    noEmit: true,
    module: "nodenext",
    target: "es2022",
    lib: ["es2022", "dom", "esnext.disposable"],
  };
  // Some declarations refer to streams of Node.
  const types = { types: ["node"], typeRoots: [join(root, "node_modules/@types")] };
  const config = { compilerOptions: { ...options, ...types }, files: ["b.mts", "b.cts"] };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(config));
  const tsc = createRequire(import.meta.url)
    .resolve("typescript/package.json")
    .replace("package.json", "bin/tsc");
  const result = spawnSync(process.execPath, [tsc, "-p", directory], { encoding: "utf8" });
  assert.equal(result.status, 0, result.stdout);
});

test("the browser's entry contains no code of Node", () => {
  const text = readFileSync(join(root, "dist/browser.js"), "utf8");
  assert.doesNotMatch(text, /from "node:|require\(/);
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  assert.equal(Object.keys(exports["."])[0], "browser");
});

test("the browser's entry works without Buffer and setImmediate", () => {
  const entry = JSON.stringify(join(root, "dist/browser.js"));
  const program = `
    delete globalThis.Buffer;
    delete globalThis.setImmediate;
    const { from, pipe, map, asyncMap, collect, Writer } = await import(${entry});
    const stream = new Blob(["Grüße\\r\\n", "→\\n".repeat(30000)]).stream();
    const found = await pipe(from(stream), map((line) => line.length), asyncMap(async (n) => n), collect());
    console.log(found.length, found[0], found.at(-1));
    async function* numbers() { yield 1; yield 2; }
    const writer = Writer.memory();
    await pipe(numbers(), map(String), writer);
    console.log(new TextDecoder().decode((await writer.close()).memory));
  `;
  assert.equal(run("c.mjs", program), "30001 5 1\n1\n2\n\n");
});
