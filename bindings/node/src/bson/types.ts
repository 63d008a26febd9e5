/** The types of BSON, and their names in errors. */

/** The types of BSON: the type byte of each, with MongoDB's name. */
export const TYPES: { readonly [byte: number]: string | undefined } = {
  1: "double",
  2: "string",
  3: "object",
  4: "array",
  5: "binData",
  6: "undefined",
  7: "objectId",
  8: "bool",
  9: "date",
  10: "null",
  11: "regex",
  12: "dbPointer",
  13: "javascript",
  14: "symbol",
  15: "javascriptWithScope",
  16: "int",
  17: "timestamp",
  18: "long",
  19: "decimal",
  127: "maxKey",
  255: "minKey",
};

/** The size of a payload if it is fixed, otherwise -1. */
export const SIZES = new Int8Array(256).fill(-1);
for (const [type, size] of [
  [0x01, 8],
  [0x06, 0],
  [0x07, 12],
  [0x08, 1],
  [0x09, 8],
  [0x0a, 0],
  [0x10, 4],
  [0x11, 8],
  [0x12, 8],
  [0x13, 16],
  [0x7f, 0],
  [0xff, 0],
]) {
  SIZES[type] = size;
}

export function bytesText(count: number): string {
  return count === 1 ? "1 byte" : `${count} bytes`;
}

export const byteText = (byte: number) => `0x${byte.toString(16).padStart(2, "0")}`;
