// Millstream's runner for `benchmarks/competitors/node/stages.mjs`.

import { asyncMap, forEach, map, open, pipe, Writer } from "../../../bindings/node/dist/index.js";

// In addition to the competitors' modes, `declared` uses functions that are declared async but return immediately, and
// with `batch` each stage waits for one setImmediate per array of lines.
export const modes = ["sync", "async", "tick", "microtask", "declared", "batch"];

// The number of lines that a Node stream buffers.
const concurrency = 16;

export const run = (job, tally) => runWith(pipe, job, tally);

export async function runWith(pipe, job, tally) {
  const source = job.lines ?? open(job.path);
  if (job.mode === "batch") await pipe(arrays(source), job.stages.map(byArray), arraySink(job, tally));
  else await pipe(source, job.stages.map(stageOf(job)), sink(job, tally));
}

function stageOf({ hop }) {
  if (hop === undefined) return (f) => map(f);
  const later = (f) => (line) => new Promise((resolve) => hop(() => resolve(f(line))));
  return (f) => asyncMap(later(f), { concurrency });
}

function sink(job, tally) {
  return job.output === undefined ? forEach(tally.line) : Writer.path(job.output);
}

async function* arrays(reader) {
  for await (const batch of reader.batches()) yield batch.texts();
}

function byArray(f) {
  return map(async (lines) => {
    await new Promise(setImmediate);
    return lines.map((line) => f(line));
  });
}

function arraySink(_job, tally) {
  return forEach((lines) => lines.forEach(tally.line));
}
