// pull-stream, with pull-split for lines.

import { createReadStream, createWriteStream } from "node:fs";
import split from "pull-split";
import pull from "pull-stream";
import toPull from "stream-to-pull-stream";

export async function run(job, tally) {
  const stages = job.stages.map((stage) => wrapped(stage, job.hop));
  await new Promise((resolve, reject) => {
    const end = (error) => (error ? reject(error) : resolve());
    pull(source(job), ...stages, sink(job, tally, end));
  });
}

function wrapped(stage, hop) {
  if (hop === undefined) return pull.map(stage);
  return pull.asyncMap((line, done) => hop(() => done(null, stage(line))));
}

function source(job) {
  if (job.lines !== undefined) return pull.values(job.lines);
  // The input is decoded before it is split, because pull-split would break a character at the end of a block. An empty
  // rest after the last line feed is left out.
  return pull(toPull.source(createReadStream(job.path, "utf8")), split("\n", null, false, true));
}

function sink(job, tally, end) {
  if (job.output === undefined) return pull.drain(tally.line, end);
  return pull(
    pull.map((line) => line + "\n"),
    toPull.sink(createWriteStream(job.output), end),
  );
}
