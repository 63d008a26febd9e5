// Builds dist/: the core as WebAssembly with cargo, and the bundles and declarations.

import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.mjs";
import { library } from "./cargo.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);
rmSync("dist", { recursive: true, force: true });
await bundle("dist", core());

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
