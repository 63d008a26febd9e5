// The shared vectors of behaviour: detection of compression, defaults of options, limits.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import * as zlib from "node:zlib";
import { collect, command, from, lengthPrefixed, map, open, pipe, Writer } from "millstream";
import { cases, failure, framerOf, pieces, toArray } from "./twin.js";

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
after(() => rmSync(directory, { recursive: true }));

async function bytesOf(reader: AsyncIterable<Uint8Array>): Promise<string> {
  return Buffer.concat(await toArray(reader)).toString("hex");
}

async function outcome(result: () => Promise<string>): Promise<[string, string]> {
  try {
    return [await result(), "end"];
  } catch (error) {
    return ["-", (error as { kind: string }).kind];
  }
}

for (const [name, way, file, input, output, end] of cases("sniff.tsv")) {
  test(`sniff ${name}`, async () => {
    const path = join(directory, file);
    const bytes = Buffer.from(input, "hex");
    const found = await outcome(async () => {
      if (way === "read") {
        writeFileSync(path, bytes);
        return bytesOf(open(path, { as: "bytes", keepDelimiter: true }));
      }
      const writer = Writer.path(path);
      await writer.write(bytes);
      await writer.close();
      return readFileSync(path)
        .subarray(0, output.length / 2)
        .toString("hex");
    });
    assert.deepEqual(found, [output, end]);
  });
}

test("defaults", async () => {
  for (const [option, expected] of cases("defaults.tsv")) assert.equal(await defaultOf(option), expected, option);
});

for (const [name, words, limit, input, records, end] of cases("limits.tsv")) {
  test(`limit ${name}`, async () => {
    const bytes = Buffer.from(input, "hex");
    const [all, expected]: unknown[][] = [[], []];
    for (let cut = 0; cut <= bytes.length; cut++) {
      const options = { framer: framerOf(words), as: "bytes", recordLimit: Number(limit) } as const;
      const found: string[] = [];
      let how = "end";
      try {
        for await (const record of from(pieces(bytes, [cut]), options)) found.push(Buffer.from(record).toString("hex"));
      } catch (error) {
        how = (error as { kind: string }).kind;
      }
      all.push([cut, found, how]);
      expected.push([cut, records === "-" ? [] : records.split(","), end]);
    }
    assert.deepEqual(all, expected);
  });
}

/** Returns the default of an option, as determined from behaviour. */
async function defaultOf(option: string): Promise<string> {
  const zipped = zlib.gzipSync("1\n");
  const isDecoded = async (reader: AsyncIterable<unknown>) => ((await toArray(reader))[0] === "1" ? "yes" : "no");
  const written = async (path: string, text: string) => {
    const writer = Writer.path(path);
    await writer.write(text);
    await writer.close();
    return readFileSync(path);
  };
  switch (option) {
    case "record_limit": {
      const long = Buffer.alloc((64 << 20) + 1);
      const error = await failure(toArray(from(long, { as: "bytes" })));
      await toArray(from(long.subarray(1), { as: "bytes" }));
      return error.kind === "record_too_long" ? "67108864" : error.kind;
    }
    case "keep_delimiter":
      return (await toArray(from("1\n")))[0] === "1" ? "no" : "yes";
    case "prefix_order":
      return (await toArray(from("\x01\0\0\0a", { framer: lengthPrefixed() })).catch(() => []))[0] === "a"
        ? "little"
        : "big";
    case "prefix_counts":
      return (await toArray(from("\x02ab", { framer: lengthPrefixed({ width: 1 }) })))[0] === "ab"
        ? "payload"
        : "itself";
    case "decode_file":
      writeFileSync(join(directory, "zipped"), zipped);
      return isDecoded(open(join(directory, "zipped")));
    case "decode_memory":
      return isDecoded(from(zipped));
    case "decode_command":
      return isDecoded(command("sh", ["-c", "echo 1 | gzip"]));
    case "decode_callback":
      return isDecoded(from([zipped]));
    case "command_failure":
      return toArray(command("false")).then(
        () => "allow",
        () => "error",
      );
    case "command_stdin":
      return (await toArray(command("cat"))).length === 0 ? "nothing" : "something";
    case "encode_file":
      return (await written(join(directory, "a.gz"), "1"))[0] === 0x1f ? "by name" : "no";
    case "encode_memory": {
      const writer = Writer.memory();
      await writer.write("1");
      return (await writer.close()).memory?.length === 1 ? "no" : "yes";
    }
    case "existing_file":
      await written(join(directory, "a"), "before");
      return (await written(join(directory, "a"), "after")).toString() === "after" ? "replaced" : "appended";
    case "unfinished_file": {
      const writer = Writer.path(join(directory, "unfinished"));
      await writer.write("1");
      await writer.abort();
      return existsSync(join(directory, "unfinished")) ? "kept" : "removed";
    }
    case "on_error": {
      const parse = map((line: string) => JSON.parse(line));
      return pipe(from("1\nx\n"), parse, collect()).then(
        () => "skip",
        () => "stop",
      );
    }
    default:
      throw new Error(`no test for the option ${option}`);
  }
}

// Node has no `scan`.
for (const [name, way, limit, hex, ...expected] of cases("places.tsv").filter(([, way]) => !way.startsWith("scan"))) {
  test(`place ${name}`, async () => {
    const input = Buffer.from(hex, "hex");
    const options = { framer: framerOf(way), recordLimit: Number(limit), as: "bytes" } as const;
    for (let split = 0; split <= input.length; split++) {
      const open = () => from([input.subarray(0, split), input.subarray(split)], options);
      const batches = async () => {
        for await (const _ of open().batches());
      };
      for (const read of way === "rows" ? [toArray(open().objects())] : [toArray(open()), batches()]) {
        const { kind, offset, record, line, column } = await failure(read);
        assert.deepEqual([kind, ...[offset, record, line, column].map((place) => `${place ?? "-"}`)], expected);
      }
    }
  });
}
