// BSON in JavaScript: the package `bson`.
//
// Usage: js_bson.mjs WORK FILE [GETS] [--once]
//        js_bson.mjs --version
//
// The tasks and answers equal those in benchmarks/runners/src/bin/bson. `sums` decodes records, and each pass adds
// up their numbers. The first pass is not timed; the median of the others is reported.

import assert from "node:assert";
import { readFileSync } from "node:fs";
import { deserialize, serialize } from "bson";
import { documents, looks, Sums, timed, printAnswer } from "./passes.mjs";

const flags = process.argv.slice(2).filter((word) => word.startsWith("--"));
const [work, path, gets] = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const once = flags.includes("--once");
// Longs beyond 2^53 stay exact; all longs of the inputs are smaller, as most programs expect. Binary data is copied, so
// that it does not keep the whole input alive.
const options = { promoteBuffers: true };

if (process.argv[2] === "--version") {
  const { version } = JSON.parse(readFileSync(new URL("node_modules/bson/package.json", import.meta.url)));
  console.log(`js-bson ${version} on Node ${process.version}`);
} else if (work === "weights") {
  const load = () => deserialize(readFileSync(path), options);
  const { weights } = load();
  const floats = weights.map(({ data }) => data.length / 4);
  printAnswer({ count: weights.length, floats: floats.reduce((a, b) => a + b) }, timed(load, once));
} else {
  const bytes = readFileSync(path);
  if (work === "wide") {
    const get = () => deserialize(bytes, options).field_0988;
    const pass = () => {
      for (let i = 0; i < Number(gets); i++) get();
    };
    printAnswer({ value: get() }, timed(pass, once));
  } else if (work === "encode") {
    // Longs are decoded as `Long`, because a plain number would be encoded as an int or a double.
    const decoded = [...documents(bytes)].map((one) => deserialize(one, { ...options, promoteLongs: false }));
    // Only the class distinguishes a double without a fraction from an int.
    const { Double } = await import("bson");
    for (const record of decoded) record.score = new Double(record.score);
    const encode = () => decoded.map((record) => serialize(record));
    assert(bytes.equals(Buffer.concat(encode())));
    printAnswer({ count: decoded.length, bytes: bytes.length }, timed(encode, once));
  } else if (work === "sums") {
    const sums = new Sums();
    for (const document of documents(bytes)) looks.records(sums, deserialize(document, options));
    const pass = () => {
      let [ids, scores, tags, active, created] = [0, 0, 0, 0, 0];
      for (const document of documents(bytes)) {
        const record = deserialize(document, options);
        ids += record.id;
        scores += record.score;
        tags += record.tags.length;
        active += Number(record.active);
        created += record.created.getTime();
      }
      return ids + created + scores + active + tags;
    };
    printAnswer(sums, timed(pass, once));
  } else {
    const sums = new Sums();
    for (const document of documents(bytes)) looks[work](sums, deserialize(document, options));
    const pass = () => {
      for (const document of documents(bytes)) deserialize(document, options);
    };
    printAnswer(sums, timed(pass, once));
  }
}
