// Builds the native part with cargo, copies it next to its sources, where the loader finds it, and creates the package
// for this platform.
//
//   node scripts/native.mjs             native/millstream.PLATFORM.node
//   node scripts/native.mjs --dev       builds quickly without optimisation, for tests
//   node scripts/native.mjs --package   creates build/millstream-PLATFORM for `npm pack` and `npm publish`
//
//   node scripts/native.mjs --optional  adds the packages of all platforms to package.json: in a release, when they are
//                                       published; before that no `npm ci` would find them
//
// The names of the packages, and the properties by which npm selects one, are defined only here.

import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { library } from "./cargo.mjs";

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
  const options = ["--profile", profile];
  // This reduces the size to a sixth. Only this package uses it, so that no other package is rebuilt.
  if (profile === "release") options.push("--config", 'profile.release.package.millstream-node.strip="debuginfo"');
  const built = library("millstream-node", options, /\.(so|dylib|dll)$/);
  const addon = `native/millstream.${platform}.node`;
  // The file is not written in place, because it would change in processes that have loaded it.
  copyFileSync(built, `${addon}.new`);
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
