/** Compressed memory, which the native part decodes. Imported for its effect. */

import { looksCompressed } from "../format.js";
import { memory } from "../from.js";
import { neededBinding } from "../native.js";
import { NativeSource } from "./native.js";

memory.compressed = (bytes) => {
  if (!looksCompressed(bytes)) return undefined;
  const { NativeReader } = neededBinding("from");
  return NativeSource.late("memory", (wake) => NativeReader.memory(bytes, { decode: "auto" }, wake));
};
