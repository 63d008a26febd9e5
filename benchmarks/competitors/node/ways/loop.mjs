// The lower limit: a handwritten loop over blocks of text, in which each stage is an explicit call.

import { createReadStream, closeSync, openSync, writeSync } from "node:fs";

import { Splitter } from "../splitter.mjs";

export const modes = ["sync"];

// Created once, not for each pass, as in the program that it represents.
const loops = new WeakMap();

function written(stages) {
  const calls = stages.map((_, i) => `line = stages[${i}](line);`).join("\n");
  return new Function("lines", "stages", "put", `for (let line of lines) { ${calls}\n put(line); }`);
}

export async function run(job, tally) {
  if (!loops.has(job)) loops.set(job, written(job.stages));
  const loop = loops.get(job);
  const output = job.output === undefined ? undefined : openSync(job.output, "w");
  let text = "";
  const put = output === undefined ? tally.line : (line) => (text += line + "\n");
  const work = (block) => {
    loop(block, job.stages, put);
    if (output === undefined) return;
    writeSync(output, text);
    text = "";
  };

  if (job.lines !== undefined) work(job.lines);
  else {
    const splitter = new Splitter();
    for await (const text of createReadStream(job.path, "utf8")) work(splitter.lines(text));
    work(splitter.rest());
  }
  if (output !== undefined) closeSync(output);
}
