// Builds dist/: the core as WebAssembly with cargo; the ESM, CommonJS and browser bundles, which contain it, with
// esbuild; declarations for both with tsc.

import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { library } from "./cargo.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);
rmSync("dist", { recursive: true, force: true });

const { version } = JSON.parse(readFileSync("package.json", "utf8"));
const define = { MILLSTREAM_VERSION: JSON.stringify(version), MILLSTREAM_CORE: JSON.stringify(core()) };
const shared = { bundle: true, target: "es2022", legalComments: "none", logLevel: "warning", define };
await Promise.all([
  build({ ...shared, entryPoints: ["src/index.ts"], outfile: "dist/index.js", format: "esm", platform: "node" }),
  build({
    ...shared,
    entryPoints: ["src/index.ts"],
    outfile: "dist/index.cjs",
    format: "cjs",
    platform: "node",
    // The location of the native part: in CommonJS, a module's own location has another name.
    define: { ...define, "import.meta.url": "__filename" },
  }),
  // The browser platform rejects imports of node:, as intended.
  build({ ...shared, entryPoints: ["src/browser.ts"], outfile: "dist/browser.js", format: "esm", platform: "browser" }),
]);

/** The core, in base64. */
function core() {
  const target = "wasm32-unknown-unknown";
  // Panic messages contain paths of sources: they must not depend on where they are on this machine.
  const sysroot = execFileSync("rustc", ["--print", "sysroot"], { encoding: "utf8" }).trim();
  const cargo = process.env.CARGO_HOME ?? join(homedir(), ".cargo");
  const places = { [homedir()]: "home", [cargo]: "cargo", [sysroot]: "rust", [join(root, "../..")]: "millstream" };
  const remap = Object.entries(places).map(([from, to]) => `--remap-path-prefix=${from}=/${to}`);
  // Vector instructions, which every engine has had since 2023.
  const flags = JSON.stringify(["-Ctarget-feature=+simd128", ...remap]);
  const options = ["--profile", "wasm", "--target", target, "--config", `target.${target}.rustflags = ${flags}`];
  return readFileSync(library("millstream-wasm", options, /\.wasm$/)).toString("base64");
}

const tsc = createRequire(import.meta.url)
  .resolve("typescript/package.json")
  .replace("package.json", "bin/tsc");
execFileSync(process.execPath, [tsc, "-p", "scripts/tsconfig.types.json", "--outDir", "dist/types"], {
  stdio: "inherit",
});
// The declarations for programs that use require.
cpSync("dist/types", "dist/types-cjs", { recursive: true });
writeFileSync("dist/types-cjs/package.json", '{ "type": "commonjs" }\n');
