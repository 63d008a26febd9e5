// Node's own Transform with arrays of lines instead of single lines, as a performance-conscious user would write it.

import { createReadStream, createWriteStream } from "node:fs";
import { Readable, Transform, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";

import { Splitter } from "../splitter.mjs";

export const modes = ["sync"];

export async function run(job, tally) {
  const stages = job.stages.map(
    (stage) =>
      new Transform({ objectMode: true, transform: (lines, _, done) => done(null, lines.map((line) => stage(line))) }),
  );
  await pipeline(...source(job), ...stages, ...sink(job, tally));
}

function source(job) {
  if (job.lines !== undefined) return [Readable.from([job.lines])];
  const splitter = new Splitter();
  const split = new Transform({
    readableObjectMode: true,
    decodeStrings: false,
    transform: (text, _, done) => done(null, splitter.lines(text)),
    flush: (done) => done(null, splitter.rest()),
  });
  return [createReadStream(job.path, "utf8"), split];
}

function sink(job, tally) {
  if (job.output === undefined) {
    const write = (lines, _, done) => {
      lines.forEach(tally.line);
      done();
    };
    return [new Writable({ objectMode: true, write })];
  }
  const transform = (lines, _, done) => done(null, lines.map((line) => line + "\n").join(""));
  return [new Transform({ writableObjectMode: true, transform }), createWriteStream(job.output)];
}
