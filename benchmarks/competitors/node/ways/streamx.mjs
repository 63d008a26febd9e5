// streamx. It has no splitter, so one of its transforms splits the text.

import { createReadStream, createWriteStream } from "node:fs";
import { StringDecoder } from "node:string_decoder";
import { Readable, Transform, Writable, pipelinePromise } from "streamx";

import { Splitter } from "../splitter.mjs";
import { pushed } from "./core.mjs";

export async function run(job, tally) {
  const stages = job.stages.map((stage) => new Transform({ transform: callback(stage, job.hop) }));
  await pipelinePromise(...source(job), ...stages, ...sink(job, tally));
}

function callback(stage, hop) {
  if (hop === undefined) return (line, done) => done(null, stage(line));
  return (line, done) => hop(() => done(null, stage(line)));
}

function source(job) {
  if (job.lines !== undefined) return [pushed(new Readable(), job.lines)];
  const decoder = new StringDecoder("utf8");
  const splitter = new Splitter();
  const split = new Transform({
    transform(bytes, done) {
      for (const line of splitter.lines(decoder.write(bytes))) this.push(line);
      done();
    },
    flush(done) {
      for (const line of [...splitter.lines(decoder.end()), ...splitter.rest()]) this.push(line);
      done();
    },
  });
  return [createReadStream(job.path), split];
}

function sink(job, tally) {
  if (job.output === undefined) {
    const { line } = tally;
    const write = (one, done) => {
      line(one);
      done();
    };
    return [new Writable({ write })];
  }
  return [new Transform({ transform: (line, done) => done(null, line + "\n") }), createWriteStream(job.output)];
}
