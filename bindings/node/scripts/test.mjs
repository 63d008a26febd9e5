// Bundles test/*.test.ts into build/test and runs them with node --test. Arguments are names of tests or options of
// node.

import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const options = process.argv.slice(2).filter((argument) => argument.startsWith("-"));
const names = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
const all = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
const chosen = all.filter((name) => names.length === 0 || names.some((part) => name.includes(part)));

rmSync("build/test", { recursive: true, force: true });
await build({
  entryPoints: chosen.map((name) => `test/${name}`),
  outdir: "build/test",
  bundle: true,
  // Tests import the package by its name, like users.
  packages: "external",
  // Otherwise the paths in tsconfig.json, which are for types, would bundle the package's sources into each test.
  external: ["millstream"],
  format: "esm",
  platform: "node",
  target: "node20",
  sourcemap: "inline",
  logLevel: "warning",
});
const files = chosen.map((name) => `build/test/${name.replace(/ts$/, "js")}`);
// Most tests wait for timers, commands and browsers most of the time.
const node = ["--enable-source-maps", "--test", "--test-concurrency=3", ...options, ...files];
const run = spawnSync(process.execPath, node, { stdio: "inherit" });
process.exit(run.status ?? 1);
