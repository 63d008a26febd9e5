/** Compressed memory, which the native part decodes. */

import { looksCompressed } from "../format.js";
import { neededBinding } from "../native.js";
import { memory } from "./memory.js";
import { NativeSource } from "./native.js";

/** Lets `from` decode compressed memory. */
export function useCompressed(): void {
  memory.compressed = (bytes) => {
    if (!looksCompressed(bytes)) return undefined;
    const { NativeReader } = neededBinding("from");
    return NativeSource.late("memory", (wake) => NativeReader.memory(bytes, { decode: "auto" }, wake));
  };
}
