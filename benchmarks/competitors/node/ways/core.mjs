// The source and the sink that all variants with Node's own streams share.

import { createReadStream, createWriteStream } from "node:fs";
import { Readable, Transform, Writable } from "node:stream";
import split2 from "split2";

// The streams of the source; the last one produces lines as strings.
export function source(job, split = () => [split2("\n")]) {
  return job.lines === undefined ? [createReadStream(job.path), ...split()] : [pushed(new Readable(pushable), job.lines)];
}

export const pushable = { objectMode: true, read() {} };

// As described by the original: "feeding input with `input.push` in a loop".
export function pushed(input, lines) {
  for (const line of lines) input.push(line);
  input.push(null);
  return input;
}

// The streams of the sink; the first one accepts lines.
export function sink(job, tally) {
  if (job.output === undefined) {
    const { line } = tally;
    const write = (one, _, done) => {
      line(one);
      done();
    };
    return [new Writable({ objectMode: true, write })];
  }
  const transform = (line, _, done) => done(null, line + "\n");
  return [new Transform({ writableObjectMode: true, transform }), createWriteStream(job.output)];
}

// A stage as the function that Node's and through2's transforms expect.
export function callback(stage, hop) {
  if (hop === undefined) return (line, _, done) => done(null, stage(line));
  return (line, _, done) => hop(() => done(null, stage(line)));
}
