// Code that the competitor's program and Millstream's share: documents, answers, and the timing of passes.

export function* documents(bytes) {
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readInt32LE(at);
    yield bytes.subarray(at, at + length);
    at += length;
  }
}

export function printAnswer(answer, times) {
  const words = Object.entries(answer).map(([key, value]) => `${key}=${BigInt.asUintN(64, BigInt(value))}`);
  if (times.length > 0) {
    words.push(`ns=${times.sort((a, b) => (a < b ? -1 : 1))[Math.floor(times.length / 2)]}`);
  }
  console.log(words.join(" "));
}

export function timed(pass, once = false) {
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

// Sums that can exceed 2^53.
export class Sums {
  add(name, value) {
    this[name] = (this[name] ?? 0n) + BigInt(value);
  }
}

export const looks = {
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
