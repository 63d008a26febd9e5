// Files that contain one document: the shared vectors of paths, arrays of numbers, and errors.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { bson, MillstreamError } from "millstream";
import { failure, repository } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-document-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
const path = join(directory, "one.bson");

function vectors(name: string): string[][] {
  const text = readFileSync(new URL(`vectors/${name}`, repository), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split("\t"));
}

async function withFile<T>(bytes: Uint8Array, use: (file: Awaited<ReturnType<typeof bson.open>>) => Promise<T>) {
  writeFileSync(path, bytes);
  const file = await bson.open(path);
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

/** The simple implementation: decodes everything and follows the path. */
function naive(bytes: Uint8Array, keys: readonly string[]): unknown {
  let value: any = bson.decode(bytes);
  for (const key of keys) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

test("the shared vectors of paths", async () => {
  for (const [name, hex, at, value] of vectors("bson_paths.tsv")) {
    await withFile(Buffer.from(hex, "hex"), async (file) => {
      assert.equal(await file.has(at), value !== "-", name);
      if (value === "-") assert.equal((await failure(file.get(at))).kind, "key_missing");
      else if (value.startsWith('{"$numberInt"'))
        assert.equal(await file.get(at), Number(JSON.parse(value).$numberInt));
      else await file.get(at);
    });
  }
});

test("the shared vectors of documents: each member agrees with bson.decode, or is an error", async () => {
  for (const [name, hex, canonical] of vectors("bson.tsv")) {
    const bytes = Buffer.from(hex, "hex");
    if (canonical.startsWith("error")) {
      const error = await failure(withFile(bytes, (file) => file.get()));
      assert.equal(error.kind, canonical.slice("error ".length), name);
      continue;
    }
    await withFile(bytes, async (file) => {
      const whole = bson.decode(bytes);
      assert.deepEqual(await file.get(), whole, name);
      const keys = await file.keys();
      assert.deepEqual([...new Set(keys)].sort(), Object.keys(whole).sort(), name);
      for (const key of keys) {
        const isOnly = keys.filter((other) => other === key).length === 1;
        if (isOnly) assert.deepEqual(await file.get(JSON.stringify(key)), naive(bytes, [key]), name);
      }
    });
  }
});

/** A document of one member. */
function member(key: string, type: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.concat([Buffer.alloc(4), Buffer.of(type), Buffer.from(`${key}\0`), payload, Buffer.of(0)]);
  bytes.writeInt32LE(bytes.length);
  return bytes;
}

function binary(key: string, bytes: Uint8Array, subtype = 0): Buffer {
  const length = Buffer.alloc(5);
  length.writeInt32LE(bytes.length);
  length[4] = subtype;
  return member(key, 5, Buffer.concat([length, bytes]));
}

test("numbers of any type become an array with its own memory", async () => {
  const numbers = Float64Array.from({ length: 100_000 }, (_, i) => i / 8);
  const raw = new Uint8Array(numbers.buffer);
  const bytes = member("layer", 3, binary("weights", raw));
  await withFile(bytes, async (file) => {
    assert.deepEqual(await file.array("layer.weights", Float64Array), numbers);
    assert.deepEqual(await file.array("layer.weights", Uint8Array), raw);
    assert.deepEqual(await file.array("layer.weights", BigInt64Array), new BigInt64Array(numbers.buffer));
    assert.deepEqual(await file.keys("layer"), ["weights"]);
    assert.equal((await failure(file.array("layer", Float64Array))).kind, "shape_mismatch");
    assert.equal((await failure(file.array("layer.bias", Float64Array))).kind, "key_missing");
    assert.equal((await failure(file.keys("layer.weights"))).kind, "shape_mismatch");
  });
  await withFile(binary("odd", raw.subarray(0, 7)), async (file) => {
    const error = await failure(file.array("odd", Float32Array));
    assert.deepEqual([error.kind, error.offset, error.stream], ["shape_mismatch", 9, path]);
  });
});

test("vectors and the old binary subtype", async () => {
  const floats = Float32Array.of(1, -2, 3.5);
  const vector = Buffer.concat([Buffer.of(0x27, 0), new Uint8Array(floats.buffer)]);
  await withFile(binary("v", vector, 9), async (file) => {
    assert.deepEqual(await file.array("v", Float32Array), floats);
    assert.equal((await failure(file.array("v", Int8Array))).kind, "shape_mismatch");
  });
  for (const bad of [[], [0x27], [0x27, 1, 0, 0, 0, 0], [0x10, 0, 255]]) {
    await withFile(binary("v", Buffer.from(bad), 9), async (file) => {
      assert.equal((await failure(file.array("v", Float32Array))).kind, "shape_mismatch");
    });
  }
  await withFile(binary("v", Buffer.of(2, 0, 0, 0, 7, 8), 2), async (file) => {
    assert.deepEqual(await file.array("v", Uint8Array), Uint8Array.of(7, 8));
  });
});

test("invalid files", async () => {
  assert.equal((await failure(bson.open(join(directory, "none")))).kind, "open_failed");
  assert.equal((await failure(bson.open(directory))).kind, "open_failed");
  const good = member("n", 0x10, Buffer.of(1, 0, 0, 0));
  for (const [bytes, kind] of [
    [Buffer.alloc(0), "document_truncated"],
    [good.subarray(0, -1), "document_truncated"],
    [Buffer.concat([good, good]), "document_invalid"],
    [Buffer.concat([good.subarray(0, -1), Buffer.of(1)]), "document_invalid"],
  ] as const) {
    const error = await failure(withFile(bytes, (file) => file.get("n")));
    assert.deepEqual([error.kind, error.stream], [kind, path]);
  }
});

test("a file that shrinks is an error", async () => {
  const bytes = binary("a", Buffer.alloc(100_000));
  await withFile(bytes, async (file) => {
    truncateSync(path, 50_000);
    assert.equal((await failure(file.array("a", Uint8Array))).kind, "source_shrank");
  });
});

test("any bytes are a document or an error with an offset", async () => {
  const samples = vectors("bson.tsv").map(([, hex]) => Buffer.from(hex, "hex"));
  const change = fc.tuple(fc.nat(100), fc.nat(255));
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...samples), fc.array(change, { maxLength: 3 }), async (sample, changes) => {
      const bytes = Buffer.from(sample);
      for (const [at, byte] of changes) if (at < bytes.length) bytes[at] = byte;
      try {
        await withFile(bytes, async (file) => {
          for (const key of await file.keys()) {
            await file.get(JSON.stringify(key));
            await file.array(JSON.stringify(key), Uint8Array);
          }
        });
      } catch (error) {
        assert(error instanceof MillstreamError, String(error));
        assert(error.kind === "key_missing" || (error.offset ?? Infinity) <= bytes.length, String(error));
      }
    }),
    { numRuns: 500 },
  );
});
