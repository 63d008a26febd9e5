// BSON in JavaScript: the package `bson`.
//
// Usage: js_bson.mjs WORK FILE [GETS] [--once]
//        js_bson.mjs --version
//
// The works and their answers are those of crates/bench/src/bin/bson. The first pass is not timed; of the others the
// median is told.

import assert from "node:assert";
import { readFileSync } from "node:fs";
import { deserialize, serialize } from "bson";

const flags = process.argv.slice(2).filter((word) => word.startsWith("--"));
const [work, path, gets] = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const once = flags.includes("--once");
// Longs beyond 2^53 stay exact; all of ours are below it, as most programs expect. Deserialised bytes are copied, so
// that nothing keeps the whole input alive.
const options = { promoteBuffers: true };

function* documents(bytes) {
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readInt32LE(at);
    yield bytes.subarray(at, at + length);
    at += length;
  }
}

function told(answer, times) {
  const words = Object.entries(answer).map(([key, value]) => `${key}=${BigInt.asUintN(64, BigInt(value))}`);
  if (times.length > 0) {
    words.push(`ns=${times.sort((a, b) => (a < b ? -1 : 1))[Math.floor(times.length / 2)]}`);
  }
  console.log(words.join(" "));
}

function timed(pass) {
  const times = [];
  let all = 0n;
  while (!once && (times.length < 3 || (times.length < 15 && all < 400_000_000n))) {
    const start = process.hrtime.bigint();
    pass();
    const time = process.hrtime.bigint() - start;
    times.push(time);
    all += time;
  }
  return times;
}

// Sums that may pass 2^53.
class Sums {
  add(name, value) {
    this[name] = (this[name] ?? 0n) + BigInt(value);
  }
}

const looks = {
  records(sums, record) {
    sums.add("count", 1);
    sums.add("ids", record.id);
    sums.add("scores", record.score * 64);
    sums.add("tags", record.tags.length);
    sums.add("active", record.active);
    sums.add("created", record.created.getTime());
    for (const text of [record.name, ...record.tags]) sums.add("text", Buffer.byteLength(text));
  },
  orders(sums, { order, customer, items }) {
    sums.add("orders", order);
    const { street, city, zip } = customer.address;
    const text = [customer.name, street, city, zip];
    for (const { sku, quantity, price, options } of items) {
      sums.add("count", 1);
      sums.add("quantity", quantity);
      sums.add("prices", price * 64);
      sums.add("options", options.length);
      text.push(sku, ...options);
    }
    for (const one of text) sums.add("text", Buffer.byteLength(one));
  },
  untyped(sums, document) {
    sums.add("count", 1);
    members(sums, document);
  },
};

function members(sums, inner) {
  for (const value of Object.values(inner)) {
    sums.add("values", 1);
    if (typeof value === "string") sums.add("text", Buffer.byteLength(value));
    else if (Array.isArray(value) || value?.constructor === Object) members(sums, value);
  }
}

if (process.argv[2] === "--version") {
  const { version } = JSON.parse(readFileSync(new URL("node_modules/bson/package.json", import.meta.url)));
  console.log(`js-bson ${version} on Node ${process.version}`);
} else if (work === "weights") {
  const load = () => deserialize(readFileSync(path), options);
  const { weights } = load();
  const floats = weights.map(({ data }) => data.length / 4);
  told({ count: weights.length, floats: floats.reduce((a, b) => a + b) }, timed(load));
} else {
  const bytes = readFileSync(path);
  if (work === "wide") {
    const get = () => deserialize(bytes, options).field_0988;
    const pass = () => {
      for (let i = 0; i < Number(gets); i++) get();
    };
    told({ value: get() }, timed(pass));
  } else if (work === "encode") {
    // Longs as `Long`: a number would be written as an int or a double.
    const decoded = [...documents(bytes)].map((one) => deserialize(one, { ...options, promoteLongs: false }));
    // A double without a fraction is told from an int only by its class.
    const { Double } = await import("bson");
    for (const record of decoded) record.score = new Double(record.score);
    const encode = () => decoded.map((record) => serialize(record));
    assert(bytes.equals(Buffer.concat(encode())));
    told({ count: decoded.length, bytes: bytes.length }, timed(encode));
  } else {
    const sums = new Sums();
    for (const document of documents(bytes)) looks[work](sums, deserialize(document, options));
    const pass = () => {
      for (const document of documents(bytes)) deserialize(document, options);
    };
    told(sums, timed(pass));
  }
}
