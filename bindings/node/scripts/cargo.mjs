// Builds a crate with cargo and returns the path of the library.

import { execFileSync } from "node:child_process";

export function library(crate, options, suffix) {
  const cargo = ["build", "-p", crate, ...options, "--message-format", "json-render-diagnostics"];
  const output = execFileSync("cargo", cargo, { stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 28 });
  const messages = output
    .toString()
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const target = crate.replaceAll("-", "_");
  const artifact = messages.findLast((m) => m.reason === "compiler-artifact" && m.target.name === target);
  return artifact.filenames.find((name) => suffix.test(name));
}
