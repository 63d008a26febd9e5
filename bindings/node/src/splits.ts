/** Exact splits: divides a file or an object, and reads a part of it. */

import { csv } from "./csv.js";
import { cancelled, misuse } from "./error.js";
import { INVALID_OPTION } from "./errors.js";
import { delimiter, documentFramer, FRAMER, type Framer, fixed, lengthPrefixed, lineFramer } from "./frame.js";
import { type Framing, framingOf } from "./framing.js";
import { elementFramer, jsonLines } from "./json.js";
import { neededBinding } from "./native.js";
import { nativeError, Waker } from "./native-thread.js";
import { OPEN_RULES, type OpenOptions, settings } from "./open.js";
import {
  type Check,
  checkOptions,
  FLAG,
  POSITIVE,
  type Rules,
  refuseTogether,
  SIGNAL,
  show,
  TEXT,
  WHOLE,
} from "./options.js";
import { pathOf } from "./path.js";
import { type As, checkReaderOptions, type ItemOf, Reader } from "./reader.js";
import { nativeRemote, placeOf } from "./remote.js";
import { DECODE, type Decode } from "./settings.js";
import { NativeSource } from "./source/native.js";
import { isRemote, type Remote } from "./url.js";

/** One part of a file or object, complete by itself: plain data, which can be sent to a worker thread or stored as JSON.
 *
 * A record belongs to the split in which it begins, so a split may be read beyond its end, and may contain no record.
 * The other members are the library's.
 */
export interface Split {
  readonly version: number;
  /** The file's absolute path. For a copy on another machine, replace it. */
  readonly path?: string | undefined;
  /** The object's URL as it was given, instead of a path. It may contain secrets. */
  readonly url?: string | undefined;
  readonly framing: Framing;
  /** The offset at which the split begins, in bytes from the start of the (decoded) file. */
  readonly begin: number;
  /** The offset after the split, or `null` for the end of the file. */
  readonly end: number | null;
  /** The number of the first record (the first of the file is 0), if planning counted the records. */
  readonly record: number | null;
  /** The number of the first line (the first of the file is 1), if the records are those of CSV and planning counted them. */
  readonly line?: number | undefined;
  /**
   * The number of its records without the blank lines and comments of CSV, if planning counted them. A header is a record.
   * If an incomplete or invalid record ended the count, the number of the last split is not known.
   */
  readonly rows?: number | undefined;
  readonly [other: string]: unknown;
}

/** The splits of a file, in order. */
export interface Splits {
  readonly version: number;
  /** The size of the file in bytes when it was planned. */
  readonly size: number;
  /** The number of records of the file, if planning counted them. */
  readonly records: number | null;
  /** Why the file has fewer splits than its size suggests, such as a format that cannot be divided. */
  readonly note: string | null;
  readonly splits: readonly Split[];
}

/** Options of `planSplits`. */
export interface PlanOptions {
  /** The framer that finds records: lines by default. */
  framer?: Framer | undefined;
  /** The size of a split in bytes: 256 MiB by default. */
  size?: number | undefined;
  /** What each split stores to detect another file or another version of it. `"none"`: nothing, only a shorter file is
   * detected. `"identity"`, the default: size, modification time and inode, for one machine. `"ends"`: size and a hash of
   * 64 KiB at both ends, and at the start of each split if planning reads the file, for copies on other machines.
   * `"full"`: also a hash of each split, for which the file is read once. For an object, each split stores the size and the ETag, and every request requires them.
   */
  pin?: "none" | "identity" | "ends" | "full" | undefined;
  /** Whether a compressed file is decoded, which is the default, or divided as it is. */
  decode?: Decode | undefined;
  /** Divides a JSON document after elements of its array, which are those of `jsonElements` of readers. All of the document
   * is checked.
   */
  jsonElements?: string | undefined;
  /** The limit for arrays and objects inside each other in the document: 128 by default. */
  jsonDepth?: number | undefined;
  /** The index of a gzip file: by default that of the file with the suffix `.gzidx`, if it can be used. */
  index?: string | URL | undefined;
  /** Whether each split has the number of its first record, so that errors have the numbers of records and lines in the
   * whole file. Lines and delimiters need a pass for that. By default only other records, which need a pass anyway, are
   * numbered.
   */
  number?: boolean | undefined;
  /** Ends the planning when it is triggered, with an error of kind `cancelled`. */
  signal?: AbortSignal | undefined;
}

const PATH: Check = {
  expected: "a path or a file URL",
  accepts: (value) => typeof value === "string" || value instanceof URL,
};

const PLAN_RULES: Rules<PlanOptions> = {
  framer: FRAMER,
  size: POSITIVE,
  pin: ["none", "identity", "ends", "full"],
  decode: DECODE,
  index: PATH,
  number: FLAG,
  jsonElements: TEXT,
  jsonDepth: WHOLE,
  signal: SIGNAL,
};

