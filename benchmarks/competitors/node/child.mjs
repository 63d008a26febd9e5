// Lines of a child's standard output: the child is `cat FILE`.
//
// Usage: child.mjs --way WAY --input FILE
//        child.mjs --version
//
// WAY: `raw` reads the bytes without finding lines; `readline` uses the event of node:readline; `execa-readline` uses
// that event with a child started by execa, `execa` uses execa's own lines; `split2` uses that package. Millstream's
// variants are in `benchmarks/millstream/node/child.mjs`. Lines are strings; variants that end in `-bytes` produce
// bytes. Lines and their lengths are counted. The time is from starting the child until its output has ended and it has exited.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
  options: { way: { type: "string" }, input: { type: "string" }, version: { type: "boolean", default: false } },
});

// The time does not include loading a package.
const execa = options.way?.startsWith("execa") ? (await import("execa")).execa : undefined;
const split2 = options.way === "split2" ? (await import("split2")).default : undefined;

class Tally {
  count = 0;
  units = 0;

  line = (line) => {
    this.count += 1;
    this.units += line.length;
  };

  answer() {
    return { count: this.count, units: this.units };
  }
}

const argv = (path) => ["cat", [path]];

function start(path) {
  const child = spawn(...argv(path), { stdio: ["ignore", "pipe", "inherit"] });
  child.ended = once(child, "close").then(([status]) => {
    if (status !== 0) throw new Error(`cat: exit status ${status}`);
  });
  return child;
}

const ways = {
  async raw(path) {
    const child = start(path);
    let bytes = 0;
    child.stdout.on("data", (block) => (bytes += block.length));
    await child.ended;
    return { bytes };
  },
  async readline(path) {
    const tally = new Tally();
    const child = start(path);
    const lines = createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY });
    lines.on("line", tally.line);
    await Promise.all([once(lines, "close"), child.ended]);
    return tally.answer();
  },
  async "execa-readline"(path) {
    const tally = new Tally();
    const child = execa(...argv(path), { buffer: false });
    const lines = createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY });
    lines.on("line", tally.line);
    await Promise.all([once(lines, "close"), child]);
    return tally.answer();
  },
  async execa(path) {
    const tally = new Tally();
    for await (const line of execa(...argv(path), { buffer: false })) tally.line(line);
    return tally.answer();
  },
  async split2(path) {
    const tally = new Tally();
    const child = start(path);
    child.stdout.pipe(split2("\n")).on("data", tally.line);
    await child.ended;
    return tally.answer();
  },
};

if (options.version) {
  console.log(`Node ${process.version}`);
} else {
  const way = ways[options.way] ?? (await import("../../millstream/node/child.mjs")).ways[options.way];
  if (way === undefined) throw new Error(`there is no way ${options.way}`);
  const clock = process.hrtime.bigint();
  const answer = await way(options.input, argv, Tally);
  answer.ns = process.hrtime.bigint() - clock;
  console.log(Object.entries(answer).map(([key, value]) => `${key}=${value}`).join(" "));
}
