// Checks the package as npm would publish it: publint, arethetypeswrong, and the types of a program that uses it, in every
// module resolution, without lib dom, with skipLibCheck off. The core as WebAssembly is left out: nothing here runs it.

import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const place = mkdtempSync(join(tmpdir(), "millstream-"));
let failed = false;
try {
  const project = join(place, "project");
  const installed = join(project, "node_modules/millstream");
  const tarball = await pack(join(place, "package"));
  check("publint", "node_modules/.bin/publint", "run", "--strict", "--pack", "false", join(place, "package"));
  const types = "node_modules/.bin/attw";
  check("arethetypeswrong", types, tarball, "--entrypoints", ".", "--format", "ascii");
  // The browser's entry is only ESM, which `import()` can load from CommonJS.
  const esm = ["--entrypoints", "browser", "--format", "ascii", "--ignore-rules", "cjs-resolves-to-esm"];
  check("arethetypeswrong", types, tarball, ...esm);
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", tarball, "-C", installed, "--strip-components=1"]);
  checkTypes(project);
} finally {
  rmSync(place, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);

/** Packs the package without what publishing removes; returns the path of the tarball. */
async function pack(folder) {
  mkdirSync(folder);
  await bundle(join(folder, "dist"), "");
  const { scripts, devDependencies, ...manifest } = JSON.parse(readFileSync("package.json", "utf8"));
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest, undefined, 2));
  for (const [name, from] of [
    ["README.md", "."],
    ["LICENSE-MIT", "../.."],
    ["LICENSE-APACHE", "../.."],
  ]) {
    copyFileSync(join(from, name), join(folder, name));
  }
  const options = { cwd: folder, encoding: "utf8" };
  const name = execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", place], options);
  return join(place, name.trim());
}

function checkTypes(project) {
  const program = readFileSync("scripts/types/program.ts", "utf8");
  const browser = readFileSync("scripts/types/browser.ts", "utf8");
  writeFileSync(join(project, "package.json"), '{ "private": true }');
  for (const name of ["a.mts", "a.cts", "a.ts"]) writeFileSync(join(project, name), program);
  for (const name of ["b.mts", "b.ts"]) writeFileSync(join(project, name), browser);
  mkdirSync(join(project, "node_modules/@types"));
  symlinkSync(resolve("node_modules/@types/node"), join(project, "node_modules/@types/node"));
  symlinkSync(resolve("node_modules/undici-types"), join(project, "node_modules/undici-types"));
  const node = { lib: ["es2022"], types: ["node"] };
  const dom = { lib: ["es2022", "dom", "dom.iterable", "dom.asynciterable"], types: [] };
  for (const [compiler, module, moduleResolution, files, rest] of [
    ["typescript", "nodenext", "nodenext", ["a.mts", "a.cts"], node],
    ["typescript", "node16", "node16", ["a.mts", "a.cts"], node],
    ["typescript", "preserve", "bundler", ["a.ts"], node],
    ["typescript-5", "commonjs", "node10", ["a.ts"], node],
    ["typescript", "preserve", "bundler", ["b.ts"], { ...dom, customConditions: ["browser"] }],
    ["typescript", "nodenext", "nodenext", ["b.mts"], dom],
    ["typescript-5", "commonjs", "node10", ["b.ts"], dom],
  ]) {
    const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };
    const options = { ...strict, noEmit: true, skipLibCheck: false, target: "es2022", ...rest };
    writeFileSync(
      join(project, "tsconfig.json"),
      JSON.stringify({ compilerOptions: { ...options, module, moduleResolution }, files }),
    );
    const tsc = `node_modules/${compiler}/bin/tsc`;
    check(`types: ${files.join(", ")}, ${moduleResolution}, ${compiler}`, process.execPath, tsc, "-p", project);
  }
}

function check(what, program, ...args) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status === 0) return;
  failed = true;
  console.error(`${what}:\n${stdout}${stderr}`);
}
