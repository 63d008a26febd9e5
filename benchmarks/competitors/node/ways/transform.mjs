// Node's own Transform after split2.

import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";

import { callback, sink, source } from "./core.mjs";

export async function run(job, tally) {
  const stage = (f) => new Transform({ objectMode: true, transform: callback(f, job.hop) });
  await pipeline(...source(job), ...job.stages.map(stage), ...sink(job, tally));
}
