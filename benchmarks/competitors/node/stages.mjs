// Text through n stages, line by line: the cost of one added stage.
//
// Usage: stages.mjs --way WAY --n COUNT --input FILE [--mode MODE] [--stage noop|sum] [--from file|push]
//            [--to nowhere|FILE] [--fill MILLISECONDS] [--repeat COUNT] [--first]
//        stages.mjs --version
//
// WAY is a file in `ways/` or one in `benchmarks/millstream/node/`. MODE is `sync`, or what each stage waits
// for before it forwards a line: `async` for a setImmediate, `tick` for a process.nextTick, `microtask` for a
// queueMicrotask; Millstream's variants have additional modes. With `--from push` the lines are in memory before the clock
// starts. `--to nowhere` counts the output, `--to FILE` writes it.
//
// Prints the answer and the time of a pass, from opening the input to the end of the output: the median of this many
// passes after a first one that is not timed. Without --repeat, passes continue for this many milliseconds (half a
// second by default), but there is at least one. A first pass of more than two seconds is itself the result, because
// the code was warm long before its end. With --first there is only the first pass, as in the original, which includes
// compilation.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { parseArgs } from "node:util";

import { hops, makeStages } from "./stage.mjs";
import { Tally } from "./tally.mjs";

const { values: options } = parseArgs({
  options: {
    way: { type: "string" },
    n: { type: "string" },
    input: { type: "string" },
    mode: { type: "string", default: "sync" },
    stage: { type: "string", default: "noop" },
    from: { type: "string", default: "file" },
    to: { type: "string", default: "nowhere" },
    fill: { type: "string", default: "500" },
    repeat: { type: "string" },
    first: { type: "boolean", default: false },
    version: { type: "boolean", default: false },
  },
});

function versions() {
  const { dependencies } = JSON.parse(readFileSync(new URL("package.json", import.meta.url)));
  const packages = Object.entries(dependencies).map(([name, version]) => `${name} ${version.split("@").at(-1)}`);
  return `Node ${process.version} with ${packages.join(", ")}`;
}

async function load(way) {
  const places = [`./ways/${way}.mjs`, `../../millstream/node/${way}.mjs`].map((path) => new URL(path, import.meta.url));
  const place = places.find((url) => existsSync(url));
  if (place === undefined) throw new Error(`there is no way ${way}: neither ${places.join(" nor ")}`);
  return import(place);
}

async function main() {
  const { run, modes = [...hops.keys()] } = await load(options.way);
  if (!modes.includes(options.mode)) throw new Error(`${options.way} has no mode ${options.mode}, but ${modes}`);
  const n = Number(options.n);
  if (!Number.isSafeInteger(n) || n < 0) throw new Error(`--n ${options.n} is no count of stages`);
  const { stages, sums } = makeStages(n, options.stage, options.mode === "declared" ? "async" : "");
  const job = {
    path: options.input,
    lines: options.from === "push" ? readFileSync(options.input, "utf8").split("\n").slice(0, -1) : undefined,
    stages,
    mode: options.mode,
    hop: hops.get(options.mode),
    output: options.to === "nowhere" ? undefined : options.to,
  };

  let tally;
  const pass = async () => {
    // A new file for each pass, so that no pass reuses pages that the previous one allocated.
    if (job.output !== undefined) rmSync(job.output, { force: true });
    sums.fill(0);
    tally = new Tally();
    const start = process.hrtime.bigint();
    await run(job, tally);
    return Number(process.hrtime.bigint() - start);
  };
  const first = await pass();
  const times = [];
  if (options.first) {
    times.push(first);
  } else if (options.repeat !== undefined) {
    while (times.length < Number(options.repeat)) times.push(await pass());
  } else if (first > 2e9) {
    times.push(first);
  } else {
    const full = Number(options.fill) * 1e6;
    for (let all = 0; times.length === 0 || all < full; all += times.at(-1)) times.push(await pass());
  }

  const answer = job.output === undefined ? tally.answer() : written(job.output);
  if (options.stage === "sum" && n > 0) {
    if (sums.some((sum) => sum !== sums[0])) throw new Error("stages saw different lines");
    answer.sum = sums[0];
  }
  times.sort((a, b) => a - b);
  if (times.length > 0) answer.ns = times[Math.floor(times.length / 2)];
  console.log(Object.entries(answer).map(([key, value]) => `${key}=${value}`).join(" "));
}

// Returns the size of the file and the first six bytes of its SHA-256.
function written(path) {
  const bytes = readFileSync(path);
  rmSync(path);
  return { bytes: bytes.length, hash: createHash("sha256").update(bytes).digest().readUIntBE(0, 6) };
}

if (options.version) console.log(versions());
else await main();