/** Divides a file or an object into splits, each of which `openSplit` reads. All of them, in order, are exactly what one
 * reader of the file returns: the same records, errors and offsets.
 *
 * Lines, most delimiters and records of a fixed length need no pass: a file of any size is divided without reading it.
 * CSV, BSON and length-prefixed records are followed from the start of the file. A compressed file is divided at its bgzf
 * blocks or zstd frames, a gzip file at the points of its index, and sizes and offsets are of decoded bytes. Other
 * compressed files are one split, and `note` says why.
 *
 * @throws `open_failed`; `unsupported` for anything other than a regular file, for an object without ranges or without a
 * strong ETag, or if the native part of this package is not installed; `invalid_option` for a framer that cannot be
 * stored: your own, one of `anyOf`, and one with `keepDelimiter`.
 */
export async function planSplits(path: string | URL | Remote, options: PlanOptions = {}): Promise<Splits> {
  checkOptions("planSplits", options, [PLAN_RULES]);
  const place = placeOf("planSplits", path);
  const name = typeof place === "string" ? place : place.name;
  const { framer = lineFramer(), size = 256 << 20, pin = "identity", decode = "auto", index, number, signal } = options;
  refuseTogether("planSplits", options, "framer", "jsonElements");
  const { jsonElements: pointer, jsonDepth } = options;
  if (jsonDepth !== undefined && pointer === undefined) {
    const found = "jsonDepth without jsonElements";
    throw misuse({ stream: "planSplits", found, expected: "both, or neither" }, INVALID_OPTION);
  }
  const elements: Framing = { kind: "json_elements", pointer: pointer ?? "", depth: jsonDepth ?? 128 };
  const framing = JSON.stringify(pointer === undefined ? storable(framer) : elements);
  const { NativePlan } = neededBinding("planSplits");
  if (signal?.aborted) throw cancelled(signal, { stream: name });
  const waker = new Waker();
  const given = { framing, size, pin, decode, index: index && pathOf("planSplits", index), number: number === true };
  const plan =
    typeof place === "string"
      ? NativePlan.start(place, given, waker.wake)
      : NativePlan.url(nativeRemote(place), given, waker.wake);
  const stop = () => plan.stop();
  signal?.addEventListener("abort", stop);
  try {
    for (;;) {
      const json = plan.json();
      if (json !== null) return JSON.parse(json);
      const failure = plan.failure();
      if (failure?.kind === "cancelled" && signal) throw cancelled(signal, { stream: name });
      if (failure) throw nativeError(failure, name);
      await waker.change();
    }
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/** Returns the splits of worker `index` of `count`, in a random order that `seed` determines. Each split belongs to one
 * worker, and the numbers of splits differ by at most one. For each epoch of a training loop, use another seed.
 *
 * The result depends only on the plan and the arguments, in every language, in every version and on every machine.
 *
 * @throws `invalid_option` if `index` is not less than `count`, or for numbers that are not integers of at least 0.
 */
export function shardSplits(plan: Splits, index: number, count: number, seed: number | bigint): Split[] {
  const stream = "shardSplits";
  const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0;
  if (!isCount(index) || !isCount(count) || index >= count) {
    const expected = "a worker from 0 to one less than their number";
    throw misuse({ stream, found: `worker ${show(index)} of ${show(count)}`, expected }, INVALID_OPTION);
  }
  const isSeed = typeof seed === "bigint" ? BigInt.asUintN(64, seed) === seed : isCount(seed);
  if (!isSeed) {
    throw misuse(
      { stream, found: `the seed ${show(seed)}`, expected: "an integer from 0 to 2^64 - 1" },
      INVALID_OPTION,
    );
  }
  const shuffled = [...plan.splits];
  let state = BigInt(seed);
  // Fisher and Yates' algorithm, with SplitMix64.
  const below = (bound: number) => {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let z = state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    // The high half of the product maps the number to the range.
    return Number(((z ^ (z >> 31n)) * BigInt(bound)) >> 64n);
  };
  for (let last = shuffled.length - 1; last > 0; last--) {
    const other = below(last + 1);
    [shuffled[last], shuffled[other]] = [shuffled[other] as Split, shuffled[last] as Split];
  }
  return shuffled.filter((_, position) => position % count === index);
}

/** Options of `openSplit`. */
export interface SplitOptions<A extends As = As> extends OpenOptions<A> {
  /** The object of the split, such as a copy, or with options for its requests: by default the URL of the split, without
   * options, because headers may be secret.
   */
  remote?: Remote | undefined;
}

const REMOTE: Check = { expected: "the result of remote", accepts: isRemote };

/** Reads one split of a file or object: an element of `splits`, or its JSON. The split's framer finds the records by default.
 *
 * Offsets count from the start of the file; record numbers too if the plan knows them, and otherwise from the start of
 * the split. They are known after the first read, which opens the file. The plan decides whether the file is decoded.
 *
 * @throws `unsupported` if the native part of this package is not installed. When reading: `open_failed`,
 * `source_changed` and `source_shrank` if the file is not the one that was planned.
 */
export function openSplit<A extends As = "text">(
  split: Split | string,
  options: SplitOptions<A> = {},
): Reader<ItemOf<A>> {
  checkReaderOptions("openSplit", options, [...OPEN_RULES, { remote: REMOTE }]);
  const { json, path, url, framing, record, line } = parsed(split);
  const object = options.remote ?? (url === undefined ? undefined : placeOf("openSplit", url));
  const remote = isRemote(object) ? object : undefined;
  const { NativeReader } = neededBinding("openSplit");
  const start = (wake: () => void) => NativeReader.split(json, remote && nativeRemote(remote), settings(options), wake);
  const source = NativeSource.late(remote?.name ?? path ?? "a split", start);
  source.isPart = true;
  source.hasLineNumbers = (framing.kind === "lines" || framing.kind === "json_lines") && record !== null;
  source.firstLine = line;
  const { keepDelimiter, framer = framerOf(framing, keepDelimiter) } = options;
  return new Reader<ItemOf<A>>(source, { ...options, framer, keepDelimiter: undefined });
}

function parsed(split: unknown): Split & { readonly json: string } {
  const expected = "an element of the splits of a plan, or its JSON";
  const refuse = (found: string, cause?: unknown) =>
    misuse({ stream: "openSplit", found, expected, cause }, INVALID_OPTION);
  let object = split;
  if (typeof split === "string") {
    try {
      object = JSON.parse(split);
    } catch (error) {
      throw refuse("text that is not JSON", error);
    }
  }
  if (typeof object !== "object" || object === null || typeof (object as Split).framing?.kind !== "string") {
    throw refuse(show(split));
  }
  return { ...(object as Split), json: typeof split === "string" ? split : JSON.stringify(split) };
}

function storable(framer: Framer): Framing {
  const framing = framingOf(framer);
  if (framing !== undefined) return framing;
  const found = "a framer that cannot be stored: your own, one of anyOf, or one with keepDelimiter";
  const expected =
    "lineFramer, delimiter, fixed, lengthPrefixed, bson, csv or jsonLines, and keepDelimiter in openSplit";
  throw misuse({ stream: "planSplits", found, expected }, INVALID_OPTION);
}

/** Returns the framer for a framing. */
function framerOf(framing: Framing, keepDelimiter: boolean | undefined): Framer {
  if (framing.kind === "lines") return lineFramer({ keepDelimiter });
  if (framing.kind === "delimiter") {
    const digits = framing.bytes.match(/../g) ?? [];
    return delimiter(
      Uint8Array.from(digits, (byte) => Number.parseInt(byte, 16)),
      { keepDelimiter },
    );
  }
  if (keepDelimiter !== undefined) {
    const found = `keepDelimiter for records of the kind ${framing.kind}`;
    throw misuse({ stream: "openSplit", found, expected: "lines or a delimiter" }, INVALID_OPTION);
  }
  switch (framing.kind) {
    case "fixed":
      return fixed(framing.len);
    case "length_prefixed": {
      const [, bits, order, itself] = /^u(\d+)(be)?(?:le)?(,self)?$/.exec(framing.prefix) ?? [];
      const width = (Number(bits) / 8) as 1 | 2 | 4 | 8;
      return lengthPrefixed({ width, endian: order ? "big" : "little", counts: itself ? "itself" : "payload" });
    }
    case "bson":
      return documentFramer();
    case "csv":
      return csv(Object.fromEntries(framing.dialect.split(" ").filter(Boolean).map(csvOption)));
    case "json_elements":
      return elementFramer();
    case "json_lines":
      return jsonLines({ check: framing.checked, depth: framing.depth });
    default: {
      const found = `a split with records of the kind ${show((framing as Framing).kind)}`;
      throw misuse({ stream: "openSplit", found, expected: "a kind that this version knows" }, INVALID_OPTION);
    }
  }
}

/** Returns an option of `csv` for one of the text of a dialect. */
function csvOption(option: string): [string, unknown] {
  const [name, text] = option.split("=");
  const key = name.replaceAll(/_[a-z]/g, (letter) => letter[1].toUpperCase());
  if (key === "lineEnd") return [key, text];
  const words: { [word: string]: unknown } = { on: true, off: false, none: null };
  return [key, text in words ? words[text] : Number.parseInt(text, 16)];
}
