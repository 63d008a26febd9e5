// Builds the native part by cargo, puts it beside its sources, where the loader finds it, and makes the package for this
// platform out of it.
//
//   node scripts/native.mjs             native/millstream.PLATFORM.node
//   node scripts/native.mjs --dev       the same, built quickly and not optimised: for tests
//   node scripts/native.mjs --package   build/millstream-PLATFORM of it: what `npm pack` and `npm publish` take
//
//   node scripts/native.mjs --optional  adds the packages of all platforms to package.json: in a release, when they are
//                                       published; before that no `npm ci` would find them
//
// The names of the packages, with what npm looks at to choose among them, are here only.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const main = JSON.parse(readFileSync("package.json", "utf8"));

const PLATFORMS = {
  "linux-x64-gnu": { os: ["linux"], cpu: ["x64"], libc: ["glibc"] },
  "linux-arm64-gnu": { os: ["linux"], cpu: ["arm64"], libc: ["glibc"] },
};

function thisPlatform() {
  const { glibcVersionRuntime } = process.report.getReport().header;
  const libc = process.platform !== "linux" ? "" : glibcVersionRuntime === undefined ? "-musl" : "-gnu";
  return `${process.platform}-${process.arch}${libc}`;
}

function buildAddon(platform, profile) {
  const cargo = ["build", "--profile", profile, "-p", "millstream-node", "--message-format", "json-render-diagnostics"];
  // A sixth of the size. By this package only, so that nothing else is built anew.
  if (profile === "release") cargo.push("--config", 'profile.release.package.millstream-node.strip="debuginfo"');
  const output = execFileSync("cargo", cargo, { stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 28 });
  const messages = output
    .toString()
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const artifact = messages.findLast((m) => m.reason === "compiler-artifact" && m.target.name === "millstream_node");
  const library = artifact.filenames.find((name) => /\.(so|dylib|dll)$/.test(name));
  const addon = `native/millstream.${platform}.node`;
  // Not written in place: a process that has it loaded would see it change.
  copyFileSync(library, `${addon}.new`);
  renameSync(`${addon}.new`, addon);
  console.log(`bindings/node/${addon}`);
}

function makePackage(platform, addon) {
  if (PLATFORMS[platform] === undefined) throw new Error(`no package for ${platform}: see PLATFORMS`);
  const { version, license, repository, engines } = main;
  const name = `millstream-${platform}`;
  const directory = join("build", name);
  const file = `millstream.${platform}.node`;
  const manifest = {
    name,
    version,
    description: `The native part of millstream for ${platform}`,
    license,
    repository,
    engines,
    ...PLATFORMS[platform],
    main: file,
    files: [file],
  };
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(
    join(directory, "README.md"),
    `The native part of [millstream](https://www.npmjs.com/package/millstream) for ${platform}. Install that one.\n`,
  );
  copyFileSync(addon, join(directory, file));
  console.log(`bindings/node/${directory}`);
}

function addOptional() {
  const names = Object.keys(PLATFORMS).map((platform) => [`millstream-${platform}`, main.version]);
  const manifest = { ...main, optionalDependencies: Object.fromEntries(names) };
  writeFileSync("package.json", `${JSON.stringify(manifest, null, 2)}\n`);
}

if (process.argv[2] === "--optional") {
  addOptional();
} else {
  const platform = thisPlatform();
  if (process.argv[2] === "--package") makePackage(platform, `native/millstream.${platform}.node`);
  else buildAddon(platform, process.argv[2] === "--dev" ? "dev" : "release");
}
