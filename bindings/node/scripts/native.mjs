// Builds the native part with cargo, and copies it next to its sources, where the loader finds it.
//
//   node scripts/native.mjs         native/millstream.PLATFORM.node
//   node scripts/native.mjs --dev   builds quickly without optimisation, for tests
//
// `tools/package node` creates the packages that npm installs.

import { copyFileSync, renameSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { library } from "./cargo.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

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

buildAddon(thisPlatform(), process.argv[2] === "--dev" ? "dev" : "release");
