/** Which bytes the native part should examine because they may be compressed. The cases are in `vectors/sniff.tsv`. */

import { BEGINNINGS } from "./formats.js";

/** The lowest and the highest value of each first byte. */
const RANGES = BEGINNINGS.map((text) =>
  text.split(" ").map((pair) => [Number.parseInt(pair.slice(0, 2), 16), Number.parseInt(pair.slice(2), 16)] as const),
);

/** Returns whether bytes may be compressed. If not, they are delivered unchanged. */
export function looksCompressed(bytes: Uint8Array): boolean {
  const isBeginning = RANGES.some((range) => range.every(([low, high], at) => bytes[at] >= low && bytes[at] <= high));
  return isBeginning || (bytes.length === 2 && bytes[0] === 0x1f && bytes[1] === 0x8b);
}
