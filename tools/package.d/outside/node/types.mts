// Compiles if the declarations are found, and are those of an ES module.

import { bson, collect, type Columns, command, filter, MillstreamError, native, open, pipe, Writer } from "millstream";
import { lines } from "millstream/browser";

const texts: Promise<string[]> = pipe(
  open("lines.txt.gz"),
  filter((line: string) => line !== ""),
  collect<string>(),
);
const available: boolean = native.available;
const columns: Columns = bson.columns(new Uint8Array());
const reader = command("sh", ["-c", "exit 0"], { allowFailure: true });
// @ts-expect-error a number is no option
open("lines.txt.gz", { recordLimit: "many" });
// @ts-expect-error there is no default export
import nothing from "millstream";

export { available, columns, lines, MillstreamError, nothing, reader, texts, Writer };
