// rxjs: lines are pushed from the input's events through operators. It has no backpressure.

import { createReadStream, createWriteStream } from "node:fs";
import { Observable, bufferCount, concatMap, from, map } from "rxjs";

import { Splitter } from "../splitter.mjs";

export async function run(job, tally) {
  const lines = source(job).pipe(...job.stages.map((stage) => wrapped(stage, job.hop)));
  if (job.output === undefined) await lines.forEach(tally.line);
  else {
    const output = createWriteStream(job.output);
    // Lines are written in groups: without backpressure, nothing would limit the number of single writes.
    await lines.pipe(bufferCount(1000)).forEach((some) => output.write(some.join("\n") + "\n"));
    await new Promise((resolve, reject) => output.on("error", reject).end(resolve));
  }
}

function wrapped(stage, hop) {
  if (hop === undefined) return map((line) => stage(line));
  return concatMap(
    (line) =>
      new Observable((subscriber) => {
        hop(() => {
          subscriber.next(stage(line));
          subscriber.complete();
        });
      }),
  );
}

function source(job) {
  if (job.lines !== undefined) return from(job.lines);
  return new Observable((subscriber) => {
    const splitter = new Splitter();
    const forward = (lines) => lines.forEach((line) => subscriber.next(line));
    createReadStream(job.path, "utf8")
      .on("data", (text) => forward(splitter.lines(text)))
      .on("error", (error) => subscriber.error(error))
      .on("end", () => {
        forward(splitter.rest());
        subscriber.complete();
      });
  });
}
