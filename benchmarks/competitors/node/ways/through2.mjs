// through2 after split2, in their current versions.

import { pipeline } from "node:stream/promises";
import { objectTransform } from "through2";

import { callback, sink, source } from "./core.mjs";

export async function run(job, tally) {
  const stages = job.stages.map((stage) => objectTransform(callback(stage, job.hop)));
  await pipeline(...source(job), ...stages, ...sink(job, tally));
}
