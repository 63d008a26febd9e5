// Measures the time of lines through stages, in a pipeline and in the browser's own streams.

import { fold, from, map, pipe } from "../../dist/browser.js";

/** The maximum number of lines through a browser stage in one run. */
const THEIR_CALLS = 50_000;

/** Returns a function that only counts its calls. */
function counting() {
  const stage = { lines: 0, characters: 0, call: undefined };
  stage.call = (line) => {
    stage.lines++;
    stage.characters += line.length;
    return line;
  };
  return stage;
}

/** Splits text into lines, which end at a line feed or at the end, without a carriage return, as in Millstream. */
function splitter() {
  let rest = "";
  const give = (line, controller) => controller.enqueue(line.endsWith("\r") ? line.slice(0, -1) : line);
  return new TransformStream({
    transform(text, controller) {
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      for (const line of lines) give(line, controller);
    },
    flush(controller) {
      if (rest !== "") give(rest, controller);
    },
  });
}

async function ours(stream, stages, signal) {
  let lines = 0;
  const onSummary = (summary) => {
    lines = summary.items;
  };
  const chain = stages.map(({ call }) => map(call));
  const sum = fold(0, (all, line) => all + line.length);
  const characters = await pipe.options({ signal, onSummary })(from(stream), chain, sum);
  return { lines, characters };
}

async function theirs(stream, stages, signal) {
  // A carriage return at the end of a text without a line feed is content in both.
  let readable = stream.pipeThrough(new TextDecoderStream("utf-8", { ignoreBOM: true })).pipeThrough(splitter());
  for (const { call } of stages) {
    readable = readable.pipeThrough(
      new TransformStream({
        transform(line, controller) {
          controller.enqueue(call(line));
        },
      }),
    );
  }
  const most = Math.ceil(THEIR_CALLS / (stages.length + 1));
  const reader = readable.getReader();
  let lines = 0;
  let characters = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { lines, characters };
    lines++;
    characters += value.length;
    if (lines === most || signal.aborted) {
      await reader.cancel();
      signal.throwIfAborted();
      return { lines, characters, isPart: true };
    }
  }
}

/** Returns the best of several checked runs: nanoseconds per line, and the number of lines. */
async function best(run, open, count, rounds, signal) {
  const stages = Array.from({ length: count }, counting);
  let result;
  for (let round = 0; round < rounds; round++) {
    for (const stage of stages) stage.lines = stage.characters = 0;
    const stream = await open();
    const began = performance.now();
    const { lines, characters, isPart = false } = await run(stream, stages, signal);
    const nanoseconds = ((performance.now() - began) * 1e6) / Math.max(lines, 1);
    const isWrong = (stage) =>
      isPart ? stage.lines < lines : stage.lines !== lines || stage.characters !== characters;
    if (stages.some(isWrong)) throw new Error(`a stage has not seen each of the ${lines} lines once`);
    if (result === undefined || nanoseconds < result.nanoseconds) result = { lines, isPart, nanoseconds };
    // Lets the page update and its buttons respond.
    await new Promise((resolve) => setTimeout(resolve));
  }
  return result;
}

/** Measures both for each number of stages and takes the best of several rounds. Each call of `open` returns the bytes
 * from the start.
 *
 * Yields both results for each number of stages: `lines`, `nanoseconds` per line, and `perStage`, the nanoseconds per
 * line that one more stage adds.
 */
export async function* measure(open, { counts, rounds, signal }) {
  const none = {};
  for (const count of counts) {
    const result = { count };
    for (const [name, run] of Object.entries({ ours, theirs })) {
      const one = await best(run, open, count, rounds, signal);
      none[name] ??= one.nanoseconds;
      result[name] = { ...one, perStage: count === 0 ? undefined : (one.nanoseconds - none[name]) / count };
    }
    const { ours: mine, theirs: other } = result;
    if (!other.isPart && mine.lines !== other.lines) {
      throw new Error(`${mine.lines} lines here, ${other.lines} there`);
    }
    yield result;
  }
}
