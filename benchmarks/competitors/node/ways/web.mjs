// The Web's TransformStream with one line per chunk. It has no splitter.

import { createReadStream, createWriteStream } from "node:fs";
import { Readable, Writable } from "node:stream";

import { Splitter } from "../splitter.mjs";

export async function run(job, tally) {
  let lines = source(job);
  for (const stage of job.stages) lines = lines.pipeThrough(new TransformStream({ transform: wrapped(stage, job.hop) }));
  await sink(job, tally, lines);
}

function wrapped(stage, hop) {
  if (hop === undefined) return (line, controller) => controller.enqueue(stage(line));
  return (line, controller) =>
    new Promise((resolve) => {
      hop(() => {
        controller.enqueue(stage(line));
        resolve();
      });
    });
}

function source(job) {
  if (job.lines !== undefined) {
    const start = (controller) => {
      for (const line of job.lines) controller.enqueue(line);
      controller.close();
    };
    return new ReadableStream({ start });
  }
  const splitter = new Splitter();
  const forward = (lines, controller) => lines.forEach((line) => controller.enqueue(line));
  const split = new TransformStream({
    transform: (text, controller) => forward(splitter.lines(text), controller),
    flush: (controller) => forward(splitter.rest(), controller),
  });
  return Readable.toWeb(createReadStream(job.path)).pipeThrough(new TextDecoderStream()).pipeThrough(split);
}

async function sink(job, tally, lines) {
  if (job.output === undefined) await lines.pipeTo(new WritableStream({ write: tally.line }));
  else {
    const ends = new TransformStream({ transform: (line, controller) => controller.enqueue(line + "\n") });
    await lines.pipeThrough(ends).pipeTo(Writable.toWeb(createWriteStream(job.output)));
  }
}
