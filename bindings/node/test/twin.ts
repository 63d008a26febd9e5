// A simple implementation of framing for comparison, and a parser of the shared vectors.

import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as ms from "millstream";

export type Outcome = { records: string[]; end: string };

export interface Vector {
  name: string;
  words: string;
  input: Uint8Array;
  expected: Outcome;
}

// Tests run in build/test of bindings/node.
export const repository = new URL("../../../../", import.meta.url);

/** Returns the cases of a file of vectors, in columns. */
export function cases(file: string): string[][] {
  const text = readFileSync(new URL(`vectors/${file}`, repository), "utf8");
  const rows = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return rows.map((row) => row.split("\t"));
}

export function frameVectors(): Vector[] {
  return cases("frames.tsv").map(([name, words, input, records, end]) => {
    const expected = { records: records === "-" ? [] : records.split(","), end };
    return { name, words, input: Buffer.from(input, "hex"), expected };
  });
}

/** Returns the framer that a vector describes. */
export function framerOf(words: string): ms.Framer {
  const all = words.split(" ");
  const keepDelimiter = all.at(-1) === "untrimmed";
  const [kind, first, second, third] = all;
  switch (kind) {
    case "lines":
      return ms.lineFramer({ keepDelimiter });
    case "byte":
      return ms.delimiter(Number.parseInt(first, 16), { keepDelimiter });
    case "bytes":
      return ms.delimiter(Buffer.from(first, "hex"), { keepDelimiter });
    case "char":
      return ms.delimiter(String.fromCodePoint(Number.parseInt(first, 16)), { keepDelimiter });
    case "any-of": {
      const bytes = Buffer.from(first, "hex");
      return ms.anyOf((byte) => bytes.includes(byte), { keepDelimiter });
    }
    case "csv":
    case "rows":
      return ms.csv();
    case "fixed":
      return ms.fixed(Number(first));
    case "prefix": {
      const width = (Number(first.slice(1)) / 8) as 1 | 2 | 4 | 8;
      return ms.lengthPrefixed({ width, endian: second as "big", counts: third as "payload" });
    }
    case "bson":
      return ms.bson();
    default:
      throw new Error(`no framer ${words}`);
  }
}

/** Records that end with LF: their contents as strings, by the platform's own split. */
export function naiveLines(bytes: Uint8Array): string[] {
  const lines: string[] = [];
  let start = 0;
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] !== 10) continue;
    const end = at > start && bytes[at - 1] === 13 ? at - 1 : at;
    lines.push(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(start, end)));
    start = at + 1;
  }
  if (start < bytes.length) lines.push(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(start)));
  return lines;
}

/** The pieces between the cuts. */
export function pieces(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const all: Uint8Array[] = [];
  let start = 0;
  for (const cut of [...cuts, bytes.length]) {
    if (cut <= start) continue;
    all.push(bytes.slice(start, cut));
    start = cut;
  }
  return all;
}

export async function toArray<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Returns the error with which a promise is rejected. */
export async function failure(promise: Promise<unknown>): Promise<ms.MillstreamError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ms.MillstreamError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

/** Whether tests with an object server are skipped. */
export const lacksPython =
  process.env.CI !== "true" && spawnSync("python3", ["--version"]).error !== undefined && "SKIPPED, python3 is missing";

/** Starts `tools/object-server`, a store in memory with one bucket. */
export async function objectServer(): Promise<{ address: string; stop(): void }> {
  const program = fileURLToPath(new URL("tools/object-server", repository));
  const server = spawn("python3", [program], { stdio: ["pipe", "pipe", "inherit"] });
  const { value: address } = await ms.lines(server.stdout)[Symbol.asyncIterator]().next();
  return { address, stop: () => server.stdin.end() };
}

export const sleep = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

export const NAMES_LIST = ["Grüße\n", "→ no ASCII\r\n", "plain\n", "\n", "🦀 outside of the first plane\n"].join("");
