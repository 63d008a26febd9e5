// Millstream's runners for `benchmarks/competitors/node/child.mjs`.

import { command, lineFramer, pipe } from "../../../bindings/node/dist/index.js";

export const ways = {
  async "millstream-bytes"(path, argv) {
    let count = 0;
    let units = 0;
    for await (const { offsets } of command(...argv(path)).batches(lineFramer(), { memory: "reused" })) {
      // Does not access the bytes, like a program that copies lines or filters them by length. Each line ends with a
      // line feed.
      for (let i = 1; i < offsets.length; i++) units += offsets[i] - offsets[i - 1] - 1;
      count += offsets.length - 1;
    }
    return { count, units };
  },
  async "millstream-strings"(path, argv, Tally) {
    const tally = new Tally();
    for await (const lines of pipe(command(...argv(path))).batches()) lines.forEach(tally.line);
    return tally.answer();
  },
  async "millstream-each"(path, argv, Tally) {
    const tally = new Tally();
    for await (const line of command(...argv(path))) tally.line(line);
    return tally.answer();
  },
};
