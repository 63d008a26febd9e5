// through2 and binary-split at the versions of the original benchmark; the first stream after them creates strings.

import { pipeline } from "node:stream/promises";
import binarySplit from "binary-split";
import through2 from "through2-original";

import { callback, sink, source } from "./core.mjs";

export async function run(job, tally) {
  const split = () => [binarySplit(), through2.obj((bytes, _, done) => done(null, bytes.toString()))];
  const stages = job.stages.map((stage) => through2.obj(callback(stage, job.hop)));
  await pipeline(...source(job, split), ...stages, ...sink(job, tally));
}
