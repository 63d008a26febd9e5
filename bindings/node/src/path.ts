/** Paths, as Node's own functions accept them. */

import { fileURLToPath } from "node:url";
import { misuse } from "./error.js";
import { show } from "./options.js";
import { refuseUrl } from "./url.js";

/** Checks the path of a caller: a string without a NUL, or a file URL. The URL of an object is refused. */
export function pathOf(call: string, path: unknown, alsoExpected = "a file URL"): string {
  refuseUrl(call, path);
  if (typeof path === "string" && path !== "" && !path.includes("\0")) return path;
  if (path instanceof URL && path.protocol === "file:") return fileURLToPath(path);
  throw misuse({ stream: call, found: `the path ${show(path)}`, expected: `a path without a NUL, or ${alsoExpected}` });
}
