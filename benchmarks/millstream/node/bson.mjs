// BSON in JavaScript with Millstream.
//
// Usage: bson.mjs WAY FILE
//
// WAY: `objects` converts each document to an object; `columns` converts all documents to columns and sums the numeric
// ones, with the native part if `tools/node native` has built it; `columns-wasm` does the same without the native part.
// The answers are those of `benchmarks/competitors/bson/js_bson.mjs`. The first pass is not timed and gives the answer; the
// median of the others is reported.

import { readFileSync } from "node:fs";
import { bson, native } from "../../../bindings/node/dist/index.js";
import { documents, looks, Sums, timed, printAnswer } from "../../competitors/bson/passes.mjs";

const [way, path] = process.argv.slice(2);
const bytes = readFileSync(path);

function columns(isNative) {
  const load = () => bson.columns(bytes, { native: isNative });
  const pass = () => {
    const table = load();
    const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
    const [ids, created] = [table.column("id", "long").toNumbers(), table.column("created", "date").toNumbers()];
    let active = 0;
    for (const byte of table.column("active", "bool").values) for (let bits = byte; bits > 0; bits &= bits - 1) active++;
    const tags = table.column("tags", "list").items.length;
    return sum(ids) + sum(created) + sum(table.column("score", "double").values) + active + tags;
  };
  return { answer: exactly(load()), pass };
}

// Sums that can exceed 2^53 are computed as big integers.
function exactly(table) {
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0n);
  const tags = table.column("tags", "list").items;
  return {
    count: table.length,
    ids: sum(table.column("id", "long").values),
    scores: table.column("score", "double").values.reduce((a, b) => a + b * 64, 0),
    tags: tags.length,
    active: table.column("active").toArray().filter(Boolean).length,
    created: sum(table.column("created", "date").values),
    text: table.column("name", "string").bytes.length + tags.bytes.length,
  };
}

function objects() {
  const sums = new Sums();
  for (const document of documents(bytes)) looks.records(sums, bson.decode(document));
  const pass = () => {
    for (const document of documents(bytes)) bson.decode(document);
  };
  return { answer: sums, pass };
}

const ways = { objects, columns: () => columns(native.available), "columns-wasm": () => columns(false) };
const { answer, pass } = ways[way]();
printAnswer(answer, timed(pass));
