// Compiles if the declarations are found, and are those of a CommonJS module.

import millstream = require("millstream");

const texts: Promise<string[]> = millstream.pipe(
  millstream.open("lines.txt.gz"),
  millstream.filter((line: string) => line !== ""),
  millstream.collect<string>(),
);
const available: boolean = millstream.native.available;
const columns: millstream.Columns = millstream.bson.columns(new Uint8Array());
// @ts-expect-error a number is no option
millstream.open("lines.txt.gz", { recordLimit: "many" });

export = { available, columns, texts };
