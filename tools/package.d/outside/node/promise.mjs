import * as millstream from "millstream";
import promise from "./promise.cjs";

await promise(millstream);
