// Node's own Transform after binary-split, whose lines are bytes: the first transform converts them to strings.

import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import binarySplit from "binary-split";

import { callback, sink, source } from "./core.mjs";

export async function run(job, tally) {
  const transform = (transform) => new Transform({ objectMode: true, transform });
  const split = () => [binarySplit(), transform((bytes, _, done) => done(null, bytes.toString()))];
  const stages = job.stages.map((stage) => transform(callback(stage, job.hop)));
  await pipeline(...source(job, split), ...stages, ...sink(job, tally));
}
