// Tests the package as it is published, in an empty project. `tools/package node` does so with the native part, too.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
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

test("a bundle contains only what its program uses", async () => {
  /** Returns the size of the JavaScript, and whether it contains the core as WebAssembly. */
  const bundled = async (entry: string, names: string) => {
    const contents = `export { ${names} } from ${JSON.stringify(join(root, "dist", entry))};`;
    const platform = entry === "index.js" ? "node" : "browser";
    const options = {
      bundle: true,
      minify: true,
      format: "esm",
      write: false,
      metafile: true,
      target: "es2022",
    } as const;
    const { outputFiles, metafile } = await build({ ...options, platform, stdin: { contents, resolveDir: root } });
    const [{ inputs, bytes }] = Object.values(metafile.outputs);
    const core = Object.entries(inputs).find(([name]) => name.endsWith("core-wasm.js"))?.[1].bytesInOutput ?? 0;
    return { text: outputFiles[0].text, size: bytes - core, hasCore: core > 0 };
  };
  // Sizes of the JavaScript, in bytes, without the core as WebAssembly (500 kB).
  for (const [most, entry, names] of [
    [500, "browser.js", "collect"],
    [5_000, "browser.js", "column"],
    [9_500, "browser.js", "csv, fixed, collect"],
    [28_600, "browser.js", "lines"],
    [45_300, "browser.js", "lines, pipe, map"],
    [10_000, "index.js", "column"],
    [34_800, "index.js", "open"],
    [54_300, "index.js", "open, lines, pipe, map"],
  ] as const) {
    const { text, size } = await bundled(entry, names);
    assert(size <= most, `${names} of ${entry}: ${size} bytes`);
    assert.doesNotMatch(text, /toWritable|NumberColumn|Decimal128/, names);
  }
  assert((await bundled("browser.js", "bson")).hasCore);
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
